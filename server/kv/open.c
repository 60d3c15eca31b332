// Opens and closes a store's file.

#include <stdlib.h>
#include <string.h>

#include "kv/commit_row.h"
#include "kv/durable/data_file.h"
#include "kv/durable/file_names.h"
#include "kv/durable/flush.h"
#include "kv/durable/lmdb_error.h"
#include "kv/kv_log.h"

static Error open_tree(Kv *kv, ErrorDetail *detail, bool *out_is_other);
static Error check_tree(KvTxn *txn, bool *out_is_other);

Error kv_open(const KvOptions *options, ErrorDetail *detail, Kv **out_kv)
{
    assert(options->table_count > 0 && options->table_count < KV_TABLES_MAX);
    Kv *kv = aligned_alloc(_Alignof(Kv), sizeof(Kv));
    if (!kv) return error_say(detail, ERROR_OUT_OF_MEMORY, "no memory to open the store");
    memset(kv, 0, sizeof(*kv));
    kv->seam = options->seam;
    kv->tables = options->tables;
    kv->table_count = (unsigned)options->table_count;
    kv->sign = options->sign;
    kv->tags = calloc(CHECKSUM_TAGS, sizeof(*kv->tags));
    Error error = kv->tags ? data_file_open(&options->file, detail, &kv->file)
                           : error_say(detail, ERROR_OUT_OF_MEMORY, "no memory to open the store");
    if (!error) {
        kv->lmdb = kv->file->lmdb;
        bool is_other;
        error = open_tree(kv, detail, &is_other);
        if (!error && !is_other) error = flush_start(kv->file, &options->file, detail);
        if (!error && !is_other) error = kv_log_open(kv, &options->file, detail);
    }
    if (error) {
        kv_close(kv);
        return error;
    }
    *out_kv = kv;
    return ERROR_NONE;
}

void kv_close(Kv *kv)
{
    if (!kv) return;
    bool is_ours = kv->file && !data_file_is_of_parent(kv->file);
    assert(!is_ours || atomic_load(&kv->txn_count) == 0);
    data_file_close(kv->file); // its last flush may still trim the log
    if (is_ours) kv_log_close(kv);
    buffer_free(&kv->log_body);
    free(kv->tags);
    free(kv);
}

Error kv_settle(const KvOptions *options, ErrorDetail *detail)
{
    FileId id = {.inode = 0};
    Kv *kv = NULL;
    int code = file_at_identify(options->file.directory, KV_FILE_DATA, &id);
    if (code) return lmdb_fail(detail, code, "open", options->file.directory, KV_FILE_DATA);
    if (id.inode == 0) return ERROR_NONE;
    Error error = kv_open(options, detail, &kv);
    if (!error) error = flush_commits(kv->file, detail);
    kv_close(kv);
    return error;
}

DataFile *kv_file(const Kv *kv)
{
    return kv->file;
}

void kv_set_seam(Kv *kv, KvSeam seam)
{
    assert(atomic_load(&kv->txn_count) == 0);
    kv->seam = seam;
}

Error kv_survey(KvTxn *txn, bool *out_is_empty, bool *out_has_rows)
{
    MDB_stat stat;
    MDB_cursor *cursor;
    uint8_t first = KV_TABLE_BYTE;
    MDB_val key = {.mv_size = 1, .mv_data = &first}, value;
    int code = mdb_stat(txn->lmdb, txn->kv->tree, &stat);
    if (code == 0) code = mdb_cursor_open(txn->lmdb, txn->kv->tree, &cursor);
    if (code) return kv_txn_fail(txn, code, "read");
    code = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    mdb_cursor_close(cursor);
    if (code && code != MDB_NOTFOUND) return kv_txn_fail(txn, code, "read");
    *out_is_empty = stat.ms_entries == 0;
    *out_has_rows = code == 0;
    return ERROR_NONE;
}

static Error open_tree(Kv *kv, ErrorDetail *detail, bool *out_is_other)
{
    KvSeam seam = kv->seam;
    kv->seam = (KvSeam){NULL, NULL};
    KvTxn *txn = NULL;
    Error error = kv_begin(kv, /* is_write= */ false, detail, &txn);
    if (!error) {
        int code = mdb_dbi_open(txn->lmdb, NULL, 0, &kv->tree);
        error = code ? kv_txn_fail(txn, code, "read") : check_tree(txn, out_is_other);
        kv_abort(&txn);
    }
    kv->seam = seam;
    return error;
}

static Error has_other_sign(KvTxn *txn, bool *out)
{
    *out = false;
    const KvSign *sign = &txn->kv->sign;
    if (!sign->table) return ERROR_NONE;
    Slice value;
    bool found;
    Error error = kv_get_sign(txn, &found, &value);
    if (!error) *out = found && !slice_equal(value, sign->value);
    return error;
}

static Error check_tree(KvTxn *txn, bool *out_is_other)
{
    bool is_empty, has_rows, found = false;
    *out_is_other = false;
    Error error = kv_survey(txn, &is_empty, &has_rows);
    if (!error && !is_empty) error = has_other_sign(txn, out_is_other);
    if (error || !has_rows || *out_is_other) return error;
    CommitRow row;
    error = commit_row_get(txn, &found, &row);
    if (error || found) return error;
    return error_say(txn->detail, ERROR_CORRUPT,
                     "%s/" KV_FILE_DATA " is damaged: it has rows, but its commit row is missing",
                     txn->kv->file->directory);
}
