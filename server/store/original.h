// Originals: the bytes that an imported entry was made from, as they were, beside the entry. An
// export writes them again where the entry says nothing else.

#pragma once

#include "names.h"
#include "store/store.h"

// Keeps the original of a message, in the place of an older one, and fills the message's receipt.
// Copies `content`. ERROR_MESSAGE_NOT_FOUND, ERROR_SESSION_DELETED, ERROR_SESSION_ARCHIVED,
// ERROR_MESSAGE_SEALED: the message was purged.
MUST_USE Error original_put(Txn *txn, Ulid message, Slice content, Receipt *out_receipt);

// The same for a message that was appended in this very transaction.
MUST_USE Error original_put_new(Txn *txn, Ulid session, Ulid message, Slice content);

// Appends the originals of a session's own messages that are newer than `after`, oldest first, each
// as an Original in the bytes field `field`. `out_last` is where to go on, zero at the end.
MUST_USE Error original_append_page(Txn *txn, Ulid session, Ulid after, uint32_t limit,
                                    size_t page_bytes, uint32_t field, Buffer *out, Ulid *out_last);
