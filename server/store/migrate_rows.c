// Migrated rows. The tables are copied in the order of their numbers, so that each row goes to the
// end of the tree and fills its pages. Each table has a function that turns a row of the old format
// into rows of this one; COPIES lists them.

#include "store/migrate_rows.h"

#include "base/limits.h"
#include "kv/named.h"
#include "os/clock.h"
#include "report/log.h"
#include "store/event.h"
#include "store/migrate_format_3.h"

enum {
    SLICE_BYTES = 8 * 1024 * 1024, // of values in one transaction
    OLD_CHUNK_BYTES = 4080,        // of formats 1 and 2, whose rows have no checksum
    LOG_EVERY_S = 5,
};

// A record whose chunks are being read. Chunks are shorter now, so the rest of each old chunk goes
// into the next new one.
typedef struct OldRecord {
    uint8_t key[KEY_BYTES_MAX]; // without the chunk's number
    size_t key_size;            // 0: there is none
    unsigned old_chunk;         // the last one that was read
    size_t old_size;            // of its value
    unsigned chunk;             // the next one to put
    uint8_t rest[OLD_CHUNK_BYTES + VALUE_BYTES_MAX];
    size_t rest_size;
} OldRecord;

typedef struct Migration {
    Store *to;
    Txn txn; // of `to`
    ErrorDetail *detail;
    Arena arena; // of one row
    StoreTable table;
    FormatThree format_3;
    bool has_state;
    size_t slice_bytes;
    uint64_t row_count, bytes;
    uint64_t old_row_count; // that were read, of old_rows
    uint64_t old_rows;
    int64_t logged_ns;
    OldRecord record;
} Migration;

static Error put_row(Migration *migration, Slice key, Slice value);
static Error note_put(Migration *migration, const KvRow *row);

static Error copy_row(Migration *migration, const KvRow *row)
{
    return put_row(migration, row->key, row->value);
}

static Error put_chunk(Migration *migration, size_t size)
{
    OldRecord *record = &migration->record;
    if (record->chunk >= CHUNK_COUNT_MAX) {
        return error_say(migration->detail, ERROR_CORRUPT, "a record has too many chunks");
    }
    Key key = {.size = 0};
    key_add(&key, record->key, record->key_size);
    key = key_with_chunk(&key, (uint16_t)record->chunk++);
    Error error = put_row(migration, key_slice(&key), slice(record->rest, size));
    record->rest_size -= size;
    memmove(record->rest, record->rest + size, record->rest_size);
    return error;
}

static Error end_record(Migration *migration)
{
    OldRecord *record = &migration->record;
    Error error = ERROR_NONE;
    if (record->key_size > 0) error = put_chunk(migration, record->rest_size);
    record->key_size = 0;
    return error;
}

// A chunk that does not follow the one before it begins a record, or, in a damaged one, leaves a
// gap in the numbers.
static Error begin_record(Migration *migration, Slice key, unsigned chunk)
{
    OldRecord *record = &migration->record;
    bool is_same = slice_equal(slice(record->key, record->key_size), key);
    unsigned next = record->chunk + 2;
    Error error = end_record(migration);
    memcpy(record->key, key.bytes, key.size);
    record->key_size = key.size;
    record->chunk = is_same && next > chunk ? next : chunk;
    return error;
}

static Error copy_chunk(Migration *migration, const KvRow *row)
{
    OldRecord *record = &migration->record;
    if (row->key.size <= 2 || row->key.size > KEY_SIZE_MAX || row->value.size > OLD_CHUNK_BYTES) {
        Error error = end_record(migration);
        return error ? error : copy_row(migration, row);
    }
    Slice key = slice(row->key.bytes, row->key.size - 2);
    unsigned chunk = key_u16_at(row->key, key.size);
    bool follows = slice_equal(slice(record->key, record->key_size), key) &&
                   chunk == record->old_chunk + 1 && record->old_size == OLD_CHUNK_BYTES;
    Error error = follows ? ERROR_NONE : begin_record(migration, key, chunk);
    if (error) return error;
    if (migration->table == TABLE_EVENTS && chunk == 0) {
        format_3_event(&migration->txn, &migration->format_3, row->value, record->rest);
        record->rest_size = EVENT_HEADER_BYTES;
    }
    record->old_chunk = chunk;
    record->old_size = row->value.size;
    memcpy(record->rest + record->rest_size, row->value.bytes, row->value.size);
    record->rest_size += row->value.size;
    while (!error && record->rest_size > VALUE_BYTES_MAX)
        error = put_chunk(migration, VALUE_BYTES_MAX);
    return error;
}

static Error copy_message(Migration *migration, const KvRow *row)
{
    Error error = ERROR_NONE;
    if (row->key.size == KEY_MESSAGE_BYTES && key_u16_at(row->key, 2 * ULID_BYTES) == 0) {
        error = format_3_message(&migration->txn, key_id_at(row->key, 0),
                                 key_id_at(row->key, ULID_BYTES), row->value);
        migration->slice_bytes += VALUE_BYTES_MAX; // a page somewhere in message_external
    }
    return error ? error : copy_chunk(migration, row);
}

// Messages bring their rows of message_external.
static Error copy_nothing(Migration *migration, const KvRow *row)
{
    (void)migration;
    (void)row;
    return ERROR_NONE;
}

// The operations were copied already: their table has a lower number.
static Error copy_date(Migration *migration, const KvRow *row)
{
    if (row->key.size != ULID_BYTES || row->value.size > OPERATION_ID_BYTES_MAX) {
        return copy_row(migration, row);
    }
    Error error = format_3_operation(&migration->txn, &migration->format_3, key_id_at(row->key, 0),
                                     row->value);
    migration->slice_bytes += VALUE_BYTES_MAX; // a page somewhere in operations
    return error ? error : note_put(migration, row);
}

// The format was written first.
static Error copy_meta(Migration *migration, const KvRow *row)
{
    if (slice_equal(row->key, slice_of("format"))) return ERROR_NONE;
    if (!slice_equal(row->key, slice_of("state"))) return copy_row(migration, row);
    migration->has_state = true;
    return format_3_state(&migration->txn, row->value);
}

typedef Error (*CopyRow)(Migration *migration, const KvRow *row);

static const CopyRow COPIES[TABLE_COUNT] = {
    [TABLE_SESSIONS] = copy_chunk,
    [TABLE_MESSAGES] = copy_message,
    [TABLE_MESSAGE_OWNER] = copy_row,
    [TABLE_MARKERS] = copy_row,
    [TABLE_ORIGINS] = copy_row,
    [TABLE_READERS] = copy_row,
    [TABLE_MEMORIES] = copy_chunk,
    [TABLE_CALLS] = copy_chunk,
    [TABLE_TODOS] = copy_chunk,
    [TABLE_CHILDREN] = copy_row,
    [TABLE_SESSION_INDEX] = copy_row,
    [TABLE_BY_ACTIVE] = copy_row,
    [TABLE_MESSAGE_EXTERNAL] = copy_nothing,
    [TABLE_PARTS] = copy_row,
    [TABLE_OPERATIONS] = copy_chunk,
    [TABLE_OPERATIONS_BY_AGE] = copy_date,
    [TABLE_ORIGINALS] = copy_chunk,
    [TABLE_EVENTS] = copy_chunk,
    [TABLE_META] = copy_meta,
};

static void log_progress(Migration *migration)
{
    int64_t now_ns = clock_monotonic_ns();
    if (now_ns - migration->logged_ns < (int64_t)LOG_EVERY_S * 1000000000) return;
    migration->logged_ns = now_ns;
    if (store_options(migration->to)->migrating) store_options(migration->to)->migrating();
    log_write(LOG_INFO, "migrating the store", "rows=%llu of_rows=%llu mib=%llu table=%s",
              (unsigned long long)migration->old_row_count, (unsigned long long)migration->old_rows,
              (unsigned long long)migration->bytes >> 20, store_table_name(migration->table));
}

static Error begin_slice(Migration *migration)
{
    migration->slice_bytes = 0;
    return txn_begin(migration->to, /* is_write= */ true, &migration->arena, migration->detail,
                     &migration->txn);
}

static Error put_row(Migration *migration, Slice key, Slice value)
{
    if (key.size > KEY_BYTES_MAX) {
        return error_say(migration->detail, ERROR_CORRUPT, "a key of %zu bytes is in the table %s",
                         key.size, store_table_name(migration->table));
    }
    Error error = kv_put(migration->txn.kv, (KvTable)migration->table, key, value);
    return error ? error : note_put(migration, &(KvRow){key, value});
}

// Commits after each slice.
static Error note_put(Migration *migration, const KvRow *row)
{
    size_t bytes = row->key.size + row->value.size;
    migration->row_count++;
    migration->bytes += bytes;
    migration->slice_bytes += bytes;
    if (migration->slice_bytes < SLICE_BYTES) return ERROR_NONE;
    Error error = txn_commit(&migration->txn);
    log_progress(migration);
    return error ? error : begin_slice(migration);
}

static Error copy_table(Migration *migration, Txn *from, StoreTable table)
{
    CLEANUP(kv_named_closep) KvNamed *named = NULL;
    Error error = kv_named_open(from->kv, store_table_name(table), &named);
    if (error) return error;
    migration->table = table;
    migration->format_3 = (FormatThree){.last_at = 0};
    KvRow row;
    bool found;
    for (error = kv_named_next(named, &found, &row); !error && found;
         error = kv_named_next(named, &found, &row)) {
        migration->old_row_count++;
        arena_reset(&migration->arena, RUN_BUDGET_BYTES);
        error = COPIES[table](migration, &row);
        if (error) return error;
    }
    if (!error && table == TABLE_META && !migration->has_state) {
        return error_say(migration->detail, ERROR_CORRUPT, "meta.state is missing");
    }
    return error ? error : end_record(migration);
}

static Error count_rows(Migration *migration, Txn *from)
{
    Error error = ERROR_NONE;
    for (size_t i = 0; !error && i < TABLE_COUNT; i++) {
        CLEANUP(kv_named_closep) KvNamed *named = NULL;
        error = kv_named_open(from->kv, store_table_name((StoreTable)i), &named);
        if (!error) migration->old_rows += kv_named_rows(named);
    }
    return error;
}

static Error copy_tables(Migration *migration, Txn *from)
{
    Error error = meta_put_format(migration->txn.kv);
    if (!error) error = count_rows(migration, from);
    for (unsigned number = 1; !error && number < KV_TABLES_MAX; number++)
        for (size_t i = 0; !error && i < TABLE_COUNT; i++)
            if (STORE_TABLE_OPTIONS[i].number == number)
                error = copy_table(migration, from, (StoreTable)i);
    return error ? error : txn_commit(&migration->txn);
}

Error migrate_rows(Store *from, Store *to, ErrorDetail *detail)
{
    Migration migration = {.to = to, .detail = detail, .logged_ns = clock_monotonic_ns()};
    Txn old;
    Error error = txn_begin(from, /* is_write= */ false, NULL, detail, &old);
    if (error) return error;
    arena_init(&migration.arena, RUN_BUDGET_BYTES);
    error = begin_slice(&migration);
    if (!error) error = copy_tables(&migration, &old);
    txn_abort(&migration.txn);
    txn_abort(&old);
    arena_free(&migration.arena);
    return error;
}
