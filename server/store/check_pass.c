// Check passes: what they share. Each walk has its own arena, which is emptied after each visit. So
// the memory for a check depends on the largest record, not on the size of the store.

#include "store/check_pass.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/limits.h"
#include "store/record.h"

// Enough to join the chunks of a message of 16 MiB and then decode it.
#define CHECK_BUDGET_BYTES (4 * (size_t)RUN_BUDGET_BYTES)

void check_damage(Check *check, DamageKind kind, StoreTable table, Slice key, const char *format,
                  ...)
{
    check->result->damage_count++;
    check->result->counts[kind]++;
    if (!check->options || !check->options->found) return;

    char key_text[CHECK_KEY_TEXT_BYTES_MAX], what[512], text[1024];
    check_key_text(table, key, key_text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    snprintf(text, sizeof(text), "%s %s: %s", store_table_name(table), key_text, what);
    Damage damage = {.kind = kind, .table = table, .key = key, .text = text};
    check->options->found(check->options->context, &damage);
}

Error check_survive(Check *check, Error error, StoreTable table, Slice key)
{
    bool is_damage = error == ERROR_CORRUPT || error_status(error) == STATUS_NOT_FOUND;
    if (!is_damage) return error;
    const char *text = check->detail.text[0] ? check->detail.text : error_text(error);
    check_damage(check, DAMAGE_UNREADABLE, table, key, "%s", text);
    check->detail.text[0] = '\0';
    return ERROR_NONE;
}

Error check_decode(Check *check, const ProtobufCMessageDescriptor *descriptor, StoreTable table,
                   Slice key, Slice bytes, void *out_message_pointer)
{
    *(void **)out_message_pointer = NULL;
    Error error = txn_decode(&check->txn, descriptor, bytes, out_message_pointer);
    return check_survive(check, error, table, key);
}

Error check_skip_bad(Check *check, KvCursor *cursor, Error error, bool *inout_found,
                     KvRow *inout_row)
{
    if (error != ERROR_CORRUPT) return error;
    while (error == ERROR_CORRUPT && *inout_found && inout_row->key.size > 0) {
        inout_row->key.size = 0;
        error = kv_next(cursor, inout_found, inout_row);
    }
    if (error == ERROR_CORRUPT && *inout_found) return error; // a page, not a row
    check->detail.text[0] = '\0';
    return error == ERROR_CORRUPT ? ERROR_NONE : error;
}

typedef struct Walk {
    StoreTable table;
    CheckVisit visit;
    void *context;
} Walk;

// Visits the record or row at the cursor and moves to the next.
static Error walk_step(Check *check, const Walk *walk, KvCursor *cursor, bool *found, KvRow *row)
{
    Slice key = row->key, bytes = row->value;
    bool is_chunked = check_table_is_chunked(walk->table);
    bool is_visited = check_key_is_valid(walk->table, key);
    if (is_visited && is_chunked) {
        is_visited = key_u16_at(key, key.size - 2) == 0;
        key.size -= 2;
    }
    bool is_long = is_visited && is_chunked && bytes.size >= VALUE_BYTES_MAX;
    Error error = ERROR_NONE;
    if (is_long) {
        error = record_read_on(&check->txn, cursor, row, &bytes);
        if (error) is_visited = false;
        error = check_survive(check, error, walk->table, key);
    }
    if (!error && is_visited) error = walk->visit(check, walk->context, key, bytes);
    if (error) return error;
    if (!is_long) {
        error = kv_next(cursor, found, row);
        return check_skip_bad(check, cursor, error, found, row);
    }

    // The cursor may already be past the record: seek to its end.
    Key record_key = {.size = 0};
    key_add(&record_key, key.bytes, key.size);
    Key end = key_with_chunk(&record_key, UINT16_MAX);
    error = kv_seek(cursor, key_slice(&end), found, row);
    return check_skip_bad(check, cursor, error, found, row);
}

Error check_each(Check *check, StoreTable table, Slice prefix, CheckVisit visit, void *context)
{
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    Error error = kv_cursor_open(check->txn.kv, (KvTable)table, &cursor);
    if (error) return error;
    Arena *outer = check->txn.arena;
    Arena arena;
    arena_init(&arena, CHECK_BUDGET_BYTES);
    check->txn.arena = &arena;
    Walk walk = {table, visit, context};
    KvRow row = {.key = {NULL, 0}};
    bool found = false;
    error = prefix.size > 0 ? kv_seek(cursor, prefix, &found, &row) : kv_next(cursor, &found, &row);
    error = check_skip_bad(check, cursor, error, &found, &row);
    while (!error && found && slice_starts_with(row.key, prefix)) {
        error = walk_step(check, &walk, cursor, &found, &row);
        arena_reset(&arena, CHECK_BUDGET_BYTES);
    }
    arena_free(&arena);
    check->txn.arena = outer;
    return error;
}

Error check_row(Check *check, StoreTable table, const Key *key, bool *out_found, Slice *out_value)
{
    Slice value;
    *out_found = false;
    Error error = txn_get(&check->txn, table, key, out_found, &value);
    if (error == ERROR_CORRUPT) {
        check->detail.text[0] = '\0';
        return ERROR_NONE;
    }
    if (!error && *out_found && out_value) *out_value = value;
    return error;
}

Error check_session_state(Check *check, Ulid session, SessionState *out)
{
    if (!ulid_equal(session, check->cached_session)) {
        SessionState state = {.is_live = false};
        static const Hash NO_HASH = {{0}};
        Error error = ERROR_NONE;
        for (uint8_t i = SESSION_ROW_SETTINGS; !error && !state.is_live && i <= SESSION_ROW_HEAD;
             i++) {
            Key record_key = key_session(session, i);
            Key key = key_with_chunk(&record_key, 0);
            error = check_row(check, TABLE_SESSIONS, &key, &state.is_live, NULL);
        }
        Key key = key_session_index(LISTING_TOMBSTONE, NO_HASH, session);
        if (!error) {
            error = check_row(check, TABLE_SESSION_INDEX, &key, &state.is_tombstone, NULL);
        }
        key = key_session_index(LISTING_PURGING, NO_HASH, session);
        if (!error) error = check_row(check, TABLE_SESSION_INDEX, &key, &state.is_purging, NULL);
        if (error) return error;
        check->cached_session = session;
        check->cached_state = state;
    }
    *out = check->cached_state;
    return ERROR_NONE;
}

bool check_id_is(const char *text, Ulid id)
{
    Ulid parsed = ULID_ZERO;
    if (*text && !ulid_parse(slice_of(text), &parsed)) return false;
    return ulid_equal(parsed, id);
}
