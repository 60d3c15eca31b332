// Originals: keeps the exact bytes from which an entry was imported. An export writes them again if
// the entry still says the same.

#pragma once

#include "names.h"
#include "store/store.h"

// Stores the original of a message, replaces an older one, and fills the receipt of the message.
// Copies `content`. ERROR_MESSAGE_NOT_FOUND, ERROR_SESSION_DELETED, ERROR_SESSION_ARCHIVED,
// ERROR_MESSAGE_SEALED: the message was purged.
MUST_USE Error original_put(Txn *txn, Ulid message, Slice content, Receipt *out_receipt);

// Stores the original of a message that was appended in the same transaction.
MUST_USE Error original_put_new(Txn *txn, Ulid session, Ulid message, Slice content);

// Appends the originals of the session's own messages that are newer than `after`, oldest first,
// each as an Original in the bytes field `field`. The next page continues after `*out_last`, which
// is zero after the last page.
MUST_USE Error original_append_page(Txn *txn, Ulid session, Ulid after, uint32_t limit,
                                    size_t page_bytes, uint32_t field, Buffer *out, Ulid *out_last);
