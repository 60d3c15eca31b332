// Previews: the texts that a listing shows of a session, kept in its head.
//
// first_message_preview is of the log: its first user message with text. The last ones are of the
// current history's own entries. Only messages of kind CONVERSATION count. An append notes its
// text; what takes messages away (rewind, branch, delete, purge) computes them anew.

#pragma once

#include "store/message.h"

// Takes note of an appended message's first text. The strings are in the arena.
MUST_USE Error preview_note(Txn *txn, Session *head, MessageKind kind, Role role, Slice text);

MUST_USE Error preview_recompute_first(Txn *txn, Ulid session, Session *head);
MUST_USE Error preview_recompute_last(Txn *txn, Ulid session, Session *head);

// The newest user message of the current history that the session owns; zero if none.
MUST_USE Error preview_latest_user_message(Txn *txn, Ulid session, Ulid *out);
