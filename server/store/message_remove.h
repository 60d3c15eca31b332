// Deleting and purging one message.

#pragma once

#include "store/message.h"

// Both fill the receipt and change nothing the second time. ERROR_MESSAGE_NOT_FOUND,
// ERROR_SESSION_DELETED, ERROR_SESSION_ARCHIVED.
MUST_USE Error message_delete(Txn *txn, Ulid message, Receipt *out_receipt);
MUST_USE Error message_purge(Txn *txn, Ulid message, Receipt *out_receipt);
