// The statistics of a store: its file, the readers, and the rows of each table.

#include <string.h>

#include "kv/commit_row.h"
#include "kv/durable/reader_slots.h"
#include "kv/kv_fields.h"

static Error read_rows(KvTxn *txn, uint64_t out_rows[KV_TABLES_MAX]);
static Error count_free_bytes(KvTxn *txn, uint64_t page_bytes, uint64_t *out_bytes);

Error kv_stats(Kv *kv, ErrorDetail *detail, KvStats *out_stats)
{
    ReaderSlots readers; // before our own transaction, which would be counted
    reader_slots_survey(kv->file, &readers);

    CLEANUP(kv_abortp) KvTxn *txn = NULL;
    Error error = kv_begin(kv, /* is_write= */ false, detail, &txn);
    if (error) return error;

    MDB_envinfo info;
    MDB_stat tree;
    int code = mdb_env_info(kv->lmdb, &info);
    if (code == 0) code = mdb_env_stat(kv->lmdb, &tree);
    if (code) return kv_txn_fail(txn, code, "read");
    KvStats stats = {
        .map_bytes = info.me_mapsize,
        .used_bytes = (info.me_last_pgno + 1) * tree.ms_psize,
        .readers = readers.count,
        .readers_max = info.me_maxreaders - reader_slots_of_pins(kv->file->is_ephemeral),
        .last_txn = info.me_last_txnid,
        .oldest_reader_txn = readers.count ? readers.oldest_txn : info.me_last_txnid,
        .oldest_reader_pid = readers.oldest_pid,
    };
    error = read_rows(txn, stats.rows);
    if (error) return error;
    error = count_free_bytes(txn, tree.ms_psize, &stats.free_bytes);
    if (error) return error;
    *out_stats = stats;
    return ERROR_NONE;
}

static Error read_rows(KvTxn *txn, uint64_t out_rows[KV_TABLES_MAX])
{
    CommitRow row;
    bool found;
    Error error = commit_row_get(txn, &found, &row);
    for (size_t i = 0; !error && found && i < txn->kv->table_count; i++)
        out_rows[i] = row.rows[txn->kv->tables[i].number];
    return error;
}

// The rows of the free list are arrays of page numbers, each with its count in front.
static Error count_free_bytes(KvTxn *txn, uint64_t page_bytes, uint64_t *out_bytes)
{
    enum { FREE_LIST = 0 }; // LMDB's handle for it, named in mdb_stat.c but not in lmdb.h
    MDB_cursor *cursor;
    int code = mdb_cursor_open(txn->lmdb, FREE_LIST, &cursor);
    if (code) return kv_txn_fail(txn, code, "read");

    uint64_t page_count = 0;
    MDB_val key;
    MDB_val pages;
    while ((code = mdb_cursor_get(cursor, &key, &pages, MDB_NEXT)) == 0) {
        size_t count = 0;
        if (pages.mv_size >= sizeof(count)) memcpy(&count, pages.mv_data, sizeof(count));
        page_count += count;
    }
    mdb_cursor_close(cursor);
    if (code != MDB_NOTFOUND) return kv_txn_fail(txn, code, "read");
    *out_bytes = page_count * page_bytes;
    return ERROR_NONE;
}
