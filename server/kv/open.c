// Opens and closes the tables of a store's file.

#include <stdlib.h>
#include <string.h>

#include "kv/durable/data_file.h"
#include "kv/durable/file_names.h"
#include "kv/durable/flush.h"
#include "kv/durable/lmdb_error.h"
#include "kv/durable/ownership.h"
#include "kv/kv_fields.h"

static Error open_tables(Kv *kv, const KvOptions *options, ErrorDetail *detail);
static bool has_other_mark(MDB_txn *txn, const KvOptions *options);

Error kv_open(const KvOptions *options, ErrorDetail *detail, Kv **out_kv)
{
    assert(options->table_count > 0 && options->table_count <= KV_TABLES_MAX);
    Kv *kv = aligned_alloc(_Alignof(Kv), sizeof(Kv));
    if (!kv) return error_say(detail, ERROR_OUT_OF_MEMORY, "no memory to open the store");
    memset(kv, 0, sizeof(*kv));
    kv->seam = options->seam;
    kv->table_names = options->table_names;
    DataFileOptions file_options = options->file;
    file_options.tables_max = options->table_count;
    Error error = data_file_open(&file_options, detail, &kv->file);
    if (!error) {
        kv->lmdb = kv->file->lmdb;
        error = open_tables(kv, options, detail);
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
    data_file_close(kv->file);
    free(kv);
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

// Makes the tables that are missing. A read-only store must have them all; a file with another mark
// may lack some.
static Error open_tables(Kv *kv, const KvOptions *options, ErrorDetail *detail)
{
    bool is_read_only = options->file.read_only;
    MDB_txn *txn;
    int code = mdb_txn_begin(kv->lmdb, NULL, is_read_only ? MDB_RDONLY : 0, &txn);
    const char *name = KV_FILE_DATA;
    if (code == 0) {
        bool is_other = has_other_mark(txn, options);
        unsigned flags = is_read_only || is_other ? 0 : MDB_CREATE;
        for (size_t i = 0; i < options->table_count && code == 0; i++) {
            name = options->table_names[i];
            code = mdb_dbi_open(txn, name, flags, &kv->tables[i]);
            if (code == MDB_NOTFOUND && is_other) code = 0;
        }
        Error lost = ERROR_NONE;
        if (code == 0 && !is_read_only)
            lost = ownership_note_commit(kv->file, mdb_txn_id(txn), detail);
        if (code || lost)
            mdb_txn_abort(txn);
        else
            code = mdb_txn_commit(txn); // also of a reader: an abort would close the tables
        if (lost) return lost;
    }
    MDB_envinfo info;
    if (code == 0 && kv->file->flusher && mdb_env_info(kv->lmdb, &info) == 0)
        flush_committed(kv->file->flusher, info.me_last_txnid, 0);
    // A transaction that only asked for tables goes bad on pages that are not what they should be.
    bool is_broken = code == MDB_NOTFOUND || code == MDB_BAD_TXN;
    if (code) {
        return error_say(detail, is_broken ? ERROR_CORRUPT : lmdb_error_of(code),
                         "cannot open %s in %s/" KV_FILE_DATA ": %s", name, options->file.directory,
                         mdb_strerror(code));
    }
    kv->table_count = (unsigned)options->table_count;
    return ERROR_NONE;
}

static bool has_other_mark(MDB_txn *txn, const KvOptions *options)
{
    const KvMark *mark = &options->mark;
    MDB_val key = kv_value(mark->key);
    MDB_val value;
    MDB_dbi table;
    if (mark->key.size == 0 ||
        mdb_dbi_open(txn, options->table_names[mark->table], 0, &table) != 0 ||
        mdb_get(txn, table, &key, &value) != 0) {
        return false;
    }
    return value.mv_size != mark->value.size ||
           memcmp(value.mv_data, mark->value.bytes, value.mv_size) != 0;
}
