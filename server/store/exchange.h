// Exchanges: appends several messages together with the call that produced them.

#pragma once

#include "store/message_draft.h"

typedef struct Exchange {
    Ulid session;
    bool has_parent, has_expected_head; // for the first message, as in MessageAppend
    Ulid parent, expected_head;
    const External *expected_external; // instead of expected_head; NULL: expected_head
    bool propagate_usage;
    bool is_replay; // the messages are the whole history
    const MessageDraft *drafts;
    size_t count;
    const NewCall *call; // the caller has checked it; NULL: none
} Exchange;

// Appends the messages that are new, and the call, and fills the reply, which is in the
// transaction's arena. An error may come after the first put, so the caller must then abort the
// transaction. Errors: as message_append and call_external_check; ERROR_HISTORY_DIVERGED.
MUST_USE Error exchange_append(Txn *txn, const Exchange *exchange, AppendExchangeResponse *out);
