// Named tables, and the sign, which is the only row that is still in one.

#include "kv/named.h"

#include <errno.h>
#include <stdlib.h>

#include "kv/kv_fields.h"

struct KvNamed {
    KvTxn *txn;
    MDB_cursor *cursor; // NULL: there is no such table
    uint64_t rows;
};

static int open_cursor(KvNamed *named, const char *table)
{
    MDB_txn *lmdb = named->txn->lmdb;
    MDB_dbi handle;
    MDB_stat stat;
    int code = mdb_dbi_open(lmdb, table, 0, &handle);
    if (code == MDB_NOTFOUND) return 0;
    if (code == 0) code = mdb_stat(lmdb, handle, &stat);
    if (code == 0) named->rows = stat.ms_entries;
    return code ? code : mdb_cursor_open(lmdb, handle, &named->cursor);
}

Error kv_named_open(KvTxn *txn, const char *table, KvNamed **out)
{
    KvNamed *named = calloc(1, sizeof(*named));
    if (!named) return error_say_errno(txn->detail, ENOMEM, "cannot open a cursor");
    named->txn = txn;
    int code = open_cursor(named, table);
    if (code) {
        free(named);
        return kv_txn_fail(txn, code, "read");
    }
    txn->cursor_count++;
    *out = named;
    return ERROR_NONE;
}

void kv_named_close(KvNamed *named)
{
    if (!named) return;
    if (named->cursor) mdb_cursor_close(named->cursor);
    named->txn->cursor_count--;
    free(named);
}

uint64_t kv_named_rows(const KvNamed *named)
{
    return named->rows;
}

Error kv_named_next(KvNamed *named, bool *out_found, KvRow *out_row)
{
    Error error = kv_ask_seam(named->txn->kv, KV_SEEK, 0);
    if (error) return error;
    MDB_val key, value;
    int code = MDB_NOTFOUND;
    if (named->cursor) code = mdb_cursor_get(named->cursor, &key, &value, MDB_NEXT);
    if (code && code != MDB_NOTFOUND) return kv_txn_fail(named->txn, code, "read");
    *out_found = code == 0;
    if (code) return ERROR_NONE;
    out_row->key = slice(key.mv_data, key.mv_size);
    out_row->value = slice(value.mv_data, value.mv_size);
    return ERROR_NONE;
}

Error kv_get_sign(KvTxn *txn, bool *out_found, Slice *out_value)
{
    const KvSign *sign = &txn->kv->sign;
    MDB_val key = kv_value(sign->key), value;
    MDB_dbi handle;
    int code = mdb_dbi_open(txn->lmdb, sign->table, 0, &handle);
    if (code == 0) code = mdb_get(txn->lmdb, handle, &key, &value);
    if (code && code != MDB_NOTFOUND) return kv_txn_fail(txn, code, "read");
    *out_found = code == 0;
    if (code == 0) *out_value = slice(value.mv_data, value.mv_size);
    return ERROR_NONE;
}

Error kv_put_sign(KvTxn *txn)
{
    const KvSign *sign = &txn->kv->sign;
    MDB_val key = kv_value(sign->key), value = kv_value(sign->value);
    MDB_dbi handle;
    int code = mdb_dbi_open(txn->lmdb, sign->table, MDB_CREATE, &handle);
    if (code == 0) code = mdb_put(txn->lmdb, handle, &key, &value, 0);
    if (code == 0) code = mdb_stat(txn->lmdb, txn->kv->tree, &txn->stat);
    if (code) return kv_txn_fail(txn, code, "write");
    txn->write_count++;
    return ERROR_NONE;
}
