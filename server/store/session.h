// Sessions: the two rows of each, read and written.
//
// Settings and head are two records whose bytes put together are one Session, so that an append
// rewrites the small head alone. The settings' first fields are numbered so that what a write must
// know (kind, deleted, archived, parent) is read off their first bytes without decoding.

#pragma once

#include "fields.h"
#include "names.h"
#include "store/store.h"

// Listings and the replies of writes leave out the fields from this one to the end of the settings.
enum { SESSION_BRIEF_END = FIELD_SESSION_SYSTEM_PROMPT };

typedef struct SessionBrief {
    SessionKind kind;
    bool is_deleted;
    bool is_archived;
    Ulid parent; // zero: none
} SessionBrief;

// ERROR_SESSION_NOT_FOUND.
MUST_USE Error session_brief(Txn *txn, Ulid id, SessionBrief *out);

// Decodes the settings, or the head, into the arena: a Session with the other half empty.
// ERROR_SESSION_NOT_FOUND.
MUST_USE Error session_settings(Txn *txn, Ulid id, Session **out);
MUST_USE Error session_head(Txn *txn, Ulid id, Session **out);

// Whether a session accepts writes. ERROR_SESSION_NOT_FOUND, ERROR_SESSION_DELETED,
// ERROR_SESSION_ARCHIVED.
MUST_USE Error session_require_writable(Txn *txn, Ulid id);

// The head of a session that accepts writes. Errors as above.
MUST_USE Error session_head_for_write(Txn *txn, Ulid id, Session **out);

MUST_USE Error session_put_settings(Txn *txn, Ulid id, const Session *settings);
MUST_USE Error session_put_head(Txn *txn, Ulid id, const Session *head);

// Appends the session to `out` as the content of the bytes field `field`. `is_brief` leaves out
// system_prompt and data. A status whose time has passed reads IDLE.
// ERROR_SESSION_NOT_FOUND.
MUST_USE Error session_append_to(Txn *txn, Ulid id, bool is_brief, uint32_t field, Buffer *out);

// The same from rows that are at hand.
MUST_USE Error session_rows_append_to(const Txn *txn, Slice settings, Slice head, bool is_brief,
                                      uint32_t field, Buffer *out);

// The status that readers are told.
SessionStatus session_status_now(SessionStatus status, int64_t status_until, int64_t now_ms);

// What comes before a session's own entries, or before those newer than some id.
typedef struct SessionOrigin {
    bool is_set;
    Ulid session; // that owns `message`; zero for the empty history
    Ulid message;
} SessionOrigin;
