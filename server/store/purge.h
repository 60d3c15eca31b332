// Purging a session: gone at once, its rows in slices.
//
// One transaction over a hundred thousand rows would hold the writer for long, so a purge takes the
// session's own rows and index entries away (no call finds it any more), and notes it in
// session_index under LISTING_PURGING. The writer then runs slices of PURGE_SLICE_ROWS rows between
// batches until the note goes; a restart finds the note and goes on.
//
// A session whose messages are still read by forks becomes a tombstone (LISTING_TOMBSTONE): its
// messages, markers and origins stay until the last reader is purged, whose purge takes it along.

#pragma once

#include "store/store.h"

// Begins the purge. ERROR_SESSION_NOT_FOUND, ERROR_FORKS_EXIST (unless `keep_for_forks`).
MUST_USE Error purge_session(Txn *txn, Ulid session, bool keep_for_forks, bool *out_kept);

// Runs one slice of the pending purges; `*out_more` says whether there is more to do.
MUST_USE Error purge_slice(Txn *txn, bool *out_more);

// How many sessions wait for slices.
MUST_USE Error purge_pending_count(Txn *txn, uint64_t *out);
