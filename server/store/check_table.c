// Check of all tables, row by row: keys, chunks, the session of each row, and that no ID is newer
// than the last one issued. Other passes skip damage that this pass reports.

#include "base/limits.h"
#include "store/check_pass.h"
#include "store/record.h"

// What the walk over a table remembers of the previous row.
typedef struct TableWalk {
    StoreTable table;
    Slice previous_key; // borrowed: a read transaction keeps its rows
    size_t previous_size;
    Ulid session; // the session whose state was checked last
    Ulid newest_id;
    Slice newest_key;
} TableWalk;

// Returns whether a session may have rows in a table. A purged session may have any until its
// slices are done, and then, as a tombstone, those that forks read.
static bool session_may_have(SessionState state, StoreTable table)
{
    if (state.is_live || state.is_purging) return true;
    bool is_kept = table == TABLE_MESSAGES || table == TABLE_MARKERS || table == TABLE_ORIGINS ||
                   table == TABLE_READERS;
    return is_kept && state.is_tombstone;
}

// Returns whether a row of `readers` names a reader that is being purged. Such a reader no longer
// counts, but its rows still exist.
static Error is_left_by_a_purge(Check *check, StoreTable table, const KvRow *row, bool *out)
{
    *out = false;
    if (table != TABLE_READERS) return ERROR_NONE;
    SessionState state;
    Error error = check_session_state(check, key_id_at(row->key, ULID_BYTES), &state);
    if (!error) *out = state.is_purging;
    return error;
}

static Error check_owner(Check *check, TableWalk *walk, const KvRow *row)
{
    if (!check_table_is_of_sessions(walk->table)) return ERROR_NONE;
    Ulid session = key_id_at(row->key, 0);
    if (ulid_equal(session, walk->session)) return ERROR_NONE;
    bool is_left;
    Error error = is_left_by_a_purge(check, walk->table, row, &is_left);
    if (error || is_left) return error;
    walk->session = session; // report each session only once
    SessionState state;
    error = check_session_state(check, session, &state);
    if (error || session_may_have(state, walk->table)) return error;
    check_damage(check, DAMAGE_ORPHAN, walk->table, row->key, "its session does not exist");
    return ERROR_NONE;
}

// A purge deletes rows from the front, so what is left may begin in the middle of a record.
static bool is_being_purged(Check *check, StoreTable table)
{
    return check_table_is_of_sessions(table) && !check->cached_state.is_live &&
           check->cached_state.is_purging;
}

static void check_chunk(Check *check, const TableWalk *walk, const KvRow *row)
{
    size_t chunk = key_u16_at(row->key, row->key.size - 2);
    if (row->value.size > VALUE_BYTES_MAX) {
        check_damage(check, DAMAGE_CHUNKS, walk->table, row->key,
                     "the chunk is too long: %zu bytes", row->value.size);
    }
    if (chunk == 0) return;
    Slice before = walk->previous_key;
    bool follows = before.size == row->key.size &&
                   memcmp(before.bytes, row->key.bytes, before.size - 2) == 0 &&
                   key_u16_at(before, before.size - 2) + 1u == chunk;
    if (!follows && is_being_purged(check, walk->table)) return;
    if (!follows) {
        check_damage(check, DAMAGE_CHUNKS, walk->table, row->key, "the chunk before it is missing");
    } else if (walk->previous_size != VALUE_BYTES_MAX) {
        check_damage(check, DAMAGE_CHUNKS, walk->table, row->key,
                     "the chunk before it has the wrong size, %zu bytes", walk->previous_size);
    }
}

static Error check_table_row(Check *check, TableWalk *walk, const KvRow *row)
{
    check->result->rows[walk->table]++;
    if (!check_key_is_valid(walk->table, row->key)) {
        check_damage(check, DAMAGE_KEY, walk->table, row->key,
                     "the key has the wrong shape; it has %zu bytes", row->key.size);
        return ERROR_NONE;
    }
    Error error = check_owner(check, walk, row);
    if (error) return error;
    if (check_table_is_chunked(walk->table)) check_chunk(check, walk, row);
    Ulid newest = check_key_newest_id(walk->table, row->key);
    if (ulid_compare(newest, walk->newest_id) > 0) {
        walk->newest_id = newest;
        walk->newest_key = row->key;
    }
    walk->previous_key = row->key;
    walk->previous_size = row->value.size;
    return ERROR_NONE;
}

// Without a key, the row is one of another table, at which the walk has ended.
static Error report_checksum(Check *check, StoreTable table, Slice key)
{
    check_damage(check, DAMAGE_CHECKSUM, table, key, "%s", check->detail.text);
    check->detail.text[0] = '\0';
    return ERROR_NONE;
}

static Error check_table(Check *check, StoreTable table)
{
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    Error error = kv_cursor_open(check->txn.kv, (KvTable)table, &cursor);
    if (error) return error;
    TableWalk walk = {.table = table};
    bool found = true;
    while (!error && found) {
        KvRow row = {.key = {NULL, 0}};
        error = kv_next(cursor, &found, &row);
        if (error == ERROR_CORRUPT && (row.key.size > 0 || !found)) {
            error = report_checksum(check, table, row.key);
        } else if (!error && found) {
            error = check_table_row(check, &walk, &row);
        }
    }
    if (!error && ulid_compare(walk.newest_id, check->state.last_id) > 0) {
        char text[ULID_TEXT_BYTES + 1];
        ulid_format(check->state.last_id, text);
        check_damage(check, DAMAGE_ID_ORDER, table, walk.newest_key,
                     "it contains an ID that is newer than the last one issued, %s", text);
    }
    return error;
}

// Checks a row of meta. Opening the store has already read the known rows. What remains to check is
// that there are no others, and that this store issued its instance ID.
static Error check_meta_row(Check *check, void *context, Slice key, Slice bytes)
{
    (void)context;
    if (slice_equal(key, slice_of("format")) || slice_equal(key, slice_of("state"))) {
        return ERROR_NONE;
    }
    Ulid instance;
    if (!slice_equal(key, slice_of("instance"))) {
        check_damage(check, DAMAGE_META, TABLE_META, key, "the row is unknown");
    } else if (!ulid_parse(bytes, &instance) || ulid_compare(instance, check->state.last_id) > 0) {
        check_damage(check, DAMAGE_META, TABLE_META, key,
                     "its value is not an ID that this store issued");
    }
    return ERROR_NONE;
}

Error check_tables(Check *check)
{
    for (int table = 0; table < TABLE_COUNT; table++) {
        Error error = check_table(check, (StoreTable)table);
        if (error) return error;
    }
    if (check->state.first_event_sequence == 0 ||
        check->state.first_event_sequence > check->state.last_event_sequence + 1) {
        check_damage(check, DAMAGE_META, TABLE_META, slice_of("state"),
                     "the first event is %llu, but the last is %llu",
                     (unsigned long long)check->state.first_event_sequence,
                     (unsigned long long)check->state.last_event_sequence);
    }
    if (check->state.first_operation == 0 ||
        check->state.first_operation > check->state.last_operation + 1) {
        check_damage(check, DAMAGE_META, TABLE_META, slice_of("state"),
                     "the first operation is %llu, but the last is %llu",
                     (unsigned long long)check->state.first_operation,
                     (unsigned long long)check->state.last_operation);
    }
    return check_each(check, TABLE_META, (Slice){NULL, 0}, check_meta_row, NULL);
}
