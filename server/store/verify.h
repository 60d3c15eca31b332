// Checks a store in a process of its own. Reading a file that is broken below what the engine
// expects may end the process that reads it; here that is a finding and no crash.
//
// These functions fork: call them while no other thread holds a lock that the check needs.

#pragma once

#include "report/error_detail.h"
#include "store/check.h"

typedef struct Verified {
    bool is_read; // the store was read to its end, and `result` is set
    Error error;  // else why it could not be opened or read; `detail` explains it
    ErrorDetail detail;
    StoreCheckResult result;
    char instance_id[INSTANCE_ID_BYTES + 1];
} Verified;

// Checks the store in a directory that no daemon has open. Calls `found`, if not NULL, with each
// damage, in the other process: what it prints is seen, what it stores is lost. ERROR_IO: the
// process could not be started; `detail` says why.
MUST_USE Error verify_store(const char *directory,
                            void (*found)(void *context, const Damage *damage), void *context,
                            ErrorDetail *detail, Verified *out);

// The same for a copy in the making, which nobody else has open. Migrates one of an older format.
MUST_USE Error verify_copy(const char *directory, ErrorDetail *detail, Verified *out);

// Returns whether the store was read and nothing is wrong with it.
bool verified_is_clean(const Verified *verified);

// Explains in `detail` why `what`, a store's directory, is not clean. Returns why it could not be
// read, or ERROR_CORRUPT.
MUST_USE Error verified_say(const Verified *verified, const char *what, ErrorDetail *detail);
