// Progress on standard error: shown after a second, on a terminal only, and erased at the end.

#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "importers/import_report.h"

typedef struct Progress Progress;

// Arguments are borrowed until progress_end. Each begin function returns NULL if nothing will be
// shown; NULL is allowed in all functions.

// Shows `what` ("copying") and, unless `path` is NULL, the size of the file there, of `bytes_total`
// unless that is 0.
Progress *progress_begin(const char *what, const char *path, uint64_t bytes_total);

// The same with bytes that the caller counts in `bytes_done`.
Progress *progress_begin_counted(const char *what, const atomic_uint_fast64_t *bytes_done,
                                 uint64_t bytes_total);

// Shows the files and bytes of an import that are done.
Progress *progress_begin_import(const ImportReport *report);
void progress_end(Progress *progress);

// Erases what is shown until progress_resume, so that a line can be printed.
void progress_pause(Progress *progress);
void progress_resume(Progress *progress);
