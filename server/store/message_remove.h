// Message removal: deletes or purges one message.

#pragma once

#include "store/message.h"

// Delete or purge a message and fill the receipt. Nothing changes if that was done before.
// ERROR_MESSAGE_NOT_FOUND, ERROR_SESSION_DELETED, ERROR_SESSION_ARCHIVED.
MUST_USE Error message_delete(Txn *txn, Ulid message, Receipt *out_receipt);
MUST_USE Error message_purge(Txn *txn, Ulid message, Receipt *out_receipt);
