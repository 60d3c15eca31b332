// Survey: finds the sessions of a store that cannot be read, for tined's safe mode.
//
// A child process reads every session as a client would. If a session ends the child, the next
// child goes on behind it. So the survey ends neither with the first bad record nor with the first
// page that LMDB cannot stand.

#pragma once

#include "report/error_detail.h"
#include "text/ulid.h"

enum { SURVEY_LEFT_OUT_MAX = 4096 };

typedef struct Survey {
    uint64_t session_count; // that were found, the bad ones too
    size_t left_out_count;
    Ulid left_out[SURVEY_LEFT_OUT_MAX]; // the bad ones, in the order of their ids
} Survey;

// Reads the store, which no process may have open, and writes nothing to it. Logs each bad session
// with its cause. ERROR_CORRUPT: the store cannot be opened, its sessions cannot be listed, or more
// than SURVEY_LEFT_OUT_MAX of them are bad. Other errors: as store_open. Call it before the first
// thread starts.
MUST_USE Error survey_run(const char *directory, ErrorDetail *detail, Survey *out);
