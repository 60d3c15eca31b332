// Rows: ordered tables of keys and values, with transactions and cursors, on LMDB.
//
// All tables are in one tree, LMDB's main database, because a commit copies the whole path to each
// page that it changes. A stored key is the table's byte and the key; a stored value ends with a
// checksum (checksum.h). Each read verifies it: in a write transaction always, in a read
// transaction when this process reads the row for the first time (stored_row.h).
//
// kv/durable, the room below, keeps the files and makes commits durable; it knows no tables and
// includes no header of this room. Only these two rooms include lmdb.h.
//
// There is one write transaction at a time, and any number of readers, each on a snapshot. Values
// are borrowed: from a read transaction until it ends, from a write transaction until it ends or
// writes next. Transactions do not nest. A read transaction may be begun by one thread and ended by
// another; a write transaction stays on its thread.
//
// Errors: ERROR_STORE_FULL (map or disk), ERROR_IO, ERROR_CORRUPT, ERROR_OUT_OF_MEMORY. A get or a
// seek that finds nothing sets its bool to false and is no error. After a failed put or delete a
// write transaction can only be aborted: kv_commit then returns that first error again and writes
// nothing. A row with a wrong checksum is ERROR_CORRUPT too, but only for the read that met it: the
// transaction goes on.
//
// Keys have 1 to KEY_BYTES_MAX bytes. A process that limits its file sizes must ignore SIGXFSZ.

#pragma once

#include "base/error.h"
#include "base/slice.h"
#include "kv/durable/options.h"
#include "report/error_detail.h"

typedef struct Kv Kv;
typedef struct KvTxn KvTxn;
typedef struct KvCursor KvCursor;
typedef unsigned KvTable; // index into KvOptions.tables

enum {
    KV_TABLES_MAX = 32,
    KV_TABLE_BYTE = 0x80, // plus the table's number: the first byte of a stored key
};

typedef struct KvTableOptions {
    uint8_t number; // 1 to KV_TABLES_MAX - 1; stored, so a table keeps it for ever
    const char *name;
} KvTableOptions;

// What the seam is called before (KV_COMMITTED: after).
typedef enum KvOperation {
    KV_BEGIN_READ,
    KV_BEGIN_WRITE,
    KV_GET,
    KV_PUT,
    KV_DELETE,
    KV_SEEK, // every cursor movement
    KV_COMMIT,
    KV_COMMITTED,
} KvOperation;

// The seam where tests inject faults, hold the writer or count. If it returns an error, the
// operation returns that error and LMDB is not called (ignored for KV_COMMITTED). A fault at
// KV_COMMIT aborts the transaction. Called on the operation's thread.
typedef struct KvSeam {
    Error (*before)(void *context, KvOperation operation, KvTable table);
    void *context;
} KvSeam;

// The sign says which format the file has to programs that look for it in a named table of LMDB, as
// formats 1 and 2 had it. It has no checksum.
typedef struct KvSign {
    const char *table; // NULL: no sign. All of it is borrowed until kv_close
    Slice key;
    Slice value;
} KvSign;

typedef struct KvOptions {
    DataFileOptions file;
    const KvTableOptions *tables; // borrowed until kv_close
    size_t table_count;
    KvSign sign;
    KvSeam seam; // .before NULL: none
} KvOptions;

// Opens the file. The caller closes `*out_kv` with kv_close. A file with another sign is opened
// too: the caller looks with kv_get_sign, and may read only named tables (named.h). Errors as
// data_file_open; `detail` says which. ERROR_CORRUPT also: there are rows, but the commit row is
// missing or damaged.
MUST_USE Error kv_open(const KvOptions *options, ErrorDetail *detail, Kv **out_kv);

// Makes data.mdb complete by itself, without its log and flushed.mdb, before the file gets another
// name or place. Nobody has the store open; a missing file is left missing. `options` as for
// kv_open, for writing. Errors as kv_open and kv_flush.
MUST_USE Error kv_settle(const KvOptions *options, ErrorDetail *detail);

// Removes the log of a settled store. The names of its files are then free.
void kv_remove_log(const char *directory);

// No transaction may be open. All that was committed is on the disk then. NULL is allowed.
void kv_close(Kv *kv);

// Returns when all that was committed before is on the disk: at once unless the store is relaxed.
// ERROR_IO: it may not be there, the store takes no more writes and must be closed.
// ERROR_UNAVAILABLE: the file was opened before a fork. `detail` has the cause.
MUST_USE Error kv_flush(Kv *kv, ErrorDetail *detail);

// Returns whether a flush of the log or of data.mdb has failed. From then on write transactions are
// ERROR_IO.
bool kv_has_failed(const Kv *kv);

// Copies the cause of that. Only after kv_has_failed returned true.
void kv_tell_failure(const Kv *kv, ErrorDetail *detail);

typedef struct KvFlushStats {
    bool is_relaxed;
    uint64_t commits;  // that are not on the disk yet
    uint64_t bytes;    // of these in the log
    int64_t oldest_ms; // how long ago the oldest of them was
} KvFlushStats;

void kv_flush_stats(const Kv *kv, KvFlushStats *out);

// The file, for the functions of server/kv/durable. Borrowed until kv_close.
DataFile *kv_file(const Kv *kv);

// Reads the value of the file's sign.
MUST_USE Error kv_get_sign(KvTxn *txn, bool *out_found, Slice *out_value);

// Puts the sign of KvOptions. For the first transaction of a new file.
MUST_USE Error kv_put_sign(KvTxn *txn);

// Reads what the file contains: nothing at all (`*out_is_empty`), or rows (`*out_has_rows`), or
// only named tables (neither).
MUST_USE Error kv_survey(KvTxn *txn, bool *out_is_empty, bool *out_has_rows);

// Replaces the seam. No transaction may be open.
void kv_set_seam(Kv *kv, KvSeam seam);

// Begins a transaction. The caller ends it with kv_commit or kv_abort. ERROR_UNAVAILABLE: all
// reader slots are taken, the map is outgrown, or `kv` was opened before a fork and this is the
// child, which may only close it (and may open the file again). ERROR_IO also: a flush has failed.
// `detail`, which may be NULL, is borrowed until the transaction ends: here and in every later
// failure it gets the cause.
MUST_USE Error kv_begin(Kv *kv, bool is_write, ErrorDetail *detail, KvTxn **out_txn);

// Sets where the transaction writes the cause of a failure from now on. NULL: nowhere.
void kv_set_detail(KvTxn *txn, ErrorDetail *detail);

// Ends the transaction, whatever the result, and sets *txn to NULL. ERROR_STORE_FULL: nothing was
// written, and the next transaction may work. Any other error: the state on the disk is not known,
// and the store must be closed.
MUST_USE Error kv_commit(KvTxn **txn);
void kv_abort(KvTxn **txn); // *txn may be NULL
static inline void kv_abortp(KvTxn **txn)
{
    kv_abort(txn);
}

// Reads the value of a key. `*out_value` is left alone if there is none.
MUST_USE Error kv_get(KvTxn *txn, KvTable table, Slice key, bool *out_found, Slice *out_value);

// Puts a row, or replaces its value. `value` must not borrow from `txn`, because its pages move.
// (Keys may.)
MUST_USE Error kv_put(KvTxn *txn, KvTable table, Slice key, Slice value);

// Puts a row if there is none with this key; otherwise sets `out_is_put` to false and changes
// nothing.
MUST_USE Error kv_put_new(KvTxn *txn, KvTable table, Slice key, Slice value, bool *out_is_put);

// Deletes a row. `*out_found` is false if there was none.
MUST_USE Error kv_delete(KvTxn *txn, KvTable table, Slice key, bool *out_found);

// Returns how many puts this transaction has made, and deletes that found their row. The first
// failure counts as one. If the count is unchanged, there is nothing to abort.
size_t kv_write_count(const KvTxn *txn);

// Opens a cursor. The caller closes it with kv_cursor_close before the transaction ends. After a
// write through the transaction a cursor stays usable, but the rows that it returned are gone.
// kv_next and kv_previous go on from its last key, whether that row still exists or not.
//
// On a new cursor kv_next returns the first row, and kv_previous the last. After a movement that
// found nothing, both find nothing until the next seek.
MUST_USE Error kv_cursor_open(KvTxn *txn, KvTable table, KvCursor **out_cursor);
void kv_cursor_close(KvCursor *cursor); // NULL is allowed
static inline void kv_cursor_closep(KvCursor **cursor)
{
    kv_cursor_close(*cursor);
}

typedef struct KvRow {
    Slice key;
    Slice value;
} KvRow;

// Each of these moves the cursor. If the row has a wrong checksum, the result is ERROR_CORRUPT with
// `*out_found` set and `out_row->key` filled in, but no value; the cursor stands on that row, and
// kv_next and kv_previous go on from it.

// Finds the first row with a key at or after `key`.
MUST_USE Error kv_seek(KvCursor *cursor, Slice key, bool *out_found, KvRow *out_row);
// Finds the last row with a key before `key`.
MUST_USE Error kv_seek_before(KvCursor *cursor, Slice key, bool *out_found, KvRow *out_row);
MUST_USE Error kv_seek_last(KvCursor *cursor, bool *out_found, KvRow *out_row);
MUST_USE Error kv_next(KvCursor *cursor, bool *out_found, KvRow *out_row);
MUST_USE Error kv_previous(KvCursor *cursor, bool *out_found, KvRow *out_row);

// For a key that the cursor found and that cannot be right: writes its table and its size to the
// transaction's detail, and returns ERROR_CORRUPT.
MUST_USE Error kv_refuse_key(KvCursor *cursor, Slice key);

typedef struct KvStats {
    uint64_t map_bytes;
    uint64_t used_bytes; // of pages that were ever used, with the free ones
    uint64_t free_bytes; // of pages that can be reused
    unsigned readers, readers_max;
    uint64_t rows[KV_TABLES_MAX];         // of each KvTable
    uint64_t last_txn, oldest_reader_txn; // the same if there are no readers
    long oldest_reader_pid;               // the process that reads it; 0: there are no readers
} KvStats;

// Errors as kv_begin and kv_get; `detail` has the cause.
MUST_USE Error kv_stats(Kv *kv, ErrorDetail *detail, KvStats *out_stats);
