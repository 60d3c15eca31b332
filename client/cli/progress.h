// Progress on standard error: shown after a second, on a terminal only, and erased at the end.

#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "importers/import_report.h"

typedef struct Progress Progress;

// What is given is borrowed until the end. NULL is returned if nothing will be shown, and is
// allowed in all functions below.

// Shows `what` ("copying"), and how large the file at `path` has grown if one is given, of
// `bytes_total` if that is not 0.
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
