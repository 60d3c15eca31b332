// Safe mode: tined serves what can be read of a store, and writes nothing to it.
//
// It is for a store that ends each tined soon after its start. No purge runs, writes are refused, a
// store of an older format is not migrated, and sessions that cannot be read are left out.

#pragma once

#include "daemon/crash_notes.h"
#include "store/survey.h"

typedef struct SafeMode {
    bool is_on;
    Survey *survey;                           // owned; NULL: off
    char refusal[ERROR_DETAIL_BYTES_MAX / 2]; // what callers are told who want to write
} SafeMode;

// Reads the whole store (store/survey.h) and logs why safe mode was entered and what is left out.
// The caller calls safe_mode_free, also after an error. Errors: as survey_run; ERROR_OUT_OF_MEMORY.
MUST_USE Error safe_mode_enter(const char *directory, const CrashNotes *crashes,
                               ErrorDetail *detail, SafeMode *out);

void safe_mode_free(SafeMode *safe);
