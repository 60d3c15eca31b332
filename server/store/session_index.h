// The indexes of sessions: by the values that listings filter by, and by activity.

#pragma once

#include "names.h"
#include "store/store.h"

// One entry of session_index that a session's settings give rise to.
typedef struct SessionIndexEntry {
    SessionListing listing;
    Hash hash;
} SessionIndexEntry;

enum { SESSION_INDEX_ENTRIES_MAX = 12 };

// Lists the entries that these settings must have; returns how many.
size_t session_index_entries(const Session *settings,
                             SessionIndexEntry out[SESSION_INDEX_ENTRIES_MAX]);

// Makes the index say what `new_settings` say instead of `old_settings` (NULL: nothing).
MUST_USE Error session_index_update(Txn *txn, Ulid id, const Session *old_settings,
                                    const Session *new_settings);

// The first session with this slug, or this external id, other than `except`; zero if none.
MUST_USE Error session_index_slug_holder(Txn *txn, const char *slug, Ulid except, Ulid *out);
MUST_USE Error session_index_external_holder(Txn *txn, const External *external, Ulid *out);

// Settles a slug under a policy: `out_slug` is the slug to use, in the arena. ERROR_SLUG_TAKEN.
MUST_USE Error session_index_settle_slug(Txn *txn, const char *slug, SlugPolicy policy, Ulid self,
                                         char **out_slug);
