// Session purges: removes a session at once, and its rows in slices.
//
// Deleting a hundred thousand rows in one transaction would hold up the writer for long. So a purge
// deletes only the session's own rows and index entries, after which no call finds it, and writes a
// note to session_index under LISTING_PURGING. The writer then runs slices of PURGE_SLICE_ROWS rows
// between batches, until nothing is left and the last slice deletes the note. After a restart, the
// writer finds the note and continues.
//
// If forks still read the messages of the session, it becomes a tombstone (LISTING_TOMBSTONE). Its
// messages, markers and origins stay until its last reader is purged, whose purge also removes the
// tombstone.

#pragma once

#include "store/store.h"

// Begins the purge of a session. `*out_kept`: it became a tombstone. ERROR_SESSION_NOT_FOUND,
// ERROR_FORKS_EXIST: forks read it, and `keep_for_forks` is not set.
MUST_USE Error purge_session(Txn *txn, Ulid session, bool keep_for_forks, bool *out_kept);

// Runs one slice of the pending purges. `*out_more` is set if more slices are needed.
MUST_USE Error purge_slice(Txn *txn, bool *out_more);

// Counts the sessions whose purges are pending.
MUST_USE Error purge_pending_count(Txn *txn, uint64_t *out);
