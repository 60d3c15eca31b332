// Sessions: reads and writes the two rows of a session, its settings and its head.
//
// The bytes of the two records, one after the other, encode one Session. An append changes only the
// head, which is small. The first fields of the settings are those that every write must know
// (kind, deleted, archived, parent), so that they can be read from the first bytes without
// decoding.

#pragma once

#include "fields.h"
#include "names.h"
#include "store/store.h"

// Listings and replies of writes omit the fields from this one to the end of the settings.
enum { SESSION_BRIEF_END = FIELD_SESSION_SYSTEM_PROMPT };

typedef struct SessionBrief {
    SessionKind kind;
    bool is_deleted;
    bool is_archived;
    Ulid parent; // zero: none
} SessionBrief;

// Reads the first fields of the settings. ERROR_SESSION_NOT_FOUND.
MUST_USE Error session_brief(Txn *txn, Ulid id, SessionBrief *out);

// Decode the settings or the head into the arena. `*out` is a Session in which the fields of the
// other row are empty. ERROR_SESSION_NOT_FOUND.
MUST_USE Error session_settings(Txn *txn, Ulid id, Session **out);
MUST_USE Error session_head(Txn *txn, Ulid id, Session **out);

// Returns ERROR_NONE if the session accepts writes. ERROR_SESSION_NOT_FOUND, ERROR_SESSION_DELETED,
// ERROR_SESSION_ARCHIVED.
MUST_USE Error session_require_writable(Txn *txn, Ulid id);

// Decodes the head of a session that accepts writes. Errors: as session_require_writable.
MUST_USE Error session_head_for_write(Txn *txn, Ulid id, Session **out);

MUST_USE Error session_put_settings(Txn *txn, Ulid id, const Session *settings);
MUST_USE Error session_put_head(Txn *txn, Ulid id, const Session *head);

// Makes the text of an appended NAME the session's title: without white space around it, cut to
// TITLE_BYTES_MAX. If that changes the title, moves updated_at in `head`, which the caller stores.
MUST_USE Error session_take_name(Txn *txn, Ulid id, Session *head, const char *name);

// Appends the session to `out` as the content of the bytes field `field`. If `is_brief` is set,
// omits system_prompt and data. A status whose time has passed is written as IDLE.
// ERROR_SESSION_NOT_FOUND.
MUST_USE Error session_append_to(Txn *txn, Ulid id, bool is_brief, uint32_t field, Buffer *out);

// Does the same as session_append_to, from rows that the caller has read.
MUST_USE Error session_rows_append_to(const Txn *txn, Slice settings, Slice head, bool is_brief,
                                      uint32_t field, Buffer *out);

// Returns the status that readers see: IDLE once `status_until` has passed.
SessionStatus session_status_now(SessionStatus status, int64_t status_until, int64_t now_ms);

// The point in a history from which a session continues (store/origin.h).
typedef struct SessionOrigin {
    bool is_set;
    Ulid session; // owner of `message`; zero: the empty history
    Ulid message;
} SessionOrigin;
