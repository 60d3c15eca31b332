// Records: values of any size under one key, split into chunks of VALUE_BYTES_MAX.
//
// In a fragmented file LMDB looks for contiguous pages: a 64 KiB value then holds the writer for
// tens of milliseconds, a chunk of one page never does. A chunk of exactly VALUE_BYTES_MAX bytes
// may be followed by the next; a shorter one is the last.

#pragma once

#include "store/store.h"

// Stores a record that is known to be new.
MUST_USE Error record_insert(Txn *txn, StoreTable table, const Key *key, Slice bytes);

// Stores a record, in the place of an older one if there is one.
MUST_USE Error record_put(Txn *txn, StoreTable table, const Key *key, Slice bytes);

// `out` borrows from the transaction (one chunk) or is a copy in its arena (more).
MUST_USE Error record_get(Txn *txn, StoreTable table, const Key *key, bool *out_found, Slice *out);

// The first chunk alone. `out` borrows from the transaction.
MUST_USE Error record_get_first(Txn *txn, StoreTable table, const Key *key, bool *out_found,
                                Slice *out);

// `out_rows` (may be NULL) grows by the rows deleted.
MUST_USE Error record_delete(Txn *txn, StoreTable table, const Key *key, size_t *out_rows);

// Completes a record that a cursor stands on with its first chunk: borrows, or copies all chunks
// into the arena; the cursor is then on the last of them or on the row after it.
MUST_USE Error record_read_on(Txn *txn, KvCursor *cursor, const KvRow *first, Slice *out);
