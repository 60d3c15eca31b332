// Gets, puts and deletes of rows.
//
// These are the hottest calls of the daemon, so each adds only this to LMDB's: one branch for the
// seam, asserts on its arguments, the table's byte, the checksum, and the translation of the
// result.

#include <assert.h>

#include "kv/kv_log.h"
#include "kv/stored_row.h"

static Error put_row(KvTxn *txn, KvTable table, Slice key, Slice value, unsigned flags,
                     bool *out_is_put);
static Error delete_row(KvTxn *txn, KvTable table, Slice key, bool *out_found);

Error kv_get(KvTxn *txn, KvTable table, Slice key, bool *out_found, Slice *out_value)
{
    Error error = kv_ask_seam(txn->kv, KV_GET, table);
    if (error) return error;

    uint8_t bytes[STORED_KEY_BYTES_MAX];
    MDB_val lmdb_key = stored_key(stored_table_byte(txn->kv, table), key, bytes);
    MDB_val stored;
    int code = mdb_get(txn->lmdb, txn->kv->tree, &lmdb_key, &stored);
    if (code && code != MDB_NOTFOUND) return kv_txn_fail(txn, code, "read");
    if (code == 0) error = stored_row_open(txn, &lmdb_key, &stored, out_value);
    if (!error) *out_found = code == 0;
    return error;
}

Error kv_put(KvTxn *txn, KvTable table, Slice key, Slice value)
{
    bool is_put;
    return put_row(txn, table, key, value, 0, &is_put);
}

Error kv_put_new(KvTxn *txn, KvTable table, Slice key, Slice value, bool *out_is_put)
{
    return put_row(txn, table, key, value, MDB_NOOVERWRITE, out_is_put);
}

Error kv_delete(KvTxn *txn, KvTable table, Slice key, bool *out_found)
{
    return delete_row(txn, table, key, out_found);
}

size_t kv_write_count(const KvTxn *txn)
{
    return txn->write_count;
}

static void close_puts(KvTxn *txn, const MDB_cursor *except)
{
    for (uint32_t left = txn->tables_written; left; left &= left - 1) {
        MDB_cursor **cursor = &txn->puts[__builtin_ctz(left)];
        if (!*cursor || *cursor == except) continue;
        mdb_cursor_close(*cursor);
        *cursor = NULL;
    }
}

// Counts a put or a delete, and the rows that it added to its table.
static Error note_write(KvTxn *txn, KvTable table, size_t value_bytes, const MDB_cursor *put)
{
    size_t rows = txn->stat.ms_entries;
    size_t pages = txn->stat.ms_leaf_pages + txn->stat.ms_branch_pages;
    int code = mdb_stat(txn->lmdb, txn->kv->tree, &txn->stat);
    if (code) return kv_txn_fail(txn, code, "write");
    txn->rows_added[table] += (int64_t)(txn->stat.ms_entries - rows);
    txn->write_count++;
    txn->value_bytes += value_bytes;
    txn->tables_written |= UINT32_C(1) << table;
    // LMDB moves the cursors on pages that were split or merged, and has had mistakes in it.
    if (txn->stat.ms_leaf_pages + txn->stat.ms_branch_pages != pages) close_puts(txn, put);
    return ERROR_NONE;
}

// Rows that are put one after the other mostly lie so, too. A cursor that stays where it put the
// last row finds the place of the next one in its page, instead of coming down from the root. A
// table's first put makes no cursor, because a transaction of one call puts a row into each table.
static int put_cursor(KvTxn *txn, KvTable table, MDB_cursor **out_cursor)
{
    bool is_first = !(txn->tables_written >> table & 1);
    if (!is_first && !txn->puts[table]) {
        int code = mdb_cursor_open(txn->lmdb, txn->kv->tree, &txn->puts[table]);
        if (code) return code;
    }
    *out_cursor = txn->puts[table];
    return 0;
}

// Notes a row for the log, before it is written: a value may borrow from pages that a put moves.
static Error note_in_log(KvTxn *txn, KvTable table, bool is_put, Slice key, Slice value,
                         size_t *out_mark)
{
    *out_mark = 0;
    if (!txn->kv->log) return ERROR_NONE;
    LogRow row = {
        .is_put = is_put,
        .table = txn->kv->tables[table].number,
        .key = key,
        .value = value,
    };
    Error error = kv_log_note(txn, &row, out_mark);
    return error ? kv_txn_note_failure(txn, error) : ERROR_NONE;
}

// All puts of rows pass here.
static Error put_row(KvTxn *txn, KvTable table, Slice key, Slice value, unsigned flags,
                     bool *out_is_put)
{
    assert(txn->is_write);
    size_t mark;
    Error error = kv_ask_seam(txn->kv, KV_PUT, table);
    if (error) return kv_txn_note_failure(txn, error);
    error = note_in_log(txn, table, true, key, value, &mark);
    if (error) return error;

    uint8_t bytes[STORED_KEY_BYTES_MAX];
    MDB_val lmdb_key = stored_key(stored_table_byte(txn->kv, table), key, bytes);
    MDB_cursor *cursor;
    int code = put_cursor(txn, table, &cursor);
    if (code == 0) {
        code = stored_row_put(txn->lmdb, txn->kv->tree, cursor, &lmdb_key, value, flags);
    }
    if (code) kv_log_forget(txn, mark);
    if (code && code != MDB_KEYEXIST) return kv_txn_fail(txn, code, "write");
    *out_is_put = code == 0;
    return code ? ERROR_NONE : note_write(txn, table, value.size, cursor);
}

// All deletes of rows pass here.
static Error delete_row(KvTxn *txn, KvTable table, Slice key, bool *out_found)
{
    assert(txn->is_write);
    size_t mark;
    Error error = kv_ask_seam(txn->kv, KV_DELETE, table);
    if (error) return kv_txn_note_failure(txn, error);
    error = note_in_log(txn, table, false, key, (Slice){NULL, 0}, &mark);
    if (error) return error;

    close_puts(txn, NULL); // the pages that they are on may be merged with others
    uint8_t bytes[STORED_KEY_BYTES_MAX];
    MDB_val lmdb_key = stored_key(stored_table_byte(txn->kv, table), key, bytes);
    int code = mdb_del(txn->lmdb, txn->kv->tree, &lmdb_key, NULL);
    if (code) kv_log_forget(txn, mark);
    if (code && code != MDB_NOTFOUND) return kv_txn_fail(txn, code, "write");
    *out_found = code == 0;
    return code ? ERROR_NONE : note_write(txn, table, 0, NULL);
}
