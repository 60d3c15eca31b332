// Progress on standard error: begins to show after a second, on a terminal only, and leaves nothing
// behind.

#pragma once

#include <stdatomic.h>
#include <stdint.h>

typedef struct Progress Progress;

// Shows `what` ("copying"), and how large the file at `path` has grown if one is given, of
// `bytes_total` if that is not 0. Both texts are borrowed until the end. NULL is no progress, and
// is allowed in progress_end.
Progress *progress_begin(const char *what, const char *path, uint64_t bytes_total);

// The same with bytes that the caller counts in `bytes_done`, borrowed until the end.
Progress *progress_begin_counted(const char *what, const atomic_uint_fast64_t *bytes_done,
                                 uint64_t bytes_total);
void progress_end(Progress *progress);
