// Cursors, on LMDB's.

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "kv/stored_row.h"

enum { AHEAD_MAX = 8, LONG_VALUE_BYTES = 2000 };

typedef struct LmdbRow {
    MDB_val key;
    MDB_val value;
} LmdbRow;

// A cursor stays in its table: a row with another table's byte is an end.
//
// LMDB moves its cursors when rows under them are written, but not always to where the walk should
// go on (a row deleted and another put in its place: tests/kv/kv_cursor_test.c). So in a write
// transaction a cursor keeps its key, and seeks its place again after a write.
//
// In a read transaction kv_next reads some rows ahead of a long value. Such a value is on a page of
// its own, and the processor fetches what will be looked at there while the caller is busy with
// earlier rows. How many rows are read ahead doubles from one, so a short walk reads few too many.
struct KvCursor {
    KvTxn *txn;
    MDB_cursor *lmdb;
    KvTable table;
    uint8_t table_byte;
    bool is_new;        // not moved yet
    bool is_lost;       // the last movement found nothing; only a seek leads back
    size_t write_count; // the transaction's, at the last movement

    // Of a write transaction: the key of the last row.
    size_t key_bytes;
    uint8_t key[KEY_BYTES_MAX];

    // Of a read transaction.
    MDB_val last_key;               // stored key of the last row
    bool is_last_long;              // it has a value of at least LONG_VALUE_BYTES
    LmdbRow ahead[AHEAD_MAX];       // rows after it …
    unsigned ahead_at, ahead_count; // … of which these are still to come
    unsigned ahead_max;             // how many are read next
    int ahead_code;                 // what LMDB returned after the last of them
};

static Error step_cursor(KvCursor *cursor, MDB_cursor_op movement, bool *out_found, KvRow *out_row);
static void forget_ahead(KvCursor *cursor);
static int next_ahead(KvCursor *cursor, LmdbRow *out);
static Error move_to_first(KvCursor *cursor, bool *out_found, KvRow *out_row);
static Error move_to_last(KvCursor *cursor, bool *out_found, KvRow *out_row);
static Error move_after(KvCursor *cursor, MDB_val key, bool *out_found, KvRow *out_row);
static Error move_before(KvCursor *cursor, MDB_val key, bool *out_found, KvRow *out_row);
static inline Error arrive(KvCursor *cursor, int code, const LmdbRow *row, bool *out_found,
                           KvRow *out_row);
static Error check_border(KvCursor *cursor, const LmdbRow *row);
static void remember_place(KvCursor *cursor, Slice key);

Error kv_cursor_open(KvTxn *txn, KvTable table, KvCursor **out_cursor)
{
    KvCursor *cursor = malloc(sizeof(*cursor));
    if (!cursor) return error_say_errno(txn->detail, ENOMEM, "cannot open a cursor");
    cursor->txn = txn; // field by field, because the key's bytes need not be cleared
    cursor->table = table;
    cursor->table_byte = stored_table_byte(txn->kv, table);
    cursor->is_new = true;
    cursor->is_lost = false;
    cursor->write_count = txn->write_count;
    cursor->key_bytes = 0;
    forget_ahead(cursor);
    int code = mdb_cursor_open(txn->lmdb, txn->kv->tree, &cursor->lmdb);
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

    forget_ahead(cursor);
    uint8_t bytes[STORED_KEY_BYTES_MAX];
    LmdbRow row = {.key = stored_key(cursor->table_byte, key, bytes)};
    int code = mdb_cursor_get(cursor->lmdb, &row.key, &row.value, MDB_SET_RANGE);
    return arrive(cursor, code, &row, out_found, out_row);
}

Error kv_seek_before(KvCursor *cursor, Slice key, bool *out_found, KvRow *out_row)
{
    Error error = kv_ask_seam(cursor->txn->kv, KV_SEEK, cursor->table);
    if (error) return error;

    uint8_t bytes[STORED_KEY_BYTES_MAX];
    return move_before(cursor, stored_key(cursor->table_byte, key, bytes), out_found, out_row);
}

Error kv_seek_last(KvCursor *cursor, bool *out_found, KvRow *out_row)
{
    Error error = kv_ask_seam(cursor->txn->kv, KV_SEEK, cursor->table);
    return error ? error : move_to_last(cursor, out_found, out_row);
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
    if (cursor->is_new) {
        return movement == MDB_NEXT ? move_to_first(cursor, out_found, out_row)
                                    : move_to_last(cursor, out_found, out_row);
    }
    if (cursor->txn->is_write && cursor->write_count != cursor->txn->write_count) {
        uint8_t bytes[STORED_KEY_BYTES_MAX];
        Slice last = slice(cursor->key, cursor->key_bytes);
        MDB_val key = stored_key(cursor->table_byte, last, bytes);
        return movement == MDB_NEXT ? move_after(cursor, key, out_found, out_row)
                                    : move_before(cursor, key, out_found, out_row);
    }
    bool is_behind = cursor->ahead_at < cursor->ahead_count || cursor->ahead_code;
    if (movement == MDB_PREV && is_behind) {
        return move_before(cursor, cursor->last_key, out_found, out_row);
    }
    LmdbRow row;
    int code = movement == MDB_NEXT && !cursor->txn->is_write
                   ? next_ahead(cursor, &row)
                   : mdb_cursor_get(cursor->lmdb, &row.key, &row.value, movement);
    return arrive(cursor, code, &row, out_found, out_row);
}

static void forget_ahead(KvCursor *cursor)
{
    cursor->ahead_at = cursor->ahead_count = 0;
    cursor->ahead_max = 1;
    cursor->ahead_code = 0;
}

// Returns the next row, from those read ahead if there are any. The code is LMDB's.
static int next_ahead(KvCursor *cursor, LmdbRow *out)
{
    if (cursor->ahead_at == cursor->ahead_count && !cursor->ahead_code) {
        if (!cursor->is_last_long) {
            return mdb_cursor_get(cursor->lmdb, &out->key, &out->value, MDB_NEXT);
        }
        cursor->ahead_at = cursor->ahead_count = 0;
        while (cursor->ahead_count < cursor->ahead_max) {
            LmdbRow *row = &cursor->ahead[cursor->ahead_count];
            cursor->ahead_code = mdb_cursor_get(cursor->lmdb, &row->key, &row->value, MDB_NEXT);
            if (cursor->ahead_code) break;
            stored_row_fetch(&row->value);
            cursor->ahead_count++;
        }
        if (cursor->ahead_max < AHEAD_MAX) cursor->ahead_max *= 2;
    }
    if (cursor->ahead_at == cursor->ahead_count) return cursor->ahead_code;
    *out = cursor->ahead[cursor->ahead_at++];
    return 0;
}

// Moves to the first row at or after the table's byte.
static Error move_to_first(KvCursor *cursor, bool *out_found, KvRow *out_row)
{
    LmdbRow row = {.key = {.mv_size = 1, .mv_data = &cursor->table_byte}};
    int code = mdb_cursor_get(cursor->lmdb, &row.key, &row.value, MDB_SET_RANGE);
    return arrive(cursor, code, &row, out_found, out_row);
}

// Moves to the last row before the next table's byte.
static Error move_to_last(KvCursor *cursor, bool *out_found, KvRow *out_row)
{
    uint8_t next_byte = (uint8_t)(cursor->table_byte + 1);
    MDB_val key = {.mv_size = 1, .mv_data = &next_byte};
    return move_before(cursor, key, out_found, out_row);
}

// Moves to the row at or after the key, and one further if it has this very key.
static Error move_after(KvCursor *cursor, MDB_val key, bool *out_found, KvRow *out_row)
{
    LmdbRow row = {.key = key};
    int code = mdb_cursor_get(cursor->lmdb, &row.key, &row.value, MDB_SET_RANGE);
    if (code == 0 &&
        slice_equal(slice(row.key.mv_data, row.key.mv_size), slice(key.mv_data, key.mv_size)))
        code = mdb_cursor_get(cursor->lmdb, &row.key, &row.value, MDB_NEXT);
    return arrive(cursor, code, &row, out_found, out_row);
}

// Moves to the row at or after the key, and one back from there; past all rows, to the last.
static Error move_before(KvCursor *cursor, MDB_val key, bool *out_found, KvRow *out_row)
{
    forget_ahead(cursor);
    LmdbRow row = {.key = key};
    int code = mdb_cursor_get(cursor->lmdb, &row.key, &row.value, MDB_SET_RANGE);
    if (code == 0)
        code = mdb_cursor_get(cursor->lmdb, &row.key, &row.value, MDB_PREV);
    else if (code == MDB_NOTFOUND)
        code = mdb_cursor_get(cursor->lmdb, &row.key, &row.value, MDB_LAST);
    return arrive(cursor, code, &row, out_found, out_row);
}

__attribute__((always_inline)) static inline Error
arrive(KvCursor *cursor, int code, const LmdbRow *row, bool *out_found, KvRow *out_row)
{
    if (code && code != MDB_NOTFOUND) return kv_txn_fail(cursor->txn, code, "read");
    const uint8_t *key = row->key.mv_data;
    bool is_in_table = code == 0 && row->key.mv_size > 1 && key[0] == cursor->table_byte;
    cursor->is_new = false;
    cursor->is_lost = !is_in_table;
    *out_found = is_in_table;
    if (code || !is_in_table) return code ? ERROR_NONE : check_border(cursor, row);

    out_row->key = slice(key + 1, row->key.mv_size - 1);
    cursor->last_key = row->key;
    cursor->is_last_long = row->value.mv_size >= LONG_VALUE_BYTES;
    if (cursor->txn->is_write) remember_place(cursor, out_row->key);
    return stored_row_open(cursor->txn, &row->key, &row->value, &out_row->value);
}

// Checks the row of another table at which the walk ends. If only its table's byte was changed, and
// it was a row of this table, then more rows of this table may follow. (Another damage of that row
// does not concern this table.)
static Error check_border(KvCursor *cursor, const LmdbRow *row)
{
    uint8_t bytes[STORED_KEY_BYTES_MAX];
    size_t size = row->key.mv_size;
    if (size < 2 || size > sizeof bytes) return ERROR_NONE;
    memcpy(bytes, row->key.mv_data, size);
    bytes[0] = cursor->table_byte;
    MDB_val key = {.mv_size = size, .mv_data = bytes};
    return stored_row_is_right(&key, &row->value) ? stored_row_refuse(cursor->txn, &key)
                                                  : ERROR_NONE;
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
                     key.size, cursor->txn->kv->tables[cursor->table].name);
}
