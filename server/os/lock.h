// Locks: a file that one process at a time holds, and that names it.

#pragma once

#include "base/error.h"
#include "report/error_detail.h"

// Takes the lock, and holds it until the descriptor is closed or the process ends. ERROR_IO.
// ERROR_UNAVAILABLE: another process holds it; `detail` says "WHAT is in use by the process with
// pid N; ADVICE".
MUST_USE Error lock_take(const char *path, const char *what, const char *advice,
                         ErrorDetail *detail, int *out_descriptor);

// Gives it back, and removes the file. (To close the descriptor is enough; the file then stays, and
// names one that is gone.) -1 is allowed.
void lock_remove(const char *path, int descriptor);
