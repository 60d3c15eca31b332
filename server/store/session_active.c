// by_active: moves and deletes rows and keeps the invariant of session_active.h.
//
// Normally a row moves to the end. Only a time that a caller has set can place it further to the
// front, between the old key of a row and that row's true (last_active_at, ID). The row in front is
// then first moved to its true key. Moving one row is enough: by the invariant, the true key of the
// row before it is below the key it had, so below the new key.

#include "store/session_active.h"

#include "store/planted.h"
#include "store/record.h"
#include "wire/wire.h"

static Error last_active_of(Txn *txn, Ulid id, int64_t *out)
{
    Key key = key_session(id, SESSION_ROW_HEAD);
    Slice rest;
    bool found;
    Error error = record_get_first(txn, TABLE_SESSIONS, &key, &found, &rest);
    if (error) return error;
    WireField field;
    if (found && wire_find(rest, FIELD_SESSION_LAST_ACTIVE_AT, &field)) {
        *out = (int64_t)field.value;
        return ERROR_NONE;
    }
    return error_say(txn->detail, ERROR_CORRUPT, "by_active names a session without a head record");
}

// Finds the row of a session: the last one whose key is not greater than (last_active_at, ID).
static Error find_row(Txn *txn, KvCursor *cursor, Ulid id, int64_t last_active_at, Key *out)
{
    Key bound = key_by_active(last_active_at, ulid_next(id));
    KvRow row;
    bool found;
    Error error = kv_seek_before(cursor, key_slice(&bound), &found, &row);
    if (error) return error;
    if (!found || row.key.size != KEY_BY_ACTIVE_BYTES || !ulid_equal(key_id_at(row.key, 8), id)) {
        return error_say(txn->detail, ERROR_CORRUPT, "by_active has no row for a session");
    }
    out->size = 0;
    key_add(out, row.key.bytes, row.key.size);
    return ERROR_NONE;
}

static Error is_last(KvCursor *cursor, const Key *key, bool *out)
{
    KvRow row;
    bool found;
    Error error = kv_seek_last(cursor, &found, &row);
    if (error) return error;
    *out = found && slice_equal(row.key, key_slice(key));
    return ERROR_NONE;
}

// Moves the row in front of `key` to its true key, unless its true key is below `key` anyway. A
// neighbour whose head is damaged stays where it is: it must not keep other sessions from writing.
static Error settle_neighbour(Txn *txn, KvCursor *cursor, const Key *key)
{
    KvRow row;
    bool found;
    Error error = kv_seek_before(cursor, key_slice(key), &found, &row);
    if (error || !found) return error;
    if (row.key.size != KEY_BY_ACTIVE_BYTES) return kv_refuse_key(cursor, row.key);
    Key old_key = {.size = 0};
    key_add(&old_key, row.key.bytes, row.key.size);
    Ulid neighbour = key_id_at(row.key, 8);
    int64_t last_active_at = 0;
    error = last_active_of(txn, neighbour, &last_active_at);
    if (error) return error == ERROR_CORRUPT ? ERROR_NONE : error;
    Key true_key = key_by_active(last_active_at, neighbour);
    bool is_settled = memcmp(true_key.bytes, key->bytes, KEY_BY_ACTIVE_BYTES) < 0;
    if (PLANTED(4, true, is_settled)) return ERROR_NONE;
    error = txn_delete(txn, TABLE_BY_ACTIVE, &old_key);
    if (error) return error;
    return txn_put(txn, TABLE_BY_ACTIVE, &true_key, (Slice){NULL, 0});
}

Error session_move_active(Txn *txn, Ulid id, int64_t old_ms, int64_t new_ms)
{
    if (old_ms == new_ms) return ERROR_NONE;
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    Error error = kv_cursor_open(txn->kv, TABLE_BY_ACTIVE, &cursor);
    if (error) return error;
    if (old_ms != SESSION_IS_NEW) {
        Key old_key;
        bool stays = false;
        error = find_row(txn, cursor, id, old_ms, &old_key);
        if (!error && new_ms > old_ms) error = is_last(cursor, &old_key, &stays);
        if (error || stays) return error;
        error = txn_delete(txn, TABLE_BY_ACTIVE, &old_key);
        if (error) return error;
    }
    Key new_key = key_by_active(new_ms, id);
    error = settle_neighbour(txn, cursor, &new_key);
    if (error) return error;
    return txn_put(txn, TABLE_BY_ACTIVE, &new_key, (Slice){NULL, 0});
}

Error session_drop_active(Txn *txn, Ulid id, int64_t last_active_at)
{
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    Error error = kv_cursor_open(txn->kv, TABLE_BY_ACTIVE, &cursor);
    if (error) return error;
    Key key;
    error = find_row(txn, cursor, id, last_active_at, &key);
    if (error) return error;
    return txn_delete(txn, TABLE_BY_ACTIVE, &key);
}
