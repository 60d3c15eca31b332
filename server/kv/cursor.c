// Cursors, on LMDB's.

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "kv/kv_fields.h"

// LMDB moves its cursors when rows under them are written, but not always to where the walk should
// go on (a row deleted and another put in its place: tests/kv/kv_cursor_test.c). So in a write
// transaction a cursor keeps its key, and seeks its place again after a write.
struct KvCursor {
    KvTxn *txn;
    MDB_cursor *lmdb;
    KvTable table;
    bool is_lost;       // the last movement found nothing; only a seek leads back
    size_t write_count; // the transaction's, at the last movement
    size_t key_bytes;   // 0: not moved yet, or the transaction only reads
    uint8_t key[KEY_BYTES_MAX];
};

typedef struct LmdbRow {
    MDB_val key;
    MDB_val value;
} LmdbRow;

static Error step_cursor(KvCursor *cursor, MDB_cursor_op movement, bool *out_found, KvRow *out_row);
static Error move_after(KvCursor *cursor, Slice key, bool *out_found, KvRow *out_row);
static Error move_before(KvCursor *cursor, Slice key, bool *out_found, KvRow *out_row);
static inline Error arrive(KvCursor *cursor, int code, const LmdbRow *row, bool *out_found,
                           KvRow *out_row);
static void remember_place(KvCursor *cursor, Slice key);

Error kv_cursor_open(KvTxn *txn, KvTable table, KvCursor **out_cursor)
{
    KvCursor *cursor = malloc(sizeof(*cursor));
    if (!cursor) return error_say_errno(txn->detail, ENOMEM, "cannot open a cursor");
    cursor->txn = txn; // field by field, because the key's bytes need not be cleared
    cursor->table = table;
    cursor->is_lost = false;
    cursor->write_count = txn->write_count;
    cursor->key_bytes = 0;
    int code = mdb_cursor_open(txn->lmdb, kv_table(txn, table), &cursor->lmdb);
    if (code) {
        free(cursor);
        return kv_txn_fail(txn, code, "read");
    }
    txn->cursor_count++;
    *out_cursor = cursor;
    return ERROR_NONE;
}

void kv_cursor_close(KvCursor *cursor)
{
    if (!cursor) return;
    mdb_cursor_close(cursor->lmdb);
    cursor->txn->cursor_count--;
    free(cursor);
}

Error kv_seek(KvCursor *cursor, Slice key, bool *out_found, KvRow *out_row)
{
    Error error = kv_ask_seam(cursor->txn->kv, KV_SEEK, cursor->table);
    if (error) return error;

    LmdbRow row = {.key = kv_key(key)};
    int code = mdb_cursor_get(cursor->lmdb, &row.key, &row.value, MDB_SET_RANGE);
    return arrive(cursor, code, &row, out_found, out_row);
}

Error kv_seek_before(KvCursor *cursor, Slice key, bool *out_found, KvRow *out_row)
{
    Error error = kv_ask_seam(cursor->txn->kv, KV_SEEK, cursor->table);
    if (error) return error;

    return move_before(cursor, key, out_found, out_row);
}

Error kv_seek_last(KvCursor *cursor, bool *out_found, KvRow *out_row)
{
    Error error = kv_ask_seam(cursor->txn->kv, KV_SEEK, cursor->table);
    if (error) return error;

    LmdbRow row;
    int code = mdb_cursor_get(cursor->lmdb, &row.key, &row.value, MDB_LAST);
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
    Error error = kv_ask_seam(cursor->txn->kv, KV_SEEK, cursor->table);
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
    LmdbRow row;
    int code = mdb_cursor_get(cursor->lmdb, &row.key, &row.value, movement);
    return arrive(cursor, code, &row, out_found, out_row);
}

// Moves to the row at or after the key, and one further if it has this very key.
static Error move_after(KvCursor *cursor, Slice key, bool *out_found, KvRow *out_row)
{
    LmdbRow row = {.key = kv_key(key)};
    int code = mdb_cursor_get(cursor->lmdb, &row.key, &row.value, MDB_SET_RANGE);
    if (code == 0 && slice_equal(slice(row.key.mv_data, row.key.mv_size), key))
        code = mdb_cursor_get(cursor->lmdb, &row.key, &row.value, MDB_NEXT);
    return arrive(cursor, code, &row, out_found, out_row);
}

// Moves to the row at or after the key, and one back from there; past all rows, to the last.
static Error move_before(KvCursor *cursor, Slice key, bool *out_found, KvRow *out_row)
{
    LmdbRow row = {.key = kv_key(key)};
    int code = mdb_cursor_get(cursor->lmdb, &row.key, &row.value, MDB_SET_RANGE);
    if (code == 0)
        code = mdb_cursor_get(cursor->lmdb, &row.key, &row.value, MDB_PREV);
    else if (code == MDB_NOTFOUND)
        code = mdb_cursor_get(cursor->lmdb, &row.key, &row.value, MDB_LAST);
    return arrive(cursor, code, &row, out_found, out_row);
}

static inline Error arrive(KvCursor *cursor, int code, const LmdbRow *row, bool *out_found,
                           KvRow *out_row)
{
    if (code && code != MDB_NOTFOUND) return kv_txn_fail(cursor->txn, code, "read");
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

Error kv_refuse_key(KvCursor *cursor, Slice key)
{
    return error_say(cursor->txn->detail, ERROR_CORRUPT, "a key of %zu bytes is in the table %s",
                     key.size, cursor->txn->kv->table_names[cursor->table]);
}
