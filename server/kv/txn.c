// Transactions, on LMDB.
//
// The tricky part is failure. LMDB poisons a transaction at its first error and then answers
// everything with MDB_BAD_TXN, which says nothing. So a write transaction remembers its first
// failure and returns that one again, up to and including the commit.

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "kv/durable/file_names.h"
#include "kv/durable/flush.h"
#include "kv/durable/lmdb_error.h"
#include "kv/durable/ownership.h"
#include "kv/durable/reader_slots.h"
#include "kv/kv_log.h"

static int begin_in_lmdb(Kv *kv, bool is_write, MDB_txn **out_lmdb);
static int begin_reader(Kv *kv, MDB_txn **out_lmdb);

static _Thread_local char this_thread; // its address tells threads apart

void kv_make_room(Kv *kv)
{
    reader_slots_clear_dead(kv->file);
    if (kv->file->flusher) flush_want(kv->file->flusher);
}

Error kv_txn_note_failure(KvTxn *txn, Error error)
{
    if (!txn->is_write) return error;
    if (txn->failure) return txn->failure;

    txn->failure = error;
    txn->write_count++;
    // A dead reader may hold the pages that are missing; the next transaction finds them then.
    if (error == ERROR_STORE_FULL) kv_make_room(txn->kv);
    return error;
}

__attribute__((cold)) Error kv_txn_fail(KvTxn *txn, int code, const char *operation)
{
    if (txn->failure) return txn->failure;
    const char *directory = txn->kv->file->directory;
    return kv_txn_note_failure(txn,
                               lmdb_fail(txn->detail, code, operation, directory, KV_FILE_DATA));
}

// A store whose log or file could not be written takes no more writes; one with too much that is
// not flushed waits. A relaxed store has its name checked by each flush of data.mdb, others here.
static Error admit(Kv *kv, ErrorDetail *detail)
{
    if (kv->log && atomic_load(&kv->log->has_failed)) {
        return error_say(detail, ERROR_IO, "%s", kv->log->failure.text);
    }
    Error error = kv->is_relaxed ? ERROR_NONE : ownership_check_name(kv->file, detail);
    return error || !kv->file->flusher ? error : flush_admit(kv->file->flusher, detail);
}

Error kv_begin(Kv *kv, bool is_write, ErrorDetail *detail, KvTxn **out_txn)
{
    assert(!(is_write && kv->file->is_read_only));
    if (data_file_is_of_parent(kv->file)) return data_file_refuse_child(detail);
    Error error = kv_ask_seam(kv, is_write ? KV_BEGIN_WRITE : KV_BEGIN_READ, 0);
    if (!error && is_write) error = admit(kv, detail);
    if (error) return error;

    KvTxn *txn = malloc(sizeof(*txn));
    int code = txn ? 0 : ENOMEM;
    if (txn) {
        memset(txn, 0, is_write ? sizeof(*txn) : offsetof(KvTxn, puts));
        txn->kv = kv;
        txn->is_write = is_write;
        txn->detail = detail;
        code = begin_in_lmdb(kv, is_write, &txn->lmdb);
        if (code == 0 && is_write) code = mdb_stat(txn->lmdb, kv->tree, &txn->stat);
    }
    if (code) {
        free(txn);
        return lmdb_fail(detail, code, "begin a transaction on", kv->file->directory, KV_FILE_DATA);
    }
    if (is_write) kv_log_begin(txn);
    atomic_fetch_add_explicit(&kv->txn_count, 1, memory_order_relaxed);
    if (is_write) error = ownership_check_txn(kv->file, mdb_txn_id(txn->lmdb), detail);
    if (error) {
        kv_abort(&txn);
        return error;
    }
    *out_txn = txn;
    return ERROR_NONE;
}

void kv_set_detail(KvTxn *txn, ErrorDetail *detail)
{
    txn->detail = detail;
}

static int begin_in_lmdb(Kv *kv, bool is_write, MDB_txn **out_lmdb)
{
    // LMDB's lock would wait for this very thread, forever.
    assert(!is_write || atomic_load(&kv->writer_thread) != &this_thread);

    int code = is_write ? mdb_txn_begin(kv->lmdb, NULL, 0, out_lmdb) : begin_reader(kv, out_lmdb);
    if (code == MDB_READERS_FULL && reader_slots_clear_dead(kv->file) > 0)
        code = begin_reader(kv, out_lmdb);
    if (code == MDB_MAP_RESIZED) atomic_store(&kv->file->is_outgrown, true);
    if (code == 0 && is_write) atomic_store(&kv->writer_thread, &this_thread);
    return code;
}

// A reader of LMDB takes the number T of the last commit, and then copies the roots from the meta
// page, one of two, that T is on. If it is held up in between for two commits, it copies the roots
// of T + 2, or some of these and some of T's: a state that is not on the disk yet, or none at all
// (8 readers beside 8 writers met it after minutes). The commit of T + 2 cannot have begun its page
// before that of T + 1 has ended. So a snapshot is good if, after the copy, the newest page is
// still T's, or if a reader that begins now still gets T. If neither holds, the new reader is
// judged instead.
static int begin_reader(Kv *kv, MDB_txn **out_lmdb)
{
    MDB_txn *reader;
    int code = mdb_txn_begin(kv->lmdb, NULL, MDB_RDONLY, &reader);
    while (code == 0) {
        MDB_envinfo info;
        MDB_txn *next = NULL;
        atomic_thread_fence(memory_order_acquire);
        code = mdb_env_info(kv->lmdb, &info);
        bool is_good = code == 0 && info.me_last_txnid <= mdb_txn_id(reader);
        if (code == 0 && !is_good) {
            code = mdb_txn_begin(kv->lmdb, NULL, MDB_RDONLY, &next);
            is_good = code == 0 && mdb_txn_id(next) == mdb_txn_id(reader);
            if (is_good) mdb_txn_abort(next);
        }
        if (is_good) {
            *out_lmdb = reader;
            return 0;
        }
        mdb_txn_abort(reader);
        reader = next;
    }
    return code;
}

void kv_abort(KvTxn **inout_txn)
{
    KvTxn *txn = *inout_txn;
    if (!txn) return;

    // In a child of fork the slot and the lock are the parent's. Ending would take them from it.
    MDB_txn *lmdb = data_file_is_of_parent(txn->kv->file) ? NULL : txn->lmdb;
    kv_txn_forget(txn);
    *inout_txn = NULL;
    if (lmdb) mdb_txn_abort(lmdb);
}

void kv_txn_forget(KvTxn *txn)
{
    assert(txn->cursor_count == 0);
    Kv *kv = txn->kv;
    if (txn->is_write && !data_file_is_of_parent(kv->file)) {
        assert(atomic_load(&kv->writer_thread) == &this_thread);
        atomic_store(&kv->writer_thread, NULL);
    }
    atomic_fetch_sub_explicit(&kv->txn_count, 1, memory_order_relaxed);
    free(txn);
}
