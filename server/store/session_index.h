// The indexes of sessions: by the values that listings filter by, and by activity.

#pragma once

#include "names.h"
#include "store/store.h"

// What of a session the index speaks of: its settings, and of its head the status.
typedef struct SessionIndexed {
    const Session *settings; // NULL: there is no session
    SessionStatus status;    // as it was set, whatever time it ends at
} SessionIndexed;

// One entry of session_index that a session gives rise to.
typedef struct SessionIndexEntry {
    SessionListing listing;
    Hash hash;
} SessionIndexEntry;

enum { SESSION_INDEX_ENTRIES_MAX = 12 };

// The hash under which LISTING_STATUS has the sessions of a status.
Hash session_index_status_hash(SessionStatus status);

// Lists the entries that such a session must have; returns how many.
size_t session_index_entries(SessionIndexed session,
                             SessionIndexEntry out[SESSION_INDEX_ENTRIES_MAX]);

// Makes the index say what holds for `after` instead of what held for `before`.
MUST_USE Error session_index_update(Txn *txn, Ulid id, SessionIndexed before, SessionIndexed after);

// The first session with this slug, or this external id, other than `except`; zero if none.
MUST_USE Error session_index_slug_holder(Txn *txn, const char *slug, Ulid except, Ulid *out);
MUST_USE Error session_index_external_holder(Txn *txn, const External *external, Ulid *out);

// Settles a slug under a policy: `out_slug` is the slug to use, in the arena. ERROR_SLUG_TAKEN.
MUST_USE Error session_index_settle_slug(Txn *txn, const char *slug, SlugPolicy policy, Ulid self,
                                         char **out_slug);

// Whether the session was purged and its messages are still there for the forks that read them.
MUST_USE Error session_is_tombstone(Txn *txn, Ulid session, bool *out);

// Whether calls may see messages of this session: it exists, or is a tombstone.
MUST_USE Error session_is_readable(Txn *txn, Ulid session, bool *out);
