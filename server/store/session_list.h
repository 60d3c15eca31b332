// Session listing: returns pages of the sessions that match a query.

#pragma once

#include "store/session.h"

typedef struct SessionQuery {
    // Filters. "" and …_UNSPECIFIED match every session, except that DELETED_FILTER_UNSPECIFIED
    // excludes deleted ones.
    const char *project_dir, *workspace_id, *account_id, *project_id, *role_name;
    const char *external_source;
    const char *slug;
    const External *external;
    SessionKind kind;
    SessionStatus status;
    Ulid parent; // zero: any
    DeletedFilter deleted;
    ArchivedFilter archived;
    int64_t active_since;
    Slice folded_query;   // empty: matches every session
    Ulid id_low, id_high; // inclusive

    SessionOrder order;
    uint32_t limit;
    size_t page_bytes; // limit for the whole reply; a page has at least one record

    // The page begins strictly before this position. ULID_MAX and INT64_MAX: at the beginning.
    int64_t before_active;
    Ulid before;
} SessionQuery;

typedef struct SessionPage {
    uint32_t count;
    bool is_more;
    int64_t last_active; // with `last`: the last session looked at; the next page begins there
    Ulid last;
} SessionPage;

// Returns a query that matches every session, from the beginning.
SessionQuery session_query_all(void);

// Appends the matching sessions to `out`, newest first, each as the content of the bytes field
// `field`, without system_prompt and data. Looks at no more than SCANNED_RECORDS_MAX sessions.
MUST_USE Error session_append_page(Txn *txn, const SessionQuery *query, uint32_t field, Buffer *out,
                                   SessionPage *out_page);
