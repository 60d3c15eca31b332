// Verification: checks a store in a separate process. If the file is broken below the level that
// the engine handles, reading it can kill the reading process. Here this is a finding, not a crash.
//
// These functions fork. Do not call them while another thread holds a lock that the check needs.

#pragma once

#include "report/error_detail.h"
#include "store/check.h"

typedef struct Verified {
    bool is_read; // the whole store was read, and `result` is set
    Error error;  // otherwise: why not; `detail` explains it
    ErrorDetail detail;
    StoreCheckResult result;
    char instance_id[INSTANCE_ID_BYTES + 1];
} Verified;

// Checks the store in a directory that no daemon has open. Calls `found`, unless it is NULL, for
// each damage. `found` runs in the other process: what it prints is visible, what it stores is
// lost. ERROR_IO: the process could not be started.
MUST_USE Error verify_store(const char *directory,
                            void (*found)(void *context, const Damage *damage), void *context,
                            ErrorDetail *detail, Verified *out);

// Checks an unfinished copy, which nobody else has open. Migrates it if its format is older.
MUST_USE Error verify_copy(const char *directory, ErrorDetail *detail, Verified *out);

// Returns whether the store was read and has no damage.
bool verified_is_clean(const Verified *verified);

// Explains in `detail` why the store in directory `what` is not clean. Returns the reason why it
// could not be read, or ERROR_CORRUPT.
MUST_USE Error verified_say(const Verified *verified, const char *what, ErrorDetail *detail);
