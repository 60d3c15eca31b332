// Exchanges: several messages and the call that produced them, appended together.

#pragma once

#include "store/message_draft.h"

typedef struct Exchange {
    Ulid session;
    bool has_parent, has_expected_head; // of the first message, as in MessageAppend
    Ulid parent, expected_head;
    const External *expected_external; // in the place of expected_head; NULL: it is that
    bool propagate_usage;
    bool is_replay; // the messages are the whole history
    const MessageDraft *drafts;
    size_t count;
    const NewCall *call; // checked; NULL: none
} Exchange;

// Appends what is new and fills the reply, in the transaction's arena. A failure may come after
// puts: the caller's transaction is then to be aborted.
// Errors of message_append and call_external_check; ERROR_HISTORY_DIVERGED.
MUST_USE Error exchange_append(Txn *txn, const Exchange *exchange, AppendExchangeResponse *out);
