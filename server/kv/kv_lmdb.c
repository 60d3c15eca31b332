// Transactions, rows and cursors on LMDB. kv_lmdb_open.c opens and closes the environment.
//
// These are the hottest calls of the daemon, so each adds only this to the engine's: one branch for
// the seam, asserts on its arguments, and the translation of what came back.
//
// The tricky part is failure. LMDB poisons a transaction at its first error and then answers
// everything with MDB_BAD_TXN, which says nothing; so a write transaction remembers its first
// failure and gives that one again, up to and including the commit. And a commit that meets a full
// disk may be told EIO: see commit_failed.

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/limits.h"
#include "kv/kv_lmdb.h"
#include "kv/kv_lmdb_flush.h"

enum { DISK_FULL_PROBE_BYTES = 1024 * 1024 };

// LMDB moves its cursors along when rows under them are written, but not always to where the walk
// should go on (a row deleted and another put in its place: tests/kv/kv_cursor_test.c). So in a
// write transaction a cursor keeps its key, and after a write it seeks its place anew.
struct KvCursor {
    KvTxn *txn;
    MDB_cursor *engine;
    KvTable table;
    bool is_lost;       // the last movement found nothing: only a seek leads back
    size_t write_count; // the transaction's, at the last movement
    size_t key_bytes;   // 0: not moved yet, or the transaction only reads
    uint8_t key[KEY_BYTES_MAX];
};

typedef struct EngineRow {
    MDB_val key;
    MDB_val value;
} EngineRow;

static int begin_in_engine(Kv *kv, bool is_write, MDB_txn **out_engine);
static int begin_reader(Kv *kv, MDB_txn **out_engine);
static void forget_txn(KvTxn *txn);
static Error commit_failed(Kv *kv, int code);
static bool is_disk_full(Kv *kv);
static bool is_panicked(Kv *kv);
static Error step_cursor(KvCursor *cursor, MDB_cursor_op movement, bool *out_found, KvRow *out_row);
static Error move_after(KvCursor *cursor, Slice key, bool *out_found, KvRow *out_row);
static Error move_before(KvCursor *cursor, Slice key, bool *out_found, KvRow *out_row);
static inline Error arrive(KvCursor *cursor, int code, const EngineRow *row, bool *out_found,
                           KvRow *out_row);
static void remember_place(KvCursor *cursor, Slice key);

static _Thread_local char this_thread; // its address tells threads apart

static inline Error ask_seam(const Kv *kv, KvOperation operation, KvTable table)
{
    if (__builtin_expect(kv->seam.before == NULL, true)) return ERROR_NONE;
    return kv->seam.before(kv->seam.context, operation, table);
}

static inline MDB_dbi table_of(const KvTxn *txn, KvTable table)
{
    assert(table < txn->kv->table_count);
    return txn->kv->tables[table];
}

static inline void note_write(KvTxn *txn, KvTable table, size_t value_bytes)
{
    txn->write_count++;
    txn->tables_written |= UINT32_C(1) << table;
    txn->value_bytes += value_bytes;
}

static inline MDB_val value_of(Slice bytes)
{
    return (MDB_val){.mv_size = bytes.size, .mv_data = (void *)(uintptr_t)bytes.bytes};
}

static inline MDB_val key_of(Slice key)
{
    assert(key.size > 0 && key.size <= KEY_BYTES_MAX);
    return value_of(key);
}

static void make_room(Kv *kv)
{
    kv_clear_dead_readers(kv);
    if (kv->flusher) flush_want(kv->flusher);
}

// Returns the failure that `txn` must report: its first one, if it writes. It counts as a write, so
// that whoever asks whether to abort finds a reason.
__attribute__((cold)) static Error fail_txn(KvTxn *txn, Error error)
{
    if (!txn->is_write) return error;
    if (txn->failure) return txn->failure;

    txn->failure = error;
    txn->write_count++;
    // A reader that died may pin the pages that are missing; the next transaction finds them then.
    if (error == ERROR_STORE_FULL) make_room(txn->kv);
    return error;
}

void kv_set_seam(Kv *kv, KvSeam seam)
{
    assert(atomic_load(&kv->txn_count) == 0);
    kv->seam = seam;
}

Error kv_begin(Kv *kv, bool is_write, KvTxn **out_txn)
{
    assert(!(is_write && kv->is_read_only));
    if (kv_is_of_parent(kv)) return ERROR_UNAVAILABLE;
    Error error = ask_seam(kv, is_write ? KV_BEGIN_WRITE : KV_BEGIN_READ, 0);
    if (!error && is_write && kv->flusher) error = flush_admit(kv->flusher);
    if (error) return error;

    KvTxn *txn = malloc(sizeof *txn);
    if (!txn) return ERROR_OUT_OF_MEMORY;
    *txn = (KvTxn){.kv = kv, .is_write = is_write};
    int code = begin_in_engine(kv, is_write, &txn->engine);
    if (code) {
        free(txn);
        return kv_error_of(code);
    }
    atomic_fetch_add_explicit(&kv->txn_count, 1, memory_order_relaxed);
    *out_txn = txn;
    return ERROR_NONE;
}

static int begin_in_engine(Kv *kv, bool is_write, MDB_txn **out_engine)
{
    // The engine's lock would wait for this very thread, for ever.
    assert(!is_write || atomic_load(&kv->writer_thread) != &this_thread);

    int code =
        is_write ? mdb_txn_begin(kv->env, NULL, 0, out_engine) : begin_reader(kv, out_engine);
    if (code == MDB_READERS_FULL && kv_clear_dead_readers(kv) > 0)
        code = begin_reader(kv, out_engine);
    if (code == MDB_MAP_RESIZED) atomic_store(&kv->is_outgrown, true);
    if (code == 0 && is_write) atomic_store(&kv->writer_thread, &this_thread);
    return code;
}

// A reader of LMDB takes the number T of the last commit, and then copies the roots from the one of
// two meta pages that T is on. Held up in between for two commits, it copies the roots of T + 2,
// or some of these and some of T's: a state that is not on the disk yet, or none at all (8 readers
// under 8 writers met it after minutes). The commit of T + 2 cannot have begun its page while that
// of T + 1 has not ended. So a snapshot is good if, after the copy, the newest page is still T's,
// or else if a reader that begins now is still given T. If neither, that one is looked at instead.
static int begin_reader(Kv *kv, MDB_txn **out_engine)
{
    MDB_txn *engine;
    int code = mdb_txn_begin(kv->env, NULL, MDB_RDONLY, &engine);
    while (code == 0) {
        MDB_envinfo info;
        MDB_txn *next = NULL;
        atomic_thread_fence(memory_order_acquire);
        code = mdb_env_info(kv->env, &info);
        bool is_good = code == 0 && info.me_last_txnid <= mdb_txn_id(engine);
        if (code == 0 && !is_good) {
            code = mdb_txn_begin(kv->env, NULL, MDB_RDONLY, &next);
            is_good = code == 0 && mdb_txn_id(next) == mdb_txn_id(engine);
            if (is_good) mdb_txn_abort(next);
        }
        if (is_good) {
            *out_engine = engine;
            return 0;
        }
        mdb_txn_abort(engine);
        engine = next;
    }
    return code;
}

// About as many bytes of pages as the commit writes: a path of two pages in each table, a leaf for
// each row, what the values fill, and the engine's own.
static uint64_t page_bytes_of(const KvTxn *txn)
{
    enum { PAGE_BYTES = 4096, OWN_PAGES = 4 };
    uint64_t tables = (uint64_t)__builtin_popcount(txn->tables_written);
    return (OWN_PAGES + 2 * tables + txn->write_count) * PAGE_BYTES + txn->value_bytes;
}

Error kv_commit(KvTxn **inout_txn)
{
    KvTxn *txn = *inout_txn;
    Kv *kv = txn->kv;
    if (!txn->is_write || kv_is_of_parent(kv)) {
        Error error = kv_is_of_parent(kv) ? ERROR_UNAVAILABLE : ERROR_NONE;
        kv_abort(inout_txn);
        return error;
    }
    Error error = txn->failure;
    if (!error) error = ask_seam(kv, KV_COMMIT, 0);
    if (error) {
        kv_abort(inout_txn);
        return error;
    }
    MDB_txn *engine = txn->engine;
    uint64_t id = txn->write_count > 0 ? mdb_txn_id(engine) : 0;
    uint64_t bytes = page_bytes_of(txn);
    forget_txn(txn);
    *inout_txn = NULL;
    int code = mdb_txn_commit(engine);
    if (code) return commit_failed(kv, code);
    if (kv->flusher && id > 0) flush_committed(kv->flusher, id, bytes);

    (void)ask_seam(kv, KV_COMMITTED, 0);
    return ERROR_NONE;
}

void kv_abort(KvTxn **inout_txn)
{
    KvTxn *txn = *inout_txn;
    if (!txn) return;

    // In a child of fork the slot and the lock are the parent's: ending would take them from it.
    MDB_txn *engine = kv_is_of_parent(txn->kv) ? NULL : txn->engine;
    forget_txn(txn);
    *inout_txn = NULL;
    if (engine) mdb_txn_abort(engine);
}

// Frees our part of a transaction, just before the engine's part ends: from then on another thread
// may be the writer.
static void forget_txn(KvTxn *txn)
{
    assert(txn->cursor_count == 0);
    Kv *kv = txn->kv;
    if (txn->is_write && !kv_is_of_parent(kv)) {
        assert(atomic_load(&kv->writer_thread) == &this_thread);
        atomic_store(&kv->writer_thread, NULL);
    }
    atomic_fetch_sub_explicit(&kv->txn_count, 1, memory_order_relaxed);
    free(txn);
}

// LMDB writes pages first and the meta page last. An error before the meta page leaves the file as
// it was; one at the meta page makes LMDB panic, and then nobody knows. A disk that fills up in the
// middle of a write makes that write short, and LMDB calls a short write EIO.
__attribute__((cold)) static Error commit_failed(Kv *kv, int code)
{
    if (is_panicked(kv)) return ERROR_IO;
    Error error = code == EIO && is_disk_full(kv) ? ERROR_STORE_FULL : kv_error_of(code);
    if (error == ERROR_STORE_FULL) make_room(kv);
    return error;
}

static bool is_panicked(Kv *kv)
{
    MDB_txn *engine;
    int code = mdb_txn_begin(kv->env, NULL, MDB_RDONLY, &engine);
    if (code == 0) mdb_txn_abort(engine);
    return code == MDB_PANIC;
}

// Whether the file cannot grow by a little more. Reserving blocks past its end touches no byte of
// it, so this is safe whatever other processes do meanwhile.
static bool is_disk_full(Kv *kv)
{
    int file;
    struct stat status;
    if (mdb_env_get_fd(kv->env, &file) || fstat(file, &status)) return false;

    struct rlimit limit;
    rlim_t end = (rlim_t)status.st_size + DISK_FULL_PROBE_BYTES;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < end) return true;

    struct statvfs disk;
    if (fstatvfs(file, &disk) == 0 &&
        disk.f_bavail < DISK_FULL_PROBE_BYTES / (disk.f_frsize ? disk.f_frsize : 1))
        return true;

    if (fallocate(file, FALLOC_FL_KEEP_SIZE, status.st_size, DISK_FULL_PROBE_BYTES) == 0)
        return false;
    return kv_error_of(errno) == ERROR_STORE_FULL;
}

Error kv_get(KvTxn *txn, KvTable table, Slice key, bool *out_found, Slice *out_value)
{
    Error error = ask_seam(txn->kv, KV_GET, table);
    if (error) return error;

    MDB_val engine_key = key_of(key);
    MDB_val value;
    int code = mdb_get(txn->engine, table_of(txn, table), &engine_key, &value);
    if (code == 0) *out_value = slice(value.mv_data, value.mv_size);
    if (code == 0 || code == MDB_NOTFOUND) {
        *out_found = code == 0;
        return ERROR_NONE;
    }
    return fail_txn(txn, kv_error_of(code));
}

// Rows that are put one after the other mostly stand so, too. A cursor that stays where it put the
// last one finds the next one's place by looking at its page, instead of coming down from the root.
// A table's first put makes none: a transaction of one call puts a row into each table.
static int put_in_engine(KvTxn *txn, KvTable table, MDB_val *key, MDB_val *value, unsigned flags)
{
    bool is_first = !(txn->tables_written >> table & 1);
    if (is_first) return mdb_put(txn->engine, table_of(txn, table), key, value, flags);
    MDB_cursor **cursor = &txn->puts[table];
    int code = *cursor ? 0 : mdb_cursor_open(txn->engine, table_of(txn, table), cursor);
    return code ? code : mdb_cursor_put(*cursor, key, value, flags);
}

Error kv_put(KvTxn *txn, KvTable table, Slice key, Slice value)
{
    assert(txn->is_write);
    Error error = ask_seam(txn->kv, KV_PUT, table);
    if (error) return fail_txn(txn, error);

    MDB_val engine_key = key_of(key);
    MDB_val engine_value = value_of(value);
    int code = put_in_engine(txn, table, &engine_key, &engine_value, 0);
    if (code) return fail_txn(txn, kv_error_of(code));
    note_write(txn, table, value.size);
    return ERROR_NONE;
}

Error kv_put_new(KvTxn *txn, KvTable table, Slice key, Slice value, bool *out_is_put)
{
    assert(txn->is_write);
    Error error = ask_seam(txn->kv, KV_PUT, table);
    if (error) return fail_txn(txn, error);

    MDB_val engine_key = key_of(key);
    MDB_val engine_value = value_of(value);
    int code = put_in_engine(txn, table, &engine_key, &engine_value, MDB_NOOVERWRITE);
    if (code && code != MDB_KEYEXIST) return fail_txn(txn, kv_error_of(code));
    if (code == 0) note_write(txn, table, value.size);
    *out_is_put = code == 0;
    return ERROR_NONE;
}

Error kv_put_reserve(KvTxn *txn, KvTable table, Slice key, size_t size, uint8_t **out_value)
{
    assert(txn->is_write);
    Error error = ask_seam(txn->kv, KV_PUT, table);
    if (error) return fail_txn(txn, error);

    MDB_val engine_key = key_of(key);
    MDB_val value = {.mv_size = size};
    int code = put_in_engine(txn, table, &engine_key, &value, MDB_RESERVE);
    if (code) return fail_txn(txn, kv_error_of(code));
    note_write(txn, table, size);
    *out_value = value.mv_data;
    return ERROR_NONE;
}

Error kv_delete(KvTxn *txn, KvTable table, Slice key, bool *out_found)
{
    assert(txn->is_write);
    Error error = ask_seam(txn->kv, KV_DELETE, table);
    if (error) return fail_txn(txn, error);

    // The pages that it stands on may be merged with others.
    if (txn->puts[table]) mdb_cursor_close(txn->puts[table]);
    txn->puts[table] = NULL;

    MDB_val engine_key = key_of(key);
    int code = mdb_del(txn->engine, table_of(txn, table), &engine_key, NULL);
    if (code && code != MDB_NOTFOUND) return fail_txn(txn, kv_error_of(code));
    if (code == 0) note_write(txn, table, 0);
    *out_found = code == 0;
    return ERROR_NONE;
}

size_t kv_write_count(const KvTxn *txn)
{
    return txn->write_count;
}

Error kv_cursor_open(KvTxn *txn, KvTable table, KvCursor **out_cursor)
{
    KvCursor *cursor = malloc(sizeof *cursor);
    if (!cursor) return ERROR_OUT_OF_MEMORY;
    cursor->txn = txn; // one by one: the key's bytes are not worth clearing
    cursor->table = table;
    cursor->is_lost = false;
    cursor->write_count = txn->write_count;
    cursor->key_bytes = 0;
    int code = mdb_cursor_open(txn->engine, table_of(txn, table), &cursor->engine);
    if (code) {
        free(cursor);
        return fail_txn(txn, kv_error_of(code));
    }
    txn->cursor_count++;
    *out_cursor = cursor;
    return ERROR_NONE;
}

void kv_cursor_close(KvCursor *cursor)
{
    if (!cursor) return;
    mdb_cursor_close(cursor->engine);
    cursor->txn->cursor_count--;
    free(cursor);
}

Error kv_seek(KvCursor *cursor, Slice key, bool *out_found, KvRow *out_row)
{
    Error error = ask_seam(cursor->txn->kv, KV_SEEK, cursor->table);
    if (error) return error;

    EngineRow row = {.key = key_of(key)};
    int code = mdb_cursor_get(cursor->engine, &row.key, &row.value, MDB_SET_RANGE);
    return arrive(cursor, code, &row, out_found, out_row);
}

Error kv_seek_before(KvCursor *cursor, Slice key, bool *out_found, KvRow *out_row)
{
    Error error = ask_seam(cursor->txn->kv, KV_SEEK, cursor->table);
    if (error) return error;

    return move_before(cursor, key, out_found, out_row);
}

Error kv_seek_last(KvCursor *cursor, bool *out_found, KvRow *out_row)
{
    Error error = ask_seam(cursor->txn->kv, KV_SEEK, cursor->table);
    if (error) return error;

    EngineRow row;
    int code = mdb_cursor_get(cursor->engine, &row.key, &row.value, MDB_LAST);
    return arrive(cursor, code, &row, out_found, out_row);
}

Error kv_next(KvCursor *cursor, bool *out_found, KvRow *out_row)
{
    return step_cursor(cursor, MDB_NEXT, out_found, out_row);
}

Error kv_previous(KvCursor *cursor, bool *out_found, KvRow *out_row)
{
    return step_cursor(cursor, MDB_PREV, out_found, out_row);
}

static Error step_cursor(KvCursor *cursor, MDB_cursor_op movement, bool *out_found, KvRow *out_row)
{
    Error error = ask_seam(cursor->txn->kv, KV_SEEK, cursor->table);
    if (error) return error;

    // Past an end LMDB may start over from the other one.
    if (cursor->is_lost) {
        *out_found = false;
        return ERROR_NONE;
    }
    if (cursor->write_count != cursor->txn->write_count && cursor->key_bytes > 0) {
        Slice key = slice(cursor->key, cursor->key_bytes);
        return movement == MDB_NEXT ? move_after(cursor, key, out_found, out_row)
                                    : move_before(cursor, key, out_found, out_row);
    }
    EngineRow row;
    int code = mdb_cursor_get(cursor->engine, &row.key, &row.value, movement);
    return arrive(cursor, code, &row, out_found, out_row);
}

// To the row at or after the key, and one on from there if it is the key's own.
static Error move_after(KvCursor *cursor, Slice key, bool *out_found, KvRow *out_row)
{
    EngineRow row = {.key = key_of(key)};
    int code = mdb_cursor_get(cursor->engine, &row.key, &row.value, MDB_SET_RANGE);
    if (code == 0 && slice_equal(slice(row.key.mv_data, row.key.mv_size), key))
        code = mdb_cursor_get(cursor->engine, &row.key, &row.value, MDB_NEXT);
    return arrive(cursor, code, &row, out_found, out_row);
}

// To the row at or after the key, and one back from there; past all rows, to the last.
static Error move_before(KvCursor *cursor, Slice key, bool *out_found, KvRow *out_row)
{
    EngineRow row = {.key = key_of(key)};
    int code = mdb_cursor_get(cursor->engine, &row.key, &row.value, MDB_SET_RANGE);
    if (code == 0)
        code = mdb_cursor_get(cursor->engine, &row.key, &row.value, MDB_PREV);
    else if (code == MDB_NOTFOUND)
        code = mdb_cursor_get(cursor->engine, &row.key, &row.value, MDB_LAST);
    return arrive(cursor, code, &row, out_found, out_row);
}

static inline Error arrive(KvCursor *cursor, int code, const EngineRow *row, bool *out_found,
                           KvRow *out_row)
{
    if (code && code != MDB_NOTFOUND) return fail_txn(cursor->txn, kv_error_of(code));
    cursor->is_lost = code == MDB_NOTFOUND;
    *out_found = code == 0;
    if (code) return ERROR_NONE;

    out_row->key = slice(row->key.mv_data, row->key.mv_size);
    out_row->value = slice(row->value.mv_data, row->value.mv_size);
    if (cursor->txn->is_write) remember_place(cursor, out_row->key);
    return ERROR_NONE;
}

static void remember_place(KvCursor *cursor, Slice key)
{
    assert(key.size <= sizeof cursor->key);
    cursor->write_count = cursor->txn->write_count;
    cursor->key_bytes = key.size;
    memcpy(cursor->key, key.bytes, key.size);
}
