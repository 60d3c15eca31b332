// The commit row: what each commit that writes also writes about itself. It has table number 0,
// which belongs to kv, and the key "commit".

#pragma once

#include "kv/kv.h"
#include "log/record.h"

enum {
    COMMIT_ROW_BYTES = 8 + HASH_BYTES + 8 + 8 * KV_TABLES_MAX,
};

typedef struct CommitRow {
    LogPlace place;               // of the log's record with this commit; zeros: there is no log
    uint64_t log_key;             // that its records have; 0: there never was a log
    uint64_t rows[KV_TABLES_MAX]; // of each table, by its stored number
} CommitRow;

// Reads the row. `*out_found` is false if nothing was ever committed. ERROR_CORRUPT: it has the
// wrong size or checksum. Other errors as kv_get.
MUST_USE Error commit_row_get(KvTxn *txn, bool *out_found, CommitRow *out);

// Writes the row of a transaction that is about to commit. Errors as kv_put and commit_row_get.
MUST_USE Error commit_row_put(KvTxn *txn, LogPlace place);
