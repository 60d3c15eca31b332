// What the files of the LMDB engine share. Nothing else may include this: it drags in lmdb.h.

#pragma once

#include <lmdb.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "kv/kv.h"
#include "os/process.h"

typedef struct KvFileId {
    dev_t device;
    ino_t inode; // 0: no file
} KvFileId;

typedef struct KvFlusher KvFlusher; // kv_lmdb_flush.c

struct Kv {
    MDB_env *env;
    KvFlusher *flusher; // NULL: not relaxed
    KvSeam seam;
    unsigned generation; // of the process
    unsigned table_count;
    MDB_dbi tables[KV_TABLES_MAX];
    bool is_read_only;
    bool was_relaxed; // and not closed in good order
    atomic_bool is_set_back;
    atomic_bool is_outgrown; // pages are in use that the map does not reach

    // The registry's part, under its mutex.
    KvFileId data_file;
    KvFileId lock_file;
    Kv *next;

    // Written by each transaction, so on a line of its own: readers of the above need not wait.
    _Alignas(64) atomic_uint txn_count;
    _Atomic(const void *) writer_thread; // NULL: no write transaction is open
};

struct KvTxn {
    Kv *kv;
    MDB_txn *engine;
    size_t write_count;
    uint64_t value_bytes; // put; and the tables that were put to or deleted from, a bit each
    uint32_t tables_written;
    MDB_cursor *puts[KV_TABLES_MAX]; // from a table's second put on; the engine's transaction's own
    unsigned cursor_count;
    bool is_write;
    Error failure; // a write transaction's first: it can only be aborted now
};

// A Kv of another generation belongs to a parent process: its locks and its reader slots are not
// ours.
static inline bool kv_is_of_parent(const Kv *kv)
{
    return __builtin_expect(kv->generation != process_generation(), false);
}

// Which file a name in a directory is now; unchanged if there is none. Returns errno.
int kv_identify_file(const char *directory, const char *name, KvFileId *out_id);

// The one translation of LMDB's and the system's codes. MDB_NOTFOUND is the caller's to handle.
Error kv_error_of(int code);
