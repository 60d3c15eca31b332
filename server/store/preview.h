// Previews: computes the texts that a listing shows of a session, which its head record keeps.
//
// first_message_preview belongs to the log: it is the first user message with text. The last
// previews belong to the current history, but only to the session's own entries in it. Only
// messages of kind CONVERSATION count. Text parts of a message are joined by a space. An append
// adds its text. Whatever takes messages away (a rewind, a branch, a deletion, a purge) computes
// the previews anew.

#pragma once

#include "store/message.h"

// Updates the previews in `head` for an appended message. `text` is its text as message_text
// returns it. The strings are in the arena.
MUST_USE Error preview_note(Txn *txn, Session *head, MessageKind kind, Role role, Slice text);

// Compute first_message_preview, or both last previews, anew and set them in `head`. The caller
// stores it. The strings are in the arena.
MUST_USE Error preview_recompute_first(Txn *txn, Ulid session, Session *head);
MUST_USE Error preview_recompute_last(Txn *txn, Ulid session, Session *head);

// Finds the newest user message in the current history that the session itself owns. `*out` is zero
// if there is none.
MUST_USE Error preview_latest_user_message(Txn *txn, Ulid session, Ulid *out);
