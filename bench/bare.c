// The peer of an append.

#include "bare.h"

#include <stdio.h>
#include <stdlib.h>

#include "store/tables.h"

static MDB_dbi table_open(MDB_txn *txn, const char *name)
{
    MDB_dbi table;
    require(mdb_dbi_open(txn, name, 0, &table) == 0, "mdb_dbi_open %s", name);
    return table;
}

static void last_row(MDB_txn *txn, MDB_dbi table, MDB_val *key, MDB_val *value)
{
    MDB_cursor *cursor;
    require(mdb_cursor_open(txn, table, &cursor) == 0, "mdb_cursor_open");
    require(mdb_cursor_get(cursor, key, value, MDB_LAST) == 0, "a table is empty");
    mdb_cursor_close(cursor);
}

static void take_active_keys(Bare *bare, MDB_txn *txn, size_t session_count)
{
    MDB_cursor *cursor;
    MDB_val key, value;
    require(mdb_cursor_open(txn, bare->by_active, &cursor) == 0, "mdb_cursor_open");
    for (int failed = mdb_cursor_get(cursor, &key, &value, MDB_FIRST); !failed;
         failed = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
        for (size_t i = 0; i < session_count; i++) {
            if (memcmp((uint8_t *)key.mv_data + 8, bare->ids[i].bytes, ULID_BYTES) == 0) {
                memcpy(bare->active_keys[i], key.mv_data, sizeof(bare->active_keys[i]));
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
    mdb_env_set_maxdbs(bare->env, 32);
    mdb_env_set_mapsize(bare->env, (size_t)1 << 37);
    require(mdb_env_open(bare->env, path, MDB_NOTLS, 0600) == 0, "mdb_env_open %s", path);
    require(mdb_txn_begin(bare->env, NULL, 0, &txn) == 0, "mdb_txn_begin");
    bare->sessions = table_open(txn, "sessions");
    bare->messages = table_open(txn, "messages");
    bare->message_owner = table_open(txn, "message_owner");
    bare->events = table_open(txn, "events");
    bare->by_active = table_open(txn, "by_active");
    bare->meta = table_open(txn, "meta");
    bare->operations = table_open(txn, "operations");
    bare->operations_by_age = table_open(txn, "operations_by_age");
    for (size_t i = 0; i < session_count; i++) {
        require(ulid_parse(slice_of(sessions[i].text), &bare->ids[i]), "an id");
    }
    last_row(txn, bare->messages, &key, &value);
    bare->message_bytes = value.mv_size;
    last_row(txn, bare->events, &key, &value);
    bare->event_bytes = value.mv_size;
    bare->sequence = bytes_get_u64(key.mv_data);
    last_row(txn, bare->message_owner, &key, &value);
    memcpy(bare->last_id.bytes, key.mv_data, ULID_BYTES);
    take_active_keys(bare, txn, session_count);
    MDB_stat stat;
    require(mdb_stat(txn, bare->operations, &stat) == 0, "mdb_stat");
    bare->operation_bytes = 0;
    if (stat.ms_entries > 0) {
        last_row(txn, bare->operations, &key, &value);
        bare->operation_bytes = value.mv_size;
    }
    random_seed_system(&bare->random);
    require(mdb_txn_commit(txn) == 0, "mdb_txn_commit");
}

void bare_close(Bare *bare)
{
    mdb_env_close(bare->env);
}

static void put(MDB_txn *txn, MDB_dbi table, const Key *key, const void *bytes, size_t size)
{
    MDB_val k = {key->size, (void *)(uintptr_t)key->bytes}, v = {size, (void *)(uintptr_t)bytes};
    require(mdb_put(txn, table, &k, &v, 0) == 0, "mdb_put");
}

static void move_active(Bare *bare, MDB_txn *txn, size_t index)
{
    MDB_val old = {sizeof(bare->active_keys[index]), bare->active_keys[index]};
    require(mdb_del(txn, bare->by_active, &old, NULL) == 0, "mdb_del");
    Key key =
        key_by_active(ulid_time_ms(bare->last_id) + (int64_t)bare->sequence, bare->ids[index]);
    put(txn, bare->by_active, &key, NULL, 0);
    memcpy(bare->active_keys[index], key.bytes, key.size);
}

// Its two rows, under an id like libtine's.
static void put_operation(Bare *bare, MDB_txn *txn, const uint8_t *bytes)
{
    char id[33];
    snprintf(id, sizeof(id), "%016llx%016llx", (unsigned long long)random_next(&bare->random),
             (unsigned long long)random_next(&bare->random));
    Key key = key_operation(slice_of(id));
    key = key_with_chunk(&key, 0);
    put(txn, bare->operations, &key, bytes, bare->operation_bytes);
    bare->last_id = ulid_next(bare->last_id);
    key = key_of_id(bare->last_id);
    put(txn, bare->operations_by_age, &key, id, 32);
}

// The rows of one append: head, message, owner, event, and by_active's two.
static void append_one(Bare *bare, MDB_txn *txn, size_t index, bool moves_active)
{
    static uint8_t bytes[8192];
    bare->last_id = ulid_next(bare->last_id);
    Key record_key = key_session(bare->ids[index], SESSION_ROW_HEAD);
    Key key = key_with_chunk(&record_key, 0);
    MDB_val k = {key.size, key.bytes}, head;
    require(mdb_get(txn, bare->sessions, &k, &head) == 0, "mdb_get");
    memcpy(bytes, head.mv_data, head.mv_size);
    put(txn, bare->sessions, &key, bytes, head.mv_size);

    record_key = key_of_ids(bare->ids[index], bare->last_id);
    key = key_with_chunk(&record_key, 0);
    put(txn, bare->messages, &key, bytes, bare->message_bytes);
    key = key_of_id(bare->last_id);
    put(txn, bare->message_owner, &key, bare->ids[index].bytes, ULID_BYTES);
    record_key = key_event(++bare->sequence);
    key = key_with_chunk(&record_key, 0);
    put(txn, bare->events, &key, bytes, bare->event_bytes);
    if (moves_active) move_active(bare, txn, index);
    if (bare->operation_bytes > 0) put_operation(bare, txn, bytes);
}

void bare_append(Bare *bare, size_t count, bool moves_active)
{
    MDB_txn *txn;
    require(mdb_txn_begin(bare->env, NULL, 0, &txn) == 0, "mdb_txn_begin");
    for (size_t i = 0; i < count; i++)
        append_one(bare, txn, i, moves_active);
    uint8_t state[ULID_BYTES + 16] = {0};
    Key key = {.size = 0};
    key_add(&key, "state", 5);
    put(txn, bare->meta, &key, state, sizeof(state));
    require(mdb_txn_commit(txn) == 0, "mdb_txn_commit");
}
