// Lock files and locked directories: only one process at a time can lock one. A lock file contains
// the pid of its holder.

#pragma once

#include "base/error.h"
#include "report/error_detail.h"

// Takes the lock. The caller closes `*out_descriptor`, or ends, to release it. ERROR_UNAVAILABLE:
// another process holds it; `detail` says "WHAT is in use by the process with pid N; ADVICE".
// ERROR_IO.
MUST_USE Error lock_take(const char *path, const char *what, const char *advice,
                         ErrorDetail *detail, int *out_descriptor);

// Locks a directory, so that a removed lock file lets nobody in. The caller closes
// `*out_descriptor`, or ends, to release it. ERROR_UNAVAILABLE: another process holds it; `detail`
// as above. ERROR_IO.
MUST_USE Error lock_take_directory(const char *path, const char *advice, ErrorDetail *detail,
                                   int *out_descriptor);

// Releases the lock and removes the file. (Closing the descriptor releases it, too, but leaves the
// file with the old pid.) `descriptor` may be -1.
void lock_remove(const char *path, int descriptor);
