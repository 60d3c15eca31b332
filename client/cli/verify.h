// Checking a store in a process of its own: one whose file is broken below what the engine expects
// may end the process that reads it, and that must be a finding and no crash.

#pragma once

#include "cli.h"
#include "report/error_detail.h"
#include "store/check.h"

typedef struct Verified {
    bool is_read;       // to its end: then `result` counts; otherwise the file is broken …
    Error error;        // … or this says why it could not be opened
    ErrorDetail detail; // and in which words
    StoreCheckResult result;
    char instance_id[INSTANCE_ID_BYTES + 1];
} Verified;

// Checks the store in a directory, which no daemon may have. `found` (or NULL) is told of each
// damage, in the other process: what it prints is seen, what it remembers is gone after the check.
// EXIT_FAILED, said: the check could not be begun.
MUST_USE int verify_store(const char *directory, void (*found)(void *context, const Damage *damage),
                          void *context, Verified *out);

// The same of a copy in the making, which nobody else has; one of an older format is migrated
// first.
MUST_USE int verify_copy(const char *directory, Verified *out);

// Whether nothing is wrong.
bool verified_is_clean(const Verified *verified);

// Says on standard error why a copy is no good: what was found, in one line.
int verified_say(const Verified *verified, const char *what);
