// Changing a session's settings: rename, update, delete, restore, rewind.

#pragma once

#include "store/session.h"

// Gives a session a slug; "" clears it; the same again changes nothing. ERROR_SESSION_NOT_FOUND,
// ERROR_SESSION_DELETED, ERROR_SESSION_ARCHIVED, ERROR_SLUG_TAKEN.
MUST_USE Error session_rename(Txn *txn, Ulid id, const char *slug, SlugPolicy policy);

// Sets the fields named by the request's mask, which has been checked.
// ERROR_SESSION_NOT_FOUND, ERROR_SESSION_DELETED, ERROR_SESSION_ARCHIVED (unless the mask holds
// ARCHIVED).
MUST_USE Error session_update(Txn *txn, Ulid id, const UpdateSessionRequest *request);

// ERROR_SESSION_NOT_FOUND. Changes nothing if it is so already.
MUST_USE Error session_set_deleted(Txn *txn, Ulid id, bool is_deleted);

// Moves the head to `message` (zero: to nothing). ERROR_SESSION_NOT_FOUND, ERROR_SESSION_DELETED,
// ERROR_SESSION_ARCHIVED, ERROR_MESSAGE_NOT_FOUND, ERROR_NOT_IN_TREE, ERROR_HEAD_MOVED.
typedef struct Rewind {
    Ulid session;
    Ulid message;
    bool has_expected_head;
    Ulid expected_head;
} Rewind;

MUST_USE Error session_rewind(Txn *txn, const Rewind *rewind);
