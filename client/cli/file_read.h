// Reads a file, or standard input, whole.

#pragma once

#include "base/buffer.h"
#include "cli.h"

// Reads all of a file ("-": standard input), at most `bytes_max`. The caller frees the buffer with
// buffer_free. EXIT_FAILED; a failure was printed.
MUST_USE int file_read(const char *path, size_t bytes_max, Buffer *out);
