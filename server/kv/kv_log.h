// The log of a Kv: notes what a write transaction changes, makes its commit durable, and brings the
// rows up to date when the file is opened.

#pragma once

#include "kv/kv_fields.h"
#include "log/log.h"

// A record that is ready to be stored.
typedef struct KvLogSeal {
    LogRecord record;
    uint8_t header[LOG_HEADER_BYTES];
} KvLogSeal;

// Applies what the log has behind the rows, and opens it. The tree is open, and nobody writes. Does
// nothing for a file that is read-only; the log of an ephemeral one is applied and removed. Errors
// as log_file_open and kv_commit.
MUST_USE Error kv_log_open(Kv *kv, const DataFileOptions *options, ErrorDetail *detail);

// Flushes and closes the log, if there is one. Nobody may flush data.mdb any more.
void kv_log_close(Kv *kv);

// Begins the record of a write transaction.
void kv_log_begin(KvTxn *txn);

// Notes a row that is about to be put or deleted, and returns in `out_mark` where it is, for
// kv_log_forget. ERROR_OUT_OF_MEMORY.
MUST_USE Error kv_log_note(KvTxn *txn, const LogRow *row, size_t *out_mark);

// Forgets the row at `mark`, the newest one, because there was nothing to do.
void kv_log_forget(KvTxn *txn, size_t mark);

// Makes the record of a transaction that is about to commit. It borrows from `txn`'s Kv until the
// next write transaction begins.
void kv_log_seal(KvTxn *txn, KvLogSeal *out);

// Stores the record, and flushes it unless the store is relaxed. ERROR_STORE_FULL,
// ERROR_OUT_OF_MEMORY: the log does not have it. Any other error: nobody knows, and the store must
// be closed.
MUST_USE Error kv_log_store(Kv *kv, const KvLogSeal *seal, ErrorDetail *detail);

// Takes back the newest record, whose commit failed: the log then says that it does not count. Any
// error: nobody knows whether it counts, and the store must be closed.
MUST_USE Error kv_log_take_back(Kv *kv, ErrorDetail *detail);
