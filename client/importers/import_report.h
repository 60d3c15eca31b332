// What an import has done so far and what it could not take. The importer writes it; the program
// that runs the importer shows it, also from another thread while the import runs.

#pragma once

#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/error.h"

enum { IMPORT_PROBLEM_BYTES_MAX = 2048 };

typedef struct ImportReport {
    atomic_uint_fast64_t sessions_new, sessions_known, entries_new, entries_known;
    atomic_uint_fast64_t files_total, files_imported, files_failed;
    atomic_uint_fast64_t bytes_total, bytes_done; // of all files; a total of 0 is not known

    // Shows one problem, a line of text without its end. Called from the importer's thread.
    void (*say)(void *context, const char *text);
    void *context; // borrowed
} ImportReport;

// Passes one problem to `say`; longer ones are cut to IMPORT_PROBLEM_BYTES_MAX.
void import_report_say(ImportReport *report, const char *format, ...) PRINTF_LIKE(2, 3);
void import_report_say_list(ImportReport *report, const char *format, va_list arguments)
    PRINTF_LIKE(2, 0);
