// The fields of Kv and KvTxn, for the files of server/kv. Nothing outside server/kv may include
// this, because it includes lmdb.h.

#pragma once

#include <assert.h>

#include "base/buffer.h"
#include "base/limits.h"
#include "kv/durable/data_file_fields.h"
#include "kv/kv.h"
#include "log/log.h"

struct Kv {
    DataFile *file; // owned
    MDB_env *lmdb;  // of `file`
    KvSeam seam;
    MDB_dbi tree; // LMDB's main database, which holds the rows of all tables
    unsigned table_count;
    const KvTableOptions *tables; // borrowed
    KvSign sign;                  // borrowed
    atomic_uint_fast64_t *tags;   // owned; of rows that were verified (stored_row.h)
    Log *log;                     // owned; NULL: the file is read-only or ephemeral
    bool is_relaxed;              // commits do not wait for the log's flush

    // Used by write transactions only.
    LogPlace place;   // of the last record
    uint64_t log_key; // of all records
    Buffer log_body;  // rows that the open transaction has put and deleted

    // Every transaction writes these. They have a cache line of their own, so that readers of the
    // fields above need not wait.
    _Alignas(64) atomic_uint txn_count;
    _Atomic(const void *) writer_thread; // NULL: no write transaction is open
};

struct KvTxn {
    Kv *kv;
    MDB_txn *lmdb;
    bool is_write;
    unsigned cursor_count;
    ErrorDetail *detail; // borrowed; where the cause of a failure is written

    // Of a write transaction; a read transaction has only the first four.
    Error failure; // the first one; the transaction can then only be aborted
    size_t write_count;
    uint64_t value_bytes;              // that were put
    uint32_t tables_written;           // a bit for each table that was put to or deleted from
    MDB_cursor *puts[KV_TABLES_MAX];   // from a table's second put on; end with `lmdb`
    int64_t rows_added[KV_TABLES_MAX]; // to each table; negative: more were deleted
    MDB_stat stat;                     // of the tree, after the last write
};

// Notes that an operation ("read", "write") failed with LMDB's code, with the cause in the
// transaction's detail. Returns the error that `txn` must report: if it writes, its first one. The
// failure counts as a write, so that a caller who asks whether to abort does.
MUST_USE Error kv_txn_fail(KvTxn *txn, int code, const char *operation);

// The same for a failure that is already known as an error.
MUST_USE Error kv_txn_note_failure(KvTxn *txn, Error error);

// Frees our part of a transaction, just before LMDB's part ends. From then on another thread may be
// the writer.
void kv_txn_forget(KvTxn *txn);

// There was no room: clears the slots of dead readers, which may hold pages, and asks for a flush.
void kv_make_room(Kv *kv);

static inline Error kv_ask_seam(const Kv *kv, KvOperation operation, KvTable table)
{
    if (__builtin_expect(kv->seam.before == NULL, true)) return ERROR_NONE;
    return kv->seam.before(kv->seam.context, operation, table);
}

static inline MDB_val kv_value(Slice bytes)
{
    return (MDB_val){.mv_size = bytes.size, .mv_data = (void *)(uintptr_t)bytes.bytes};
}
