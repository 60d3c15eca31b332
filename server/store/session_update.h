// Session changes: renames, updates, deletes, restores and rewinds a session.

#pragma once

#include "store/session.h"

// Gives a session a slug, or removes it if `slug` is "". Changes nothing if the session has this
// slug. ERROR_SESSION_NOT_FOUND, ERROR_SESSION_DELETED, ERROR_SESSION_ARCHIVED, ERROR_SLUG_TAKEN.
MUST_USE Error session_rename(Txn *txn, Ulid id, const char *slug, SlugPolicy policy);

// Sets the fields that the mask of the request names. The caller must have checked the mask.
// ERROR_SESSION_NOT_FOUND, ERROR_SESSION_DELETED, ERROR_SESSION_ARCHIVED (unless the mask contains
// ARCHIVED).
MUST_USE Error session_update(Txn *txn, Ulid id, const UpdateSessionRequest *request);

// Deletes or restores a session. Changes nothing if it is already in that state.
// ERROR_SESSION_NOT_FOUND.
MUST_USE Error session_set_deleted(Txn *txn, Ulid id, bool is_deleted);

typedef struct Rewind {
    Ulid session;
    Ulid message;
    bool has_expected_head;
    Ulid expected_head;
} Rewind;

// Moves the head to `message`, or to the empty history if it is zero. ERROR_SESSION_NOT_FOUND,
// ERROR_SESSION_DELETED, ERROR_SESSION_ARCHIVED, ERROR_MESSAGE_NOT_FOUND, ERROR_NOT_IN_TREE,
// ERROR_HEAD_MOVED (has_expected_head).
MUST_USE Error session_rewind(Txn *txn, const Rewind *rewind);
