// Stores of older formats.

#include "old_store.h"

#include <lmdb.h>
#include <stdlib.h>

#include "base/limits.h"
#include "harness.h"
#include "store/check_pass.h"
#include "store/event.h"
#include "store/operation.h"

enum {
    OLD_CHUNK_BYTES = 4080,
    OLD_STATE_BYTES = ULID_BYTES + 2 * 8,
    RECORD_BYTES_MAX = 32 * 1024 * 1024
};

typedef struct OldTable {
    MDB_txn *txn;
    KvTxn *from;
    MDB_dbi handle;
    uint64_t format;
    uint8_t *record; // the value of the record that is being read
    size_t record_size;
    Key record_key; // without the chunk's number; .size 0: none
} OldTable;

static void put(OldTable *table, Slice key, Slice value)
{
    MDB_val k = {key.size, (void *)(uintptr_t)key.bytes};
    MDB_val v = {value.size, (void *)(uintptr_t)value.bytes};
    CHECK_EQ(mdb_put(table->txn, table->handle, &k, &v, MDB_NOOVERWRITE), 0);
}

static void put_record(OldTable *table)
{
    if (table->record_key.size == 0) return;
    size_t at = 0;
    uint16_t chunk = 0;
    do {
        size_t size = table->record_size - at;
        if (size > OLD_CHUNK_BYTES) size = OLD_CHUNK_BYTES;
        Key key = key_with_chunk(&table->record_key, chunk++);
        put(table, key_slice(&key), slice(table->record + at, size));
        at += size;
    } while (at < table->record_size);
    table->record_key.size = 0;
    table->record_size = 0;
}

static void put_bytes(OldTable *table, Slice bytes)
{
    CHECK(table->record_size + bytes.size <= RECORD_BYTES_MAX);
    memcpy(table->record + table->record_size, bytes.bytes, bytes.size);
    table->record_size += bytes.size;
}

// The ID that dated an operation. The numbers keep the IDs in order.
static Ulid issued_of(OldTable *table, uint64_t number, Slice *out_operation_id)
{
    Key key = key_operation_age(number);
    Slice value;
    bool found;
    CHECK_EQ(kv_get(table->from, TABLE_OPERATIONS_BY_AGE, key_slice(&key), &found, &value),
             ERROR_NONE);
    CHECK(found);
    uint8_t low_bytes[10] = {0};
    bytes_put_u64(low_bytes + 2, number);
    *out_operation_id = slice_skip(value, OPERATION_AGE_HEADER_BYTES);
    return ulid_make((int64_t)bytes_get_u64(value.bytes), low_bytes);
}

// Returns what follows the header that the first chunk of a record has now, after putting the old
// one.
static Slice put_header(OldTable *table, StoreTable number, Slice first)
{
    if (number == TABLE_EVENTS) return slice_skip(first, EVENT_HEADER_BYTES);
    if (number != TABLE_OPERATIONS) return first;
    Slice operation_id;
    Ulid issued = issued_of(table, bytes_get_u64(first.bytes + HASH_BYTES), &operation_id);
    put_bytes(table, slice(first.bytes, HASH_BYTES));
    put_bytes(table, ulid_slice(&issued));
    return slice_skip(first, OPERATION_HEADER_BYTES);
}

static void put_chunk(OldTable *table, StoreTable number, const KvRow *row)
{
    Slice key = slice(row->key.bytes, row->key.size - 2), bytes = row->value;
    if (!slice_equal(key_slice(&table->record_key), key)) {
        put_record(table);
        key_add(&table->record_key, key.bytes, key.size);
        bytes = put_header(table, number, bytes);
    }
    put_bytes(table, bytes);
}

static void put_meta(OldTable *table, const KvRow *row)
{
    uint8_t format[8];
    bytes_put_u64(format, table->format);
    Slice value = row->value;
    if (slice_equal(row->key, slice_of("format"))) value = slice(format, sizeof(format));
    if (slice_equal(row->key, slice_of("state"))) value.size = OLD_STATE_BYTES;
    put(table, row->key, value);
}

static void put_date(OldTable *table, const KvRow *row)
{
    Slice operation_id;
    Ulid issued = issued_of(table, bytes_get_u64(row->key.bytes), &operation_id);
    put(table, ulid_slice(&issued), operation_id);
}

static void put_external(OldTable *table, const KvRow *row)
{
    Key key = key_of_id(key_id_at(row->key, HASH_BYTES));
    key_add(&key, row->key.bytes, HASH_BYTES);
    put(table, key_slice(&key), row->value);
}

static void put_row(OldTable *table, StoreTable number, const KvRow *row)
{
    if (number == TABLE_META) {
        put_meta(table, row);
    } else if (number == TABLE_OPERATIONS_BY_AGE) {
        put_date(table, row);
    } else if (number == TABLE_MESSAGE_EXTERNAL) {
        put_external(table, row);
    } else if (number == TABLE_SESSION_INDEX && table->format == 1 &&
               row->key.bytes[0] >= LISTING_ACTIVE) {
        return;
    } else if (check_table_is_chunked(number)) {
        put_chunk(table, number, row);
    } else {
        put(table, row->key, row->value);
    }
}

static void write_table(OldTable *table, StoreTable number)
{
    CHECK_EQ(mdb_dbi_open(table->txn, store_table_name(number), MDB_CREATE, &table->handle), 0);
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    CHECK_EQ(kv_cursor_open(table->from, (KvTable)number, &cursor), ERROR_NONE);
    KvRow row;
    bool found;
    for (;;) {
        CHECK_EQ(kv_next(cursor, &found, &row), ERROR_NONE);
        if (!found) break;
        put_row(table, number, &row);
    }
    put_record(table);
}

void old_store_write(Store *store, const char *directory, uint64_t format)
{
    MDB_env *env;
    Txn from;
    OldTable table = {.format = format, .record = malloc(RECORD_BYTES_MAX)};
    CHECK(table.record != NULL);
    CHECK_EQ(txn_begin(store, /* is_write= */ false, NULL, NULL, &from), ERROR_NONE);
    table.from = from.kv;
    CHECK_EQ(mdb_env_create(&env), 0);
    CHECK_EQ(mdb_env_set_maxdbs(env, TABLE_COUNT), 0);
    CHECK_EQ(mdb_env_set_mapsize(env, (size_t)1 << 30), 0);
    CHECK_EQ(mdb_env_open(env, directory, MDB_NOSYNC, 0600), 0);
    CHECK_EQ(mdb_txn_begin(env, NULL, 0, &table.txn), 0);
    for (size_t i = 0; i < TABLE_COUNT; i++)
        write_table(&table, (StoreTable)i);
    CHECK_EQ(mdb_txn_commit(table.txn), 0);
    mdb_env_close(env);
    txn_abort(&from);
    free(table.record);
}
