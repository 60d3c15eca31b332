// What the LMDB environment says of itself, and of who reads it.

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kv/kv_lmdb.h"

typedef struct ReaderSurvey {
    unsigned count;
    uint64_t oldest_txn;
    long oldest_pid;
} ReaderSurvey;

static int survey_reader(const char *line, void *context);
static Error count_free_bytes(KvTxn *txn, uint64_t page_bytes, uint64_t *out_bytes);

Error kv_stats(Kv *kv, KvStats *out_stats)
{
    // Before our own transaction, which would be counted.
    ReaderSurvey survey = {.oldest_txn = UINT64_MAX};
    if (!kv_is_of_parent(kv)) mdb_reader_list(kv->env, survey_reader, &survey);

    CLEANUP(kv_abortp) KvTxn *txn = NULL;
    Error error = kv_begin(kv, /* is_write= */ false, &txn);
    if (error) return error;

    MDB_envinfo info;
    MDB_stat table;
    int code = mdb_env_info(kv->env, &info);
    if (code == 0) code = mdb_env_stat(kv->env, &table);
    if (code) return kv_error_of(code);
    KvStats stats = {
        .map_bytes = info.me_mapsize,
        .used_bytes = (info.me_last_pgno + 1) * table.ms_psize,
        .readers = survey.count,
        .readers_max = info.me_maxreaders,
        .last_txn = info.me_last_txnid,
        .oldest_reader_txn = survey.count ? survey.oldest_txn : info.me_last_txnid,
        .oldest_reader_pid = survey.oldest_pid,
    };
    for (unsigned i = 0; i < kv->table_count; i++) {
        code = mdb_stat(txn->engine, kv->tables[i], &table);
        if (code) return kv_error_of(code);
        stats.rows[i] = table.ms_entries;
    }
    error = count_free_bytes(txn, table.ms_psize, &stats.free_bytes);
    if (error) return error;
    *out_stats = stats;
    return ERROR_NONE;
}

// One line of LMDB's list: pid, thread, and the transaction or "-". Headings do not parse.
static int survey_reader(const char *line, void *context)
{
    ReaderSurvey *survey = context;
    uint64_t txn;
    long pid;
    if (sscanf(line, "%ld %*x %" SCNu64, &pid, &txn) != 2) return 0;
    survey->count++;
    if (txn >= survey->oldest_txn) return 0;
    survey->oldest_txn = txn;
    survey->oldest_pid = pid;
    return 0;
}

// The free list's rows are arrays of page numbers, their count in front.
static Error count_free_bytes(KvTxn *txn, uint64_t page_bytes, uint64_t *out_bytes)
{
    enum { FREE_LIST = 0 }; // LMDB's handle for it, named in mdb_stat.c but not in lmdb.h
    MDB_cursor *cursor;
    int code = mdb_cursor_open(txn->engine, FREE_LIST, &cursor);
    if (code) return kv_error_of(code);

    uint64_t page_count = 0;
    MDB_val key;
    MDB_val pages;
    while ((code = mdb_cursor_get(cursor, &key, &pages, MDB_NEXT)) == 0) {
        size_t count = 0;
        if (pages.mv_size >= sizeof count) memcpy(&count, pages.mv_data, sizeof count);
        page_count += count;
    }
    mdb_cursor_close(cursor);
    if (code != MDB_NOTFOUND) return kv_error_of(code);
    *out_bytes = page_count * page_bytes;
    return ERROR_NONE;
}

unsigned kv_clear_dead_readers(Kv *kv)
{
    if (kv_is_of_parent(kv)) return 0;
    int count = 0;
    if (mdb_reader_check(kv->env, &count)) return 0;
    return (unsigned)count;
}
