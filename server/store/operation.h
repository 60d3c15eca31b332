// Operations: what makes a write safe to send again.
//
// The reply of every write that carried an operation_id is kept, small, in the write's own
// transaction. The same id again finds it.

#pragma once

#include "base/hash.h"
#include "store/store.h"

// Looks an operation up. Found: `out_reply` is what was stored, in the arena.
// ERROR_OPERATION_ID_REUSED: found, with another request.
MUST_USE Error operation_find(Txn *txn, Slice operation_id, Hash request_hash, bool *out_found,
                              Slice *out_reply);

// Stores one, and prunes up to OPERATION_PRUNE_PER_WRITE that are older than the store's option.
MUST_USE Error operation_put(Txn *txn, Slice operation_id, Hash request_hash, Slice reply);
