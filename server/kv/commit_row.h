// The commit row: what each commit that writes also writes about itself. It has table number 0,
// which belongs to kv, and the key "commit".

#pragma once

#include "kv/kv.h"

enum {
    LOG_CHAIN_BYTES = 16,
    COMMIT_ROW_BYTES = 8 + LOG_CHAIN_BYTES + 8 * KV_TABLES_MAX,
};

typedef struct CommitRow {
    uint64_t log_position;              // of the log's record with this commit; 0: there is no log
    uint8_t log_chain[LOG_CHAIN_BYTES]; // the hash chain at that position
    uint64_t rows[KV_TABLES_MAX];       // of each table, by its stored number
} CommitRow;

// Reads the row. `*out_found` is false if nothing was ever committed. ERROR_CORRUPT: it has the
// wrong size or checksum. Other errors as kv_get.
MUST_USE Error commit_row_get(KvTxn *txn, bool *out_found, CommitRow *out);

// Writes the row of a transaction that is about to commit. Errors as kv_put and commit_row_get.
MUST_USE Error commit_row_put(KvTxn *txn);
