// Verification: checks a store in a separate process. First its files are compared with the
// manifest, if it is a backup that has one (store/manifest.h). Then the pages of its data file are
// walked (kv/durable/page_walk.h); the rows are only read if the pages are sound. If reading them
// kills the process all the same, this is a finding, not a crash.
//
// verify_begin forks. Do not call it while another thread holds a lock that the check needs.

#pragma once

#include "report/error_detail.h"
#include "store/check.h"

typedef struct Verified {
    bool is_read;               // the whole store was read, and `result` is set
    Error error;                // otherwise: why not; `detail` explains it
    uint64_t page_damage_count; // what the walk of the file's pages found; then no row was read
    ErrorDetail detail;
    StoreCheckResult result; // of these, DAMAGE_MANIFEST is also set if the store was not read
    bool has_manifest;
    // Of the store, if it was read:
    char instance_id[INSTANCE_ID_BYTES + 1];
    uint64_t event_sequence; // of the newest event
    uint64_t log_position;   // of the last commit
} Verified;

typedef struct VerifyOptions {
    const char *directory; // no daemon may have the store open
    bool is_copy; // an unfinished copy, which nobody else has open: migrate an older format
    // Called for each damage of a row, and of a page, and for a manifest that does not fit, unless
    // they are NULL. They run in the other process: what they print is visible, what they store is
    // lost.
    void (*found)(void *context, const Damage *damage);
    void (*found_page)(void *context, const PageFinding *finding);
    void (*found_manifest)(void *context, const char *text);
    void *context;
} VerifyOptions;

typedef struct Verification { // a check that runs
    int result;
    int process;
} Verification;

// Starts a check. The caller ends it with verify_end, and may start threads in between, for example
// to show progress. ERROR_IO: the process could not be started.
MUST_USE Error verify_begin(const VerifyOptions *options, ErrorDetail *detail, Verification *out);

// Waits for the result.
void verify_end(Verification *verification, Verified *out);

// Returns whether the store was read and has no damage.
bool verified_is_clean(const Verified *verified);

// Explains in `detail` why the store in directory `what` is not clean. Returns the reason why it
// could not be read, or ERROR_CORRUPT.
MUST_USE Error verified_say(const Verified *verified, const char *what, ErrorDetail *detail);
