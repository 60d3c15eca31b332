// Appending: one entry, with everything that must change in the same transaction.

#pragma once

#include "store/message_draft.h"

typedef struct MessageAppend {
    Ulid session;
    bool has_parent; // the entry goes after `parent` (zero: at the beginning), not after the head
    Ulid parent;
    bool has_expected_head; // the head must be `expected_head` (zero: the empty history)
    Ulid expected_head;
    bool propagate_usage;
    const MessageDraft *draft;
} MessageAppend;

// Appends and fills the receipt, whose strings are in the transaction's arena.
// ERROR_SESSION_NOT_FOUND, ERROR_SESSION_DELETED, ERROR_SESSION_ARCHIVED, ERROR_HEAD_MOVED,
// ERROR_MESSAGE_NOT_FOUND (parent or cut-off), ERROR_NOT_IN_TREE, ERROR_INVALID_ARGUMENT (the
// cut-off is not in the history), ERROR_EXTERNAL_TAKEN.
MUST_USE Error message_append(Txn *txn, const MessageAppend *append, Receipt *out_receipt,
                              Ulid *out_id);

// The same of one of several entries: with the head as the caller has it, of a session that accepts
// writes, and changed there alone. expected_head is not looked at. After the last entry the head is
// to be stored, with the last_active_at that it had before the first.
MUST_USE Error message_append_with_head(Txn *txn, Session *head, const MessageAppend *append,
                                        Receipt *out_receipt, Ulid *out_id);
MUST_USE Error head_store(Txn *txn, Ulid session, const Session *head, int64_t old_active);

// Fails with ERROR_HEAD_MOVED if the session's head is not `expected`.
MUST_USE Error head_expect(Txn *txn, const Session *head, Ulid expected);

// Reads an id that a record holds as text; "" is ULID_ZERO. ERROR_CORRUPT.
MUST_USE Error stored_id(Txn *txn, const char *text, Ulid *out);
