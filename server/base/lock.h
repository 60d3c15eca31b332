// Locks: a file that one process at a time holds, and that names it.

#pragma once

#include "base/error.h"

// Takes the lock, and holds it until the descriptor is closed or the process ends. The file stays.
// ERROR_UNAVAILABLE: another process, named in `detail`, holds it. ERROR_IO.
MUST_USE Error lock_take(const char *path, ErrorDetail *detail, int *out_descriptor);
