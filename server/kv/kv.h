// Rows: ordered tables of keys and values, with transactions and cursors, on LMDB.
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
// nothing.
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
typedef unsigned KvTable; // index into KvOptions.table_names

enum { KV_TABLES_MAX = 32 };

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

// A row that says what a file is. If the file has it with another value, missing tables are not
// made: the caller looks at the row after the open, and closes the file.
typedef struct KvMark {
    KvTable table;
    Slice key; // .size 0: no mark
    Slice value;
} KvMark;

typedef struct KvOptions {
    DataFileOptions file;
    const char *const *table_names; // borrowed until kv_close
    size_t table_count;
    KvMark mark;
    KvSeam seam; // .before NULL: none
} KvOptions;

// Opens the file and its tables. The caller closes `*out_kv` with kv_close. Errors as
// data_file_open; `detail` says which. ERROR_CORRUPT also: a read-only store lacks a table.
MUST_USE Error kv_open(const KvOptions *options, ErrorDetail *detail, Kv **out_kv);

// No transaction may be open. All that was committed is on the disk then. NULL is allowed.
void kv_close(Kv *kv);

// The file, for the functions of server/kv/durable. Borrowed until kv_close.
DataFile *kv_file(const Kv *kv);

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

// Puts a row, or replaces its value. Neither `key` nor `value` may borrow from the same table in
// `txn`, because its pages move. (The key of kv_delete may.)
MUST_USE Error kv_put(KvTxn *txn, KvTable table, Slice key, Slice value);

// Puts a row if there is none with this key; otherwise sets `out_is_put` to false and changes
// nothing.
MUST_USE Error kv_put_new(KvTxn *txn, KvTable table, Slice key, Slice value, bool *out_is_put);

// Puts a value of `size` bytes that the caller must fill in. `out_value` is valid until the next
// write.
MUST_USE Error kv_put_reserve(KvTxn *txn, KvTable table, Slice key, size_t size,
                              uint8_t **out_value);

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
    uint64_t rows[KV_TABLES_MAX];
    uint64_t last_txn, oldest_reader_txn; // the same if there are no readers
    long oldest_reader_pid;               // the process that reads it; 0: there are no readers
} KvStats;

// Errors as kv_begin and kv_get; `detail` has the cause.
MUST_USE Error kv_stats(Kv *kv, ErrorDetail *detail, KvStats *out_stats);
