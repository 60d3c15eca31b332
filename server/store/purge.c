// Session purges. The note of a pending purge holds the position in the session's event chain, and
// whether the messages stay for forks. Nothing else needs to be remembered, because each table is
// emptied from its front.

#include "store/purge.h"

#include "base/limits.h"
#include "names.h"
#include "store/call_record.h"
#include "store/event.h"
#include "store/message.h"
#include "store/record.h"
#include "store/session.h"
#include "store/session_active.h"
#include "store/session_index.h"

// Size of a row of LISTING_PURGING: the next event of the chain and one byte.
enum { NOTE_BYTES = 9 };

typedef struct PurgeNote {
    uint64_t event_sequence;
    bool keeps_messages; // the session is a tombstone
} PurgeNote;

static Error note_put(Txn *txn, Ulid session, const PurgeNote *note)
{
    txn->notes_purge = true;
    uint8_t value[NOTE_BYTES];
    bytes_put_u64(value, note->event_sequence);
    value[8] = note->keeps_messages;
    Key key = key_session_index(LISTING_PURGING, HASH_ZERO, session);
    return txn_put(txn, TABLE_SESSION_INDEX, &key, slice(value, sizeof(value)));
}

// Finds out whether a session or a tombstone reads from this session. A reader that is being purged
// no longer counts, though its rows stay until its slices delete them.
static Error has_readers(Txn *txn, Ulid session, bool *out)
{
    *out = false;
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    Error error = kv_cursor_open(txn->kv, TABLE_READERS, &cursor);
    if (error) return error;
    Key key = key_of_id(session);
    KvRow row;
    bool found;
    for (error = kv_seek(cursor, key_slice(&key), &found, &row);
         !error && found && !*out && slice_starts_with(row.key, ulid_slice(&session));
         error = *out ? ERROR_NONE : kv_next(cursor, &found, &row)) {
        if (row.key.size != KEY_PAIR_BYTES) return kv_refuse_key(cursor, row.key);
        error = session_is_readable(txn, key_id_at(row.key, ULID_BYTES), out);
        if (error) return error;
    }
    return error;
}

static Error session_rows_delete(Txn *txn, Ulid session, const Session *settings,
                                 const Session *head)
{
    Error error = session_index_update(txn, session, (SessionIndexed){settings, head->status},
                                       (SessionIndexed){.settings = NULL});
    if (!error) error = session_drop_active(txn, session, head->last_active_at);
    for (uint8_t row = SESSION_ROW_SETTINGS; !error && row <= SESSION_ROW_HEAD; row++) {
        Key key = key_session(session, row);
        error = record_delete(txn, TABLE_SESSIONS, &key, NULL);
    }
    Ulid parent;
    if (error || !ulid_parse(slice_of(settings->parent_id), &parent)) return error;
    Key key = key_of_ids(parent, session);
    return txn_delete(txn, TABLE_CHILDREN, &key);
}

Error purge_session(Txn *txn, Ulid session, bool keep_for_forks, bool *out_kept)
{
    Session *settings, *head;
    Error error = session_settings(txn, session, &settings);
    if (!error) error = session_head(txn, session, &head);
    bool is_read = false;
    if (!error) error = has_readers(txn, session, &is_read);
    if (error) return error;
    if (is_read && !keep_for_forks) return ERROR_FORKS_EXIST;

    error = session_rows_delete(txn, session, settings, head);
    if (!error && is_read) {
        Key key = key_session_index(LISTING_TOMBSTONE, HASH_ZERO, session);
        error = txn_put(txn, TABLE_SESSION_INDEX, &key, (Slice){NULL, 0});
    }
    PurgeNote note = {head->last_event_sequence, is_read};
    if (!error) error = note_put(txn, session, &note);
    if (error) return error;
    *out_kept = is_read;
    Event event = EVENT__INIT;
    event.type = EVENT_SESSION_PURGED;
    return event_put(txn, session, head, &event);
}

// Called for each row before it is deleted. Changes or deletes the rows of other tables that depend
// on it, and subtracts them from `*rows_left`.
typedef Error (*RowDeleted)(Txn *txn, Ulid session, const KvRow *row, size_t *rows_left);

// Deletes the rows of one table that begin with the session's ID, from the front, until
// `*rows_left` is 0.
static Error delete_rows(Txn *txn, StoreTable table, Ulid session, RowDeleted before_delete,
                         size_t *rows_left)
{
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    Error error = kv_cursor_open(txn->kv, (KvTable)table, &cursor);
    while (!error && *rows_left > 0) {
        Key first = key_of_id(session);
        KvRow row;
        bool found;
        error = kv_seek(cursor, key_slice(&first), &found, &row);
        if (error || !found || !slice_starts_with(row.key, ulid_slice(&session))) break;
        if (row.key.size > KEY_SIZE_MAX) return kv_refuse_key(cursor, row.key);
        Key key = {.size = 0};
        key_add(&key, row.key.bytes, row.key.size);
        (*rows_left)--;
        if (before_delete) error = before_delete(txn, session, &row, rows_left);
        if (!error) error = txn_delete(txn, table, &key);
    }
    return error;
}

static Error refuse_row(Txn *txn, StoreTable table)
{
    return error_say(txn->detail, ERROR_CORRUPT, "a row of the wrong size is in the table %s",
                     store_table_name(table));
}

static void take_row(size_t *rows_left)
{
    if (*rows_left > 0) (*rows_left)--;
}

// The row of message_external goes with the message: its key begins with a hash, so the rows of a
// session are not together. `row` is gone after the first delete.
static Error message_row_deleted(Txn *txn, Ulid session, const KvRow *row, size_t *rows_left)
{
    if (row->key.size != KEY_MESSAGE_BYTES) return refuse_row(txn, TABLE_MESSAGES);
    if (key_u16_at(row->key, 2 * ULID_BYTES) != 0) return ERROR_NONE;
    take_row(rows_left);
    Key owner_key = key_of_id(key_id_at(row->key, ULID_BYTES));
    External *external;
    Error error = message_external_in_chunk(txn, row->value, &external);
    if (!error) error = txn_delete(txn, TABLE_MESSAGE_OWNER, &owner_key);
    if (error || !external) return error;
    take_row(rows_left);
    Key key = message_external_key(external, session);
    return txn_delete(txn, TABLE_MESSAGE_EXTERNAL, &key);
}

// Begins the purge of a tombstone that has no reader left. Its event chain was already followed.
static Error tombstone_release(Txn *txn, Ulid session)
{
    bool is_kept, is_read;
    Error error = session_is_tombstone(txn, session, &is_kept);
    if (error || !is_kept) return error;
    error = has_readers(txn, session, &is_read);
    if (error || is_read) return error;
    Key key = key_session_index(LISTING_TOMBSTONE, HASH_ZERO, session);
    error = txn_delete(txn, TABLE_SESSION_INDEX, &key);
    if (error) return error;

    // Slices of its first purge may still be pending: keep their position in the event chain.
    PurgeNote note = {0, false};
    key = key_session_index(LISTING_PURGING, HASH_ZERO, session);
    Slice value;
    bool found;
    error = txn_get(txn, TABLE_SESSION_INDEX, &key, &found, &value);
    if (error) return error;
    if (found && value.size == NOTE_BYTES) note.event_sequence = bytes_get_u64(value.bytes);
    return note_put(txn, session, &note);
}

static Error origin_row_deleted(Txn *txn, Ulid session, const KvRow *row, size_t *rows_left)
{
    if (row->value.size != 2 * ULID_BYTES) return refuse_row(txn, TABLE_ORIGINS);
    Ulid target = key_id_at(row->value, 0);
    if (ulid_is_zero(target) || ulid_equal(target, session)) return ERROR_NONE;
    take_row(rows_left);
    Key key = key_of_ids(target, session);
    Error error = txn_delete(txn, TABLE_READERS, &key);
    if (error) return error;
    return tombstone_release(txn, target);
}

static Error call_row_deleted(Txn *txn, Ulid session, const KvRow *row, size_t *rows_left)
{
    if (row->key.size != KEY_MESSAGE_BYTES) return refuse_row(txn, TABLE_CALLS);
    if (key_u16_at(row->key, 2 * ULID_BYTES) != 0) return ERROR_NONE;
    take_row(rows_left);
    return call_external_drop(txn, session, key_id_at(row->key, ULID_BYTES));
}

static Error child_row_deleted(Txn *txn, Ulid session, const KvRow *row, size_t *rows_left)
{
    (void)session;
    if (row->key.size != KEY_PAIR_BYTES) return refuse_row(txn, TABLE_CHILDREN);
    take_row(rows_left);
    Ulid child = key_id_at(row->key, ULID_BYTES);
    Session *settings;
    Error error = session_settings(txn, child, &settings);
    if (error == ERROR_SESSION_NOT_FOUND) {
        return error_say(txn->detail, ERROR_CORRUPT, "a child session is missing");
    }
    if (error) return error;
    settings->parent_id = (char *)(uintptr_t) "";
    return session_put_settings(txn, child, settings);
}

typedef struct PurgedTable {
    StoreTable table;
    bool is_kept_by_tombstone;
    RowDeleted before_delete;
} PurgedTable;

static const PurgedTable PURGED_TABLES[] = {
    {TABLE_CHILDREN, false, child_row_deleted},
    {TABLE_TODOS, false, NULL},
    {TABLE_MEMORIES, false, NULL},
    {TABLE_CALLS, false, call_row_deleted},
    {TABLE_PARTS, false, NULL},
    {TABLE_ORIGINALS, false, NULL},
    {TABLE_MARKERS, true, NULL},
    {TABLE_MESSAGES, true, message_row_deleted},
    {TABLE_ORIGINS, true, origin_row_deleted},
};

static Error slice_of_session(Txn *txn, Ulid session, PurgeNote *note, size_t *rows_left)
{
    uint64_t sequence_before = note->event_sequence;
    Error error = event_purge_published(txn, session, &note->event_sequence, rows_left);
    size_t count = sizeof(PURGED_TABLES) / sizeof(*PURGED_TABLES);
    for (size_t i = 0; !error && *rows_left > 0 && i < count; i++) {
        const PurgedTable *purged = &PURGED_TABLES[i];
        if (note->keeps_messages && purged->is_kept_by_tombstone) continue;
        error = delete_rows(txn, purged->table, session, purged->before_delete, rows_left);
    }
    if (error) return error;
    if (*rows_left > 0) { // nothing is left, so delete the note
        Key key = key_session_index(LISTING_PURGING, HASH_ZERO, session);
        return txn_delete(txn, TABLE_SESSION_INDEX, &key);
    }
    return note->event_sequence == sequence_before ? ERROR_NONE : note_put(txn, session, note);
}

static Error next_pending(Txn *txn, bool *out_found, Ulid *out_session, PurgeNote *out_note)
{
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    Error error = kv_cursor_open(txn->kv, TABLE_SESSION_INDEX, &cursor);
    if (error) return error;
    Key key = key_session_index(LISTING_PURGING, HASH_ZERO, ULID_ZERO);
    KvRow row;
    error = kv_seek(cursor, key_slice(&key), out_found, &row);
    if (error || !*out_found) return error;
    *out_found = row.key.bytes[0] == LISTING_PURGING;
    if (!*out_found) return ERROR_NONE;
    if (row.key.size != KEY_SESSION_INDEX_BYTES || row.value.size != NOTE_BYTES) {
        return error_say(txn->detail, ERROR_CORRUPT, "the note of a pending purge is damaged");
    }
    *out_session = key_id_at(row.key, 1 + HASH_BYTES);
    out_note->event_sequence = bytes_get_u64(row.value.bytes);
    out_note->keeps_messages = row.value.bytes[8] != 0;
    return ERROR_NONE;
}

Error purge_slice(Txn *txn, bool *out_more)
{
    size_t rows_left = PURGE_SLICE_ROWS;
    bool found = true;
    while (rows_left > 0) {
        Ulid session = ULID_ZERO;
        PurgeNote note = {0, false};
        Error error = next_pending(txn, &found, &session, &note);
        if (error) return error;
        if (!found) break;
        error = slice_of_session(txn, session, &note, &rows_left);
        if (error) return error;
    }
    *out_more = found;
    return ERROR_NONE;
}

Error purge_pending_count(Txn *txn, uint64_t *out)
{
    *out = 0;
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    Error error = kv_cursor_open(txn->kv, TABLE_SESSION_INDEX, &cursor);
    if (error) return error;
    Key key = key_session_index(LISTING_PURGING, HASH_ZERO, ULID_ZERO);
    KvRow row;
    bool found;
    for (error = kv_seek(cursor, key_slice(&key), &found, &row);
         !error && found && row.key.bytes[0] == LISTING_PURGING;
         error = kv_next(cursor, &found, &row)) {
        (*out)++;
    }
    return error;
}
