// Session indexes: finds sessions by the values that listings filter by.

#pragma once

#include "names.h"
#include "store/store.h"

// The parts of a session that are indexed: its settings, and the status from its head.
typedef struct SessionIndexed {
    const Session *settings; // NULL: the session does not exist
    SessionStatus status;    // as it was set, even if its time has passed
} SessionIndexed;

// One row of session_index, without the ID of its session.
typedef struct SessionIndexEntry {
    SessionListing listing;
    Hash hash;
} SessionIndexEntry;

enum { SESSION_INDEX_ENTRIES_MAX = 12 };

// Returns the hash of a status in LISTING_STATUS.
Hash session_index_status_hash(SessionStatus status);

// Lists the rows that a session must have. Returns how many there are.
size_t session_index_entries(SessionIndexed session,
                             SessionIndexEntry out[SESSION_INDEX_ENTRIES_MAX]);

// Changes the rows of a session from those of `before` to those of `after`.
MUST_USE Error session_index_update(Txn *txn, Ulid id, SessionIndexed before, SessionIndexed after);

// Find the first session with this slug or this external ID, other than `except`. `*out` is zero if
// there is none.
MUST_USE Error session_index_slug_holder(Txn *txn, const char *slug, Ulid except, Ulid *out);
MUST_USE Error session_index_external_holder(Txn *txn, const External *external, Ulid *out);

// Applies a slug policy. `*out_slug` is the slug to use, in the arena. ERROR_SLUG_TAKEN.
MUST_USE Error session_index_settle_slug(Txn *txn, const char *slug, SlugPolicy policy, Ulid self,
                                         char **out_slug);

// Finds out whether the session was purged, but forks still read its messages.
MUST_USE Error session_is_tombstone(Txn *txn, Ulid session, bool *out);

// Finds out whether calls may see messages of this session: it exists or is a tombstone.
MUST_USE Error session_is_readable(Txn *txn, Ulid session, bool *out);
