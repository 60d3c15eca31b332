// One run of the import: what is known while one file is imported, shared by its steps.

#pragma once

#include "importers/batch_sender.h"
#include "importers/importer.h"
#include "importers/pi/pi_file.h"
#include "importers/pi/pi_model.h"

typedef struct PiRun {
    Importer *importer; // borrowed
    PiFile file;
    const char *name;             // of the file; borrowed
    char session[STORE_ID_BYTES]; // the store's ID
    char *header;                 // as the store has it; in `arena`
    char version[16];             // of the file, as text

    Arena arena; // for the session's own calls
    BatchSender sender;
    Batch *batch; // the sender's batch that is being filled

    uint64_t appended;
    int64_t time_ms;           // of the entry before
    char last[STORE_ID_BYTES]; // the head: the last entry appended
    bool is_finished;          // by an earlier import: the store has the last entry's original
    bool is_rewritten;         // the file's header is not the one that the store has
    PiModel model;
} PiRun;

// Each reports a problem with the name of the file and returns a status code that is not STATUS_OK.

// `detail` may be NULL.
MUST_USE int pi_run_fail(PiRun *run, Error error, const ErrorDetail *detail);

// A call for `entry` (ENTRY_NONE: for the session) failed with `status`; with the importer's
// status.
MUST_USE int pi_run_fail_status(PiRun *run, uint32_t entry, const TineStatus *status);
MUST_USE int pi_run_fail_call(PiRun *run, uint32_t entry);

// Stores the original of an entry that is in the store already. Returns a status code.
MUST_USE int pi_run_put_original(PiRun *run, uint32_t entry);
