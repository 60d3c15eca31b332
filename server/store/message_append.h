// Appending: stores one entry and changes all that depends on it, in one transaction.

#pragma once

#include "store/message_draft.h"

typedef struct MessageAppend {
    Ulid session;
    bool has_parent; // append after `parent` (zero: at the beginning), not the head
    Ulid parent;
    bool has_expected_head; // the head must be `expected_head` (zero: the empty history)
    Ulid expected_head;
    bool propagate_usage;
    const MessageDraft *draft;
} MessageAppend;

// Appends an entry and fills the receipt, whose strings are in the transaction's arena.
// ERROR_SESSION_NOT_FOUND, ERROR_SESSION_DELETED, ERROR_SESSION_ARCHIVED, ERROR_HEAD_MOVED,
// ERROR_MESSAGE_NOT_FOUND (the parent or the cut-off), ERROR_NOT_IN_TREE, ERROR_INVALID_ARGUMENT
// (the cut-off is not in the history), ERROR_EXTERNAL_TAKEN.
MUST_USE Error message_append(Txn *txn, const MessageAppend *append, Receipt *out_receipt,
                              Ulid *out_id);

// Appends one of several entries. The caller has read `head`, the head record of a session that
// accepts writes. The function changes it in memory only and does not check expected_head. After
// the last entry the caller must store the record with head_store, whose `old_active` is the
// last_active_at from before the first entry. Errors: as message_append.
MUST_USE Error message_append_with_head(Txn *txn, Session *head, const MessageAppend *append,
                                        Receipt *out_receipt, Ulid *out_id);
MUST_USE Error head_store(Txn *txn, Ulid session, const Session *head, int64_t old_active);

// Checks that the newest entry of the history is `expected`. ERROR_HEAD_MOVED.
MUST_USE Error head_expect(Txn *txn, const Session *head, Ulid expected);

// Parses an ID that a record holds as text. "" gives ULID_ZERO. ERROR_CORRUPT.
MUST_USE Error stored_id(Txn *txn, const char *text, Ulid *out);
