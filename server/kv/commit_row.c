// The commit row. Its integers are big-endian.

#include "kv/commit_row.h"

#include "base/bytes.h"
#include "kv/stored_row.h"

static MDB_val key_of_row(uint8_t bytes[STORED_KEY_BYTES_MAX])
{
    return stored_key(KV_TABLE_BYTE, slice_of("commit"), bytes);
}

Error commit_row_get(KvTxn *txn, bool *out_found, CommitRow *out)
{
    uint8_t key_bytes[STORED_KEY_BYTES_MAX];
    MDB_val key = key_of_row(key_bytes), stored;
    int code = mdb_get(txn->lmdb, txn->kv->tree, &key, &stored);
    if (code && code != MDB_NOTFOUND) return kv_txn_fail(txn, code, "read");
    *out_found = code == 0;
    if (code) return ERROR_NONE;

    Slice value;
    Error error = stored_row_open(txn, &key, &stored, &value);
    if (error) return error;
    if (value.size != COMMIT_ROW_BYTES) {
        return error_say(txn->detail, ERROR_CORRUPT, "the commit row has %zu bytes", value.size);
    }
    out->place.position = bytes_get_u64(value.bytes);
    memcpy(out->place.chain.bytes, value.bytes + 8, HASH_BYTES);
    out->log_key = bytes_get_u64(value.bytes + 8 + HASH_BYTES);
    const uint8_t *rows = value.bytes + 16 + HASH_BYTES;
    for (size_t i = 0; i < KV_TABLES_MAX; i++)
        out->rows[i] = bytes_get_u64(rows + 8 * i);
    return ERROR_NONE;
}

Error commit_row_put(KvTxn *txn, LogPlace place)
{
    const Kv *kv = txn->kv;
    CommitRow row = {.place = {.position = 0}};
    bool found;
    Error error = commit_row_get(txn, &found, &row);
    if (error) return error;
    for (size_t i = 0; i < kv->table_count; i++)
        row.rows[kv->tables[i].number] += (uint64_t)txn->rows_added[i];

    uint8_t key_bytes[STORED_KEY_BYTES_MAX], bytes[COMMIT_ROW_BYTES];
    bytes_put_u64(bytes, place.position);
    memcpy(bytes + 8, place.chain.bytes, HASH_BYTES);
    bytes_put_u64(bytes + 8 + HASH_BYTES, kv->log_key);
    for (size_t i = 0; i < KV_TABLES_MAX; i++)
        bytes_put_u64(bytes + 16 + HASH_BYTES + 8 * i, row.rows[i]);
    MDB_val key = key_of_row(key_bytes);
    int code = stored_row_put(txn->lmdb, kv->tree, NULL, &key, slice(bytes, sizeof(bytes)), 0);
    return code ? kv_txn_fail(txn, code, "write") : ERROR_NONE;
}
