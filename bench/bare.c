// The peer of an append.

#include "bare.h"

#include <stdio.h>
#include <stdlib.h>

#include "kv/checksum.h"
#include "kv/commit_row.h"
#include "store/tables.h"

enum { KEY_BYTES = 1 + KEY_SIZE_MAX, COMMIT_BYTES = COMMIT_ROW_BYTES + CHECKSUM_BYTES };

// Writes the key of a row as it is stored.
static MDB_val key_in(StoreTable table, const void *key, size_t size, uint8_t bytes[KEY_BYTES])
{
    bytes[0] = (uint8_t)(KV_TABLE_BYTE + STORE_TABLE_OPTIONS[table].number);
    memcpy(bytes + 1, key, size);
    return (MDB_val){1 + size, bytes};
}

// Finds a table's last row. Returns false if it has none. `key` is then without the table's byte.
static bool last_row(const Bare *bare, MDB_txn *txn, StoreTable table, MDB_val *key, MDB_val *value)
{
    MDB_cursor *cursor;
    uint8_t byte = (uint8_t)(KV_TABLE_BYTE + STORE_TABLE_OPTIONS[table].number + 1);
    *key = (MDB_val){1, &byte};
    require(mdb_cursor_open(txn, bare->tree, &cursor) == 0, "mdb_cursor_open");
    bool is_end = mdb_cursor_get(cursor, key, value, MDB_SET_RANGE) == MDB_NOTFOUND;
    require(mdb_cursor_get(cursor, key, value, is_end ? MDB_LAST : MDB_PREV) == 0, "no row");
    mdb_cursor_close(cursor);
    bool is_found = *(uint8_t *)key->mv_data == byte - 1;
    *key = (MDB_val){key->mv_size - 1, (uint8_t *)key->mv_data + 1};
    return is_found;
}

static void take_active_keys(Bare *bare, MDB_txn *txn, size_t session_count)
{
    MDB_cursor *cursor;
    uint8_t byte = (uint8_t)(KV_TABLE_BYTE + STORE_TABLE_OPTIONS[TABLE_BY_ACTIVE].number);
    MDB_val key = {1, &byte}, value;
    require(mdb_cursor_open(txn, bare->tree, &cursor) == 0, "mdb_cursor_open");
    for (int failed = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
         !failed && *(uint8_t *)key.mv_data == byte;
         failed = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
        const uint8_t *active = (uint8_t *)key.mv_data + 1;
        for (size_t i = 0; i < session_count; i++) {
            if (memcmp(active + 8, bare->ids[i].bytes, ULID_BYTES) == 0) {
                memcpy(bare->active_keys[i], active, sizeof(bare->active_keys[i]));
            }
        }
    }
    mdb_cursor_close(cursor);
}

void bare_open(Bare *bare, const char *path, const IdText *sessions, size_t session_count)
{
    MDB_txn *txn;
    MDB_val key, value;
    require(session_count <= BARE_SESSIONS_MAX, "too many sessions");
    require(mdb_env_create(&bare->env) == 0, "mdb_env_create");
    mdb_env_set_mapsize(bare->env, (size_t)1 << 37);
    require(mdb_env_open(bare->env, path, MDB_NOTLS, 0600) == 0, "mdb_env_open %s", path);
    require(mdb_txn_begin(bare->env, NULL, 0, &txn) == 0, "mdb_txn_begin");
    require(mdb_dbi_open(txn, NULL, 0, &bare->tree) == 0, "mdb_dbi_open");
    for (size_t i = 0; i < session_count; i++) {
        require(ulid_parse(slice_of(sessions[i].text), &bare->ids[i]), "an id");
    }
    require(last_row(bare, txn, TABLE_MESSAGES, &key, &value), "no message");
    bare->message_bytes = value.mv_size;
    require(last_row(bare, txn, TABLE_EVENTS, &key, &value), "no event");
    bare->event_bytes = value.mv_size;
    bare->sequence = bytes_get_u64(key.mv_data);
    require(last_row(bare, txn, TABLE_MESSAGE_OWNER, &key, &value), "no message");
    memcpy(bare->last_id.bytes, key.mv_data, ULID_BYTES);
    take_active_keys(bare, txn, session_count);
    bool has_operations = last_row(bare, txn, TABLE_OPERATIONS, &key, &value);
    bare->operation_bytes = has_operations ? value.mv_size : 0;
    random_seed_system(&bare->random);
    require(mdb_txn_commit(txn) == 0, "mdb_txn_commit");
}

void bare_close(Bare *bare)
{
    mdb_env_close(bare->env);
}

static void put(const Bare *bare, MDB_txn *txn, StoreTable table, const Key *key, const void *bytes,
                size_t size)
{
    uint8_t key_bytes[KEY_BYTES];
    MDB_val k = key_in(table, key->bytes, key->size, key_bytes);
    MDB_val v = {size, (void *)(uintptr_t)bytes};
    require(mdb_put(txn, bare->tree, &k, &v, 0) == 0, "mdb_put");
}

static void move_active(Bare *bare, MDB_txn *txn, size_t index)
{
    uint8_t bytes[KEY_BYTES];
    static const uint8_t NOTHING[CHECKSUM_BYTES];
    MDB_val old =
        key_in(TABLE_BY_ACTIVE, bare->active_keys[index], sizeof(bare->active_keys[index]), bytes);
    require(mdb_del(txn, bare->tree, &old, NULL) == 0, "mdb_del");
    Key key =
        key_by_active(ulid_time_ms(bare->last_id) + (int64_t)bare->sequence, bare->ids[index]);
    put(bare, txn, TABLE_BY_ACTIVE, &key, NOTHING, sizeof(NOTHING));
    memcpy(bare->active_keys[index], key.bytes, key.size);
}

// Its two rows, under an id like libtine's.
static void put_operation(Bare *bare, MDB_txn *txn, const uint8_t *bytes)
{
    char id[33 + CHECKSUM_BYTES] = "";
    snprintf(id, sizeof(id), "%016llx%016llx", (unsigned long long)random_next(&bare->random),
             (unsigned long long)random_next(&bare->random));
    Key key = key_operation(slice_of(id));
    key = key_with_chunk(&key, 0);
    put(bare, txn, TABLE_OPERATIONS, &key, bytes, bare->operation_bytes);
    bare->last_id = ulid_next(bare->last_id);
    key = key_of_id(bare->last_id);
    put(bare, txn, TABLE_OPERATIONS_BY_AGE, &key, id, 32 + CHECKSUM_BYTES);
}

// The rows of one append: head, message, owner, event, and by_active's two.
static void append_one(Bare *bare, MDB_txn *txn, size_t index, bool moves_active)
{
    static uint8_t bytes[8192];
    bare->last_id = ulid_next(bare->last_id);
    Key record_key = key_session(bare->ids[index], SESSION_ROW_HEAD);
    Key key = key_with_chunk(&record_key, 0);
    uint8_t key_bytes[KEY_BYTES];
    MDB_val k = key_in(TABLE_SESSIONS, key.bytes, key.size, key_bytes), head;
    require(mdb_get(txn, bare->tree, &k, &head) == 0, "mdb_get");
    memcpy(bytes, head.mv_data, head.mv_size);
    put(bare, txn, TABLE_SESSIONS, &key, bytes, head.mv_size);

    record_key = key_of_ids(bare->ids[index], bare->last_id);
    key = key_with_chunk(&record_key, 0);
    put(bare, txn, TABLE_MESSAGES, &key, bytes, bare->message_bytes);
    key = key_of_id(bare->last_id);
    put(bare, txn, TABLE_MESSAGE_OWNER, &key, bytes, ULID_BYTES + CHECKSUM_BYTES);
    record_key = key_event(++bare->sequence);
    key = key_with_chunk(&record_key, 0);
    put(bare, txn, TABLE_EVENTS, &key, bytes, bare->event_bytes);
    if (moves_active) move_active(bare, txn, index);
    if (bare->operation_bytes > 0) put_operation(bare, txn, bytes);
}

void bare_append(Bare *bare, size_t count, bool moves_active)
{
    MDB_txn *txn;
    require(mdb_txn_begin(bare->env, NULL, 0, &txn) == 0, "mdb_txn_begin");
    for (size_t i = 0; i < count; i++)
        append_one(bare, txn, i, moves_active);
    uint8_t state[ULID_BYTES + 16 + CHECKSUM_BYTES] = {0}, commit[COMMIT_BYTES] = {0};
    Key key = {.size = 0};
    key_add(&key, "state", 5);
    put(bare, txn, TABLE_META, &key, state, sizeof(state));
    uint8_t commit_key[] = "\x80"
                           "commit";
    MDB_val k = {sizeof(commit_key) - 1, commit_key}, v = {sizeof(commit), commit};
    require(mdb_put(txn, bare->tree, &k, &v, 0) == 0, "mdb_put");
    require(mdb_txn_commit(txn) == 0, "mdb_txn_commit");
}
