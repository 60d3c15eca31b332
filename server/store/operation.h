// Operations: makes it safe to send a write again.
//
// The transaction of a write that has an operation ID also stores the write's reply, in a small
// form. A repeated write with the same ID gets that reply.

#pragma once

#include "base/hash.h"
#include "store/store.h"

// Looks up an operation. If it is found, `*out_reply` is a copy of the stored reply in the arena.
// ERROR_OPERATION_ID_REUSED: it was stored for another request.
MUST_USE Error operation_find(Txn *txn, Slice operation_id, Hash request_hash, bool *out_found,
                              Slice *out_reply);

// Stores an operation. Deletes up to OPERATION_PRUNE_PER_WRITE operations that are older than the
// store's limit.
MUST_USE Error operation_put(Txn *txn, Slice operation_id, Hash request_hash, Slice reply);
