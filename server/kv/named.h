// Named tables: how formats 1 and 2 kept their rows, each table in an LMDB database of its own, and
// without checksums. The migration reads them.

#pragma once

#include "kv/kv.h"

typedef struct KvNamed KvNamed;

// Opens a cursor over a named table, in a read transaction. The caller closes it with
// kv_named_close before the transaction ends. A table that does not exist has no rows.
MUST_USE Error kv_named_open(KvTxn *txn, const char *table, KvNamed **out);
void kv_named_close(KvNamed *named); // NULL is allowed
static inline void kv_named_closep(KvNamed **named)
{
    kv_named_close(*named);
}

// Returns how many rows the table has.
uint64_t kv_named_rows(const KvNamed *named);

// Moves to the next row, which is borrowed from the transaction. The first call returns the first.
MUST_USE Error kv_named_next(KvNamed *named, bool *out_found, KvRow *out_row);
