// Commits. The order is what durability rests on: room for the pages, then the log's record and its
// flush, then LMDB's commit, which is not flushed. So nothing is visible before it is durable, and
// a power cut leaves the log to bring the rows back.

#include <assert.h>

#include "kv/commit_row.h"
#include "kv/durable/commit_error.h"
#include "kv/durable/flush.h"
#include "kv/durable/ownership.h"
#include "kv/durable/room.h"
#include "kv/kv_log.h"

// Estimates the bytes of pages that the commit writes: two pages for each table, a leaf for each
// row, what the values fill, and LMDB's own.
static uint64_t page_bytes_of(const KvTxn *txn)
{
    enum { PAGE_BYTES = 4096, OWN_PAGES = 4 };
    uint64_t tables = (uint64_t)__builtin_popcount(txn->tables_written);
    return (OWN_PAGES + 2 * tables + txn->write_count) * PAGE_BYTES + txn->value_bytes;
}

// Stores what the transaction has changed in the log. LMDB then only has to make it visible.
static Error store(KvTxn *txn)
{
    Kv *kv = txn->kv;
    KvLogSeal seal;
    if (!kv->log) return commit_row_put(txn, kv->place);
    kv_log_seal(txn, &seal);
    Error error = commit_row_put(txn, log_record_place(&seal.record));
    if (!error) error = room_reserve(kv->file, page_bytes_of(txn), txn->detail);
    if (!error) error = kv_log_store(kv, &seal, txn->detail);
    return error;
}

// LMDB did not commit what the log has. If that changed nothing in the file, the record is taken
// back, so that it does not come back after a power cut.
__attribute__((cold)) static Error fail(Kv *kv, int code, ErrorDetail *detail)
{
    Error error = commit_error(kv->file, code, detail);
    if (error != ERROR_STORE_FULL) return error;
    kv_make_room(kv);
    if (kv->log && kv_log_take_back(kv, detail) != ERROR_NONE) return ERROR_IO;
    return error;
}

static Error commit_in_lmdb(KvTxn **inout_txn)
{
    KvTxn *txn = *inout_txn;
    Kv *kv = txn->kv;
    MDB_txn *lmdb = txn->lmdb;
    bool is_changed = txn->write_count > 0;
    uint64_t id = mdb_txn_id(lmdb);
    uint64_t bytes = page_bytes_of(txn);
    ErrorDetail *detail = txn->detail;
    uint64_t position = kv->place.position;
    kv_txn_forget(txn);
    *inout_txn = NULL;
    int code = mdb_txn_commit(lmdb);
    if (code) {
        ownership_forget_commit(kv->file, id);
        return fail(kv, code, detail);
    }
    if (kv->file->flusher && is_changed) flush_committed(kv->file->flusher, id, bytes, position);
    return ERROR_NONE;
}

Error kv_commit(KvTxn **inout_txn)
{
    KvTxn *txn = *inout_txn;
    Kv *kv = txn->kv;
    if (!txn->is_write || data_file_is_of_parent(kv->file)) {
        bool is_child = data_file_is_of_parent(kv->file);
        Error error = is_child ? data_file_refuse_child(txn->detail) : ERROR_NONE;
        kv_abort(inout_txn);
        return error;
    }
    Error error = txn->failure;
    if (!error) error = kv_ask_seam(kv, KV_COMMIT, 0);
    if (!error) error = ownership_note_commit(kv->file, mdb_txn_id(txn->lmdb), txn->detail);
    if (!error && txn->write_count > 0) error = store(txn);
    if (error) {
        ownership_forget_commit(kv->file, mdb_txn_id(txn->lmdb));
        if (error == ERROR_STORE_FULL && !txn->failure) kv_make_room(kv);
        kv_abort(inout_txn);
        return error;
    }
    error = commit_in_lmdb(inout_txn);
    if (!error) (void)kv_ask_seam(kv, KV_COMMITTED, 0);
    return error;
}
