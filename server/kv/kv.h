// An ordered key/value store with transactions. kv_lmdb.c is the one file that knows the engine.
//
// One write transaction at a time, any number of readers, each on a snapshot. Values are borrowed:
// from a read transaction until it ends, from a write transaction until it ends or writes next.
// No nesting. Transactions may be begun by one thread and ended by another if they read; a write
// transaction stays on its thread.
//
// Errors: ERROR_STORE_FULL (map or disk full), ERROR_IO, ERROR_CORRUPT, ERROR_OUT_OF_MEMORY; a get
// or a seek that finds nothing says so by its bool and is no error. After a failed put or delete a
// write transaction can only be aborted: kv_commit returns that first error again and writes
// nothing.
//
// Keys have 1 to KEY_BYTES_MAX bytes. A process that limits its file sizes must ignore SIGXFSZ.

#pragma once

#include "base/error.h"
#include "base/slice.h"
#include "report/error_detail.h"

typedef struct Kv Kv;
typedef struct KvTxn KvTxn;
typedef struct KvCursor KvCursor;
typedef unsigned KvTable; // index into KvOptions.table_names

enum { KV_TABLES_MAX = 32 };

// What is about to happen, told to the seam before it does (KV_COMMITTED: after it did).
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

// The seam where tests inject faults, hold the writer or count. Whatever it returns is what the
// operation returns, without touching the engine (ignored for KV_COMMITTED). A fault at KV_COMMIT
// aborts the transaction. Called on the operation's thread.
typedef struct KvSeam {
    Error (*before)(void *context, KvOperation operation, KvTable table);
    void *context;
} KvSeam;

// A row that says what a file is. Where it is there and has another value, no table that is missing
// is made: whoever opened the file looks at the row, and closes.
typedef struct KvMark {
    KvTable table;
    Slice key; // .size 0: no mark
    Slice value;
} KvMark;

typedef struct KvOptions {
    const char *directory; // must exist; the file is directory/data.mdb
    const char *const *table_names;
    size_t table_count;
    KvMark mark;
    size_t map_bytes;     // 0: sized from the disk, so that the disk is full first
    unsigned readers_max; // 0: READERS_MAX
    bool no_sync;         // ephemeral stores only: a crash of the host may corrupt
    bool read_only;       // directory/data.mdb must exist
    // Not 0: a relaxed store. Commits are flushed in the background after so long; a power cut
    // takes it back to what was flushed last. 0: each commit is on the disk when it returns.
    unsigned flush_ms;
    bool is_beside;      // read_only, and another process has it open or will: only with its locks
    bool owns_directory; // no other process has it open: what a power cut left may be put in order
    KvSeam seam;         // .before NULL: none
    // statfs's f_type of the directory; 0: asked of the kernel. Tests say another.
    unsigned long file_system_type;
    const char *boot_id; // of this run of the kernel; NULL: asked of it. Tests say another
} KvOptions;

// ERROR_UNAVAILABLE: this process has the file open already (a second open would break its locks),
// ERROR_IO: cannot be created or opened, or another process has it open and lock.mdb is on a
// file system that is read-only here, ERROR_CORRUPT: not a file of ours, ERROR_INVALID_ARGUMENT:
// not on a local file system. `detail` says which. ERROR_UNAVAILABLE also: a power cut
// has left the store for its owner to set back, and this open does not own it; or it does, and has
// to make lock.mdb anew, while another process reads.
MUST_USE Error kv_open(const KvOptions *options, ErrorDetail *detail, Kv **out_kv);

// Whether locks and a shared map work on a file system with statfs's `f_type`. If not, `out_name`
// is what people call it. Unknown types are taken for local.
bool kv_file_system_is_local(unsigned long f_type, const char **out_name);

// Whether a store can be in a directory that is there. `type` as KvOptions.file_system_type.
// ERROR_INVALID_ARGUMENT: not on a local file system. ERROR_IO.
MUST_USE Error kv_check_directory(const char *directory, unsigned long type, ErrorDetail *detail);

// The files, as they were opened: numbers by which another process can tell that it has the same.
typedef struct KvFiles {
    uint64_t device, data, lock; // inodes
    uint64_t map_bytes;
} KvFiles;

void kv_files(const Kv *kv, KvFiles *out);

// Whether this process has either of the two files open.
bool kv_is_open_here(const KvFiles *files);

// Whether a read transaction was refused because the writer, of another process, has a larger map.
// Closed and opened anew with a larger one, all is well again.
bool kv_is_outgrown(const Kv *kv);

// No transaction may be open. All that was committed is on the disk then. NULL is allowed.
void kv_close(Kv *kv);

// Returns when all that was committed before is on the disk; at once, if the store is not relaxed.
// ERROR_IO: that is not known; the store takes no more writes and must be closed.
// ERROR_UNAVAILABLE: no reader slot is free to do it with.
MUST_USE Error kv_flush(Kv *kv);

// Whether a flush has failed, of whoever's: write transactions are ERROR_IO from then on.
bool kv_has_failed(const Kv *kv);

// Whether a power cut or a disk's error took the store back, until kv_forget_set_back: commits that
// were acknowledged may be gone, and what follows is another history. Forget it after the commit
// that says so: both are on the disk then, unless kv_has_failed.
bool kv_is_set_back(const Kv *kv);
void kv_forget_set_back(Kv *kv, const char *directory);

// Makes data.mdb right by itself, for whoever gives the file another name or place: what a power
// cut left is put back, what is not flushed is flushed, and flushed.mdb says so. The caller owns
// the directory, and nobody has the store open. `boot_id` as KvOptions.boot_id. ERROR_IO,
// ERROR_CORRUPT, ERROR_STORE_FULL.
MUST_USE Error kv_settle(const char *directory, const char *boot_id, ErrorDetail *detail);

typedef struct KvFlushStats {
    bool is_relaxed;
    uint64_t commits;  // not flushed yet, …
    uint64_t bytes;    // … about so many bytes of pages, …
    int64_t oldest_ms; // … the oldest for so long
} KvFlushStats;

// Whether so much is not flushed that the next write transaction may wait for it.
bool kv_is_behind(const Kv *kv);

void kv_flush_stats(Kv *kv, KvFlushStats *out);

// Replaces the seam; no transaction may be open.
void kv_set_seam(Kv *kv, KvSeam seam);

// ERROR_UNAVAILABLE: all reader slots are taken, the map is outgrown, or `kv` was opened before a
// fork and this is the child, which may only close it (and may open the file anew).
MUST_USE Error kv_begin(Kv *kv, bool is_write, KvTxn **out_txn);

// Ends the transaction, whatever the outcome, and sets *txn to NULL. ERROR_STORE_FULL: nothing was
// written and the next transaction may work; any other error: the state on disk is not known and
// the store must be closed.
MUST_USE Error kv_commit(KvTxn **txn);
void kv_abort(KvTxn **txn); // *txn may be NULL
static inline void kv_abortp(KvTxn **txn)
{
    kv_abort(txn);
}

MUST_USE Error kv_get(KvTxn *txn, KvTable table, Slice key, bool *out_found, Slice *out_value);

// Neither `key` nor `value` may borrow from the same table in `txn`: its pages move under them.
// (kv_delete's key may.)
MUST_USE Error kv_put(KvTxn *txn, KvTable table, Slice key, Slice value);

// Puts a row if there is none with this key; else `out_is_put` is false and nothing was changed.
MUST_USE Error kv_put_new(KvTxn *txn, KvTable table, Slice key, Slice value, bool *out_is_put);

// Puts a value of `size` bytes that the caller fills in at once; `out_value` is good until the
// next write.
MUST_USE Error kv_put_reserve(KvTxn *txn, KvTable table, Slice key, size_t size,
                              uint8_t **out_value);
MUST_USE Error kv_delete(KvTxn *txn, KvTable table, Slice key, bool *out_found);

// Puts so far in this transaction, and deletes that found their row; the first failure counts as
// one. Unchanged: nothing has happened that would have to be aborted.
size_t kv_write_count(const KvTxn *txn);

// Cursors end with kv_cursor_close, before their transaction. After a write through the
// transaction a cursor stays usable, but what it lent is gone: next and previous go on from its
// last key, whether that row still exists or not.
//
// A new cursor's kv_next is the first row, its kv_previous the last. Once a movement has found
// nothing, both find nothing until the next seek.
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

// The first row with a key at or after `key`; false if none.
MUST_USE Error kv_seek(KvCursor *cursor, Slice key, bool *out_found, KvRow *out_row);
// The last row with a key strictly before `key`; false if none.
MUST_USE Error kv_seek_before(KvCursor *cursor, Slice key, bool *out_found, KvRow *out_row);
MUST_USE Error kv_seek_last(KvCursor *cursor, bool *out_found, KvRow *out_row);
MUST_USE Error kv_next(KvCursor *cursor, bool *out_found, KvRow *out_row);
MUST_USE Error kv_previous(KvCursor *cursor, bool *out_found, KvRow *out_row);

typedef struct KvStats {
    uint64_t map_bytes, used_bytes; // used: pages ever used, free ones included
    uint64_t free_bytes;            // reusable inside the file (write txn's view; 0 if not known)
    unsigned readers, readers_max;
    uint64_t rows[KV_TABLES_MAX];
    uint64_t last_txn, oldest_reader_txn; // the same without readers
    long oldest_reader_pid;               // the process that has it; 0: no readers
} KvStats;

MUST_USE Error kv_stats(Kv *kv, KvStats *out_stats);

// Takes the file's pages out of this process's memory; they come back as they are read. At any
// time, also while others read.
void kv_trim(Kv *kv);

// Clears the slots of readers that died; returns how many.
unsigned kv_clear_dead_readers(Kv *kv);

// Writes the last committed state to an empty file, open for writing, from its beginning on; the
// caller flushes it. Writes may go on meanwhile, of other processes too. `is_compact` leaves free
// pages out. ERROR_STORE_FULL: the disk of `file` is full; ERROR_IO; ERROR_CORRUPT;
// ERROR_UNAVAILABLE as kv_begin's. `detail` says which.
MUST_USE Error kv_copy(Kv *kv, int file, bool is_compact, ErrorDetail *detail);
