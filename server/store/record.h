// Records: stores values of any size under one key, split into chunks of VALUE_BYTES_MAX bytes.
//
// For a large value LMDB looks for contiguous pages. In a fragmented file that blocks the writer
// for tens of milliseconds at 64 KiB. A chunk fits into one page and avoids this. A chunk of
// exactly VALUE_BYTES_MAX bytes may be followed by another; a shorter one is the last.

#pragma once

#include "store/store.h"

// Stores a record. There must be no record with this key.
MUST_USE Error record_insert(Txn *txn, StoreTable table, const Key *key, Slice bytes);

// Stores a record and replaces an older one with the same key.
MUST_USE Error record_put(Txn *txn, StoreTable table, const Key *key, Slice bytes);

// Reads a whole record. `*out` borrows from the transaction if there is one chunk, else it is a
// copy in the transaction's arena.
MUST_USE Error record_get(Txn *txn, StoreTable table, const Key *key, bool *out_found, Slice *out);

// Reads the first chunk only. `*out` borrows from the transaction.
MUST_USE Error record_get_first(Txn *txn, StoreTable table, const Key *key, bool *out_found,
                                Slice *out);

// Deletes a record, if there is one. Adds the number of deleted rows to `*out_rows` (may be NULL).
MUST_USE Error record_delete(Txn *txn, StoreTable table, const Key *key, size_t *out_rows);

// Reads the whole record whose first chunk the cursor stands on. `*out` is as in record_get.
// Afterwards the cursor stands on the last chunk or on the row after it.
MUST_USE Error record_read_on(Txn *txn, KvCursor *cursor, const KvRow *first, Slice *out);
