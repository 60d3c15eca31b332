// Operations: makes it safe to send a write again.
//
// The transaction of a write that has an operation ID also stores the write's reply, in a small
// form. A repeated write with the same ID gets that reply.
//
// An operation is kept until it is older than the store's operation_age_ms_max in store time
// (store/store_time.h), or operation_count_max newer ones are stored. So the number of operations
// is bounded whatever the rate of writes is. As long as fewer than operation_count_max operations
// are stored within the age, each is kept for the age. A burst of more keeps the newest
// operation_count_max. What is due is deleted by later operations, OPERATION_PRUNE_PER_WRITE by
// each, so an operation may stay longer. Until it is deleted it is answered.

#pragma once

#include "base/hash.h"
#include "store/store.h"

// The value of an operation: the hash of its request, its number u64, its reply. The value of its
// row in operations_by_age: its store time u64, its ID.
enum {
    OPERATION_HEADER_BYTES = HASH_BYTES + 8,
    OPERATION_AGE_HEADER_BYTES = 8,
};

// Looks up an operation. If it is found, `*out_reply` is a copy of the stored reply in the arena.
// ERROR_OPERATION_ID_REUSED: it was stored for another request.
MUST_USE Error operation_find(Txn *txn, Slice operation_id, Hash request_hash, bool *out_found,
                              Slice *out_reply);

typedef struct OperationRecord {
    Slice operation_id;
    Hash request_hash;
    Slice reply;
    int64_t at; // store time
} OperationRecord;

// Stores an operation under the next number, and deletes none. There must be none with this ID. For
// migrations.
MUST_USE Error operation_record_put(Txn *txn, const OperationRecord *record);

// Stores an operation that is not there. Deletes up to OPERATION_PRUNE_PER_WRITE operations that
// are due.
MUST_USE Error operation_put(Txn *txn, Slice operation_id, Hash request_hash, Slice reply);
