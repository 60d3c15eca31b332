// Reading what a command is given by file or standard input.

#pragma once

#include "base/buffer.h"
#include "cli.h"

// All of a file ("-": standard input), at most `bytes_max`. The buffer is the caller's, freed with
// buffer_free. EXIT_FAILED, said.
MUST_USE int file_read(const char *path, size_t bytes_max, Buffer *out);
