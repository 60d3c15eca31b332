// Listing sessions: filter first, then limit.

#pragma once

#include "store/session.h"

typedef struct SessionQuery {
    // Filters; "" and …_UNSPECIFIED match all.
    const char *project_dir, *workspace_id, *account_id, *project_id, *role_name;
    const char *external_source;
    const char *slug;
    const External *external;
    SessionKind kind;
    SessionStatus status;
    Ulid parent; // zero: all
    DeletedFilter deleted;
    ArchivedFilter archived;
    int64_t active_since;
    Slice folded_query;   // empty: all
    Ulid id_low, id_high; // both ends included

    SessionOrder order;
    uint32_t limit;
    size_t page_bytes; // of the whole reply; one record at least

    // Where the page goes on: strictly before this place. ULID_MAX and INT64_MAX: the beginning.
    int64_t before_active;
    Ulid before;
} SessionQuery;

typedef struct SessionPage {
    uint32_t count;
    bool is_more;
    int64_t last_active; // of the last session looked at: where the next page goes on
    Ulid last;
} SessionPage;

// All filters open, from the beginning.
SessionQuery session_query_all(void);

// Appends the sessions that match, newest first, each without system_prompt and data, as the
// content of the bytes field `field`. Ends after SCANNED_RECORDS_MAX sessions at the latest.
MUST_USE Error session_append_page(Txn *txn, const SessionQuery *query, uint32_t field, Buffer *out,
                                   SessionPage *out_page);
