// Check of the session indexes, from the side of their rows: session_index, by_active and children.
// Also checks the sessions that exist only in session_index: those being purged, and tombstones.

#include "store/check_pass.h"
#include "store/record.h"
#include "store/session.h"
#include "store/session_index.h"

enum { PURGE_NOTE_BYTES = 9 };

// Reads the settings of the session that a row names. If there are none, reports damage of kind
// `kind` and sets `*out` to NULL.
static Error settings_named(Check *check, DamageKind kind, StoreTable table, Slice key, Ulid id,
                            Session **out)
{
    *out = NULL;
    Key record_key = key_session(id, SESSION_ROW_SETTINGS);
    bool found;
    Slice bytes;
    Error error = record_get(&check->txn, TABLE_SESSIONS, &record_key, &found, &bytes);
    if (error) return check_survive(check, error, table, key);
    if (!found) {
        check_damage(check, kind, table, key, "the session that it names does not exist");
        return ERROR_NONE;
    }
    return check_decode(check, &session__descriptor, TABLE_SESSIONS, key_slice(&record_key), bytes,
                        out);
}

static Error has_readers(Check *check, Ulid session, bool *out)
{
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    Error error = kv_cursor_open(check->txn.kv, TABLE_READERS, &cursor);
    if (error) return error;
    KvRow row;
    *out = false;
    error = kv_seek(cursor, ulid_slice(&session), out, &row);
    error = check_skip_bad(check, cursor, error, out, &row);
    if (!error && *out) *out = slice_starts_with(row.key, ulid_slice(&session));
    return error;
}

// Checks a tombstone. It exists only while forks read it, and its log is checked like any other.
static Error check_tombstone(Check *check, Slice key, Ulid session, Slice bytes)
{
    check->result->tombstones++;
    bool is_read;
    SessionState state;
    CheckedLog log;
    Error error = has_readers(check, session, &is_read);
    if (!error) error = check_session_state(check, session, &state);
    if (error) return error;
    if (!is_read || bytes.size != 0) {
        check_damage(check, DAMAGE_PURGE, TABLE_SESSION_INDEX, key,
                     "it is a tombstone that no fork reads, or it has a value");
    }
    return check_log(check, session, state, &log);
}

static Error check_purge_note(Check *check, Slice key, Ulid session, Slice bytes)
{
    check->result->purges_pending++;
    SessionState state;
    Error error = check_session_state(check, session, &state);
    if (error) return error;
    bool is_right = bytes.size == PURGE_NOTE_BYTES && !state.is_live &&
                    (bytes.bytes[8] != 0) == state.is_tombstone &&
                    bytes_get_u64(bytes.bytes) <= check->state.last_event_sequence;
    if (is_right) return ERROR_NONE;
    check_damage(check, DAMAGE_PURGE, TABLE_SESSION_INDEX, key,
                 "the note of the purge does not fit the session");
    return ERROR_NONE;
}

// Checks the index row of a call's external ID. A purge deletes this row and the call together.
static Error check_call_external(Check *check, Slice key, Ulid session, Slice bytes)
{
    bool found = false;
    Slice value;
    if (bytes.size == ULID_BYTES) {
        Key record_key = key_of_ids(session, key_id_at(bytes, 0));
        Error error = record_get(&check->txn, TABLE_CALLS, &record_key, &found, &value);
        if (error) return check_survive(check, error, TABLE_SESSION_INDEX, key);
    }
    CallRecord *call = NULL;
    if (found) {
        Error error =
            check_decode(check, &call_record__descriptor, TABLE_SESSION_INDEX, key, value, &call);
        if (error || !call) return error;
    }
    if (call && call->external) {
        Hash hash = hash_pair(slice_of(call->external->source), slice_of(call->external->id));
        if (memcmp(hash.bytes, key.bytes + 1, HASH_BYTES) == 0) return ERROR_NONE;
    }
    check_damage(check, DAMAGE_CALL, TABLE_SESSION_INDEX, key,
                 "it leads to no call or to one with another external ID");
    return ERROR_NONE;
}

// Reads the status of a session. check_session.c reports a missing head record.
static Error status_of(Check *check, Slice key, Ulid id, SessionStatus *out)
{
    *out = SESSION_STATUS_UNSPECIFIED;
    Key record_key = key_session(id, SESSION_ROW_HEAD);
    bool found;
    Slice bytes;
    Session *head = NULL;
    Error error = record_get(&check->txn, TABLE_SESSIONS, &record_key, &found, &bytes);
    if (error) return check_survive(check, error, TABLE_SESSION_INDEX, key);
    if (!found) return ERROR_NONE;
    error = check_decode(check, &session__descriptor, TABLE_SESSIONS, key_slice(&record_key), bytes,
                         &head);
    if (!error && head) *out = head->status;
    return error;
}

static Error check_index_row(Check *check, void *context, Slice key, Slice bytes)
{
    (void)context;
    Ulid id = key_id_at(key, 1 + HASH_BYTES);
    uint8_t listing = key.bytes[0];
    if (listing == LISTING_TOMBSTONE) return check_tombstone(check, key, id, bytes);
    if (listing == LISTING_PURGING) return check_purge_note(check, key, id, bytes);
    if (listing == LISTING_CALL_EXTERNAL) return check_call_external(check, key, id, bytes);
    Session *settings;
    Error error =
        settings_named(check, DAMAGE_SESSION_INDEX, TABLE_SESSION_INDEX, key, id, &settings);
    if (error || !settings) return error;
    SessionIndexed indexed = {.settings = settings};
    if (listing == LISTING_STATUS) error = status_of(check, key, id, &indexed.status);
    if (error) return error;
    SessionIndexEntry entries[SESSION_INDEX_ENTRIES_MAX];
    size_t count = session_index_entries(indexed, entries);
    for (size_t i = 0; i < count; i++) {
        if ((uint8_t)entries[i].listing == listing &&
            memcmp(entries[i].hash.bytes, key.bytes + 1, HASH_BYTES) == 0) {
            return ERROR_NONE;
        }
    }
    check_damage(check, DAMAGE_SESSION_INDEX, TABLE_SESSION_INDEX, key,
                 "the session does not belong in this listing");
    return ERROR_NONE;
}

// check_session.c finds the row of each session. This pass finds rows that are left over.
static Error check_active_row(Check *check, void *context, Slice key, Slice bytes)
{
    (void)bytes;
    uint64_t *count = context;
    (*count)++;
    SessionState state;
    Error error = check_session_state(check, key_id_at(key, 8), &state);
    if (error || state.is_live) return error;
    check_damage(check, DAMAGE_BY_ACTIVE, TABLE_BY_ACTIVE, key,
                 "the session that it names does not exist");
    return ERROR_NONE;
}

static Error check_active(Check *check)
{
    uint64_t count = 0;
    Error error = check_each(check, TABLE_BY_ACTIVE, (Slice){NULL, 0}, check_active_row, &count);
    if (error) return error;
    if (count != check->result->sessions && check->result->counts[DAMAGE_BY_ACTIVE] == 0) {
        check_damage(check, DAMAGE_BY_ACTIVE, TABLE_BY_ACTIVE, (Slice){NULL, 0},
                     "the table has %llu rows for %llu sessions", (unsigned long long)count,
                     (unsigned long long)check->result->sessions);
    }
    return ERROR_NONE;
}

static Error check_child_row(Check *check, void *context, Slice key, Slice bytes)
{
    (void)context;
    (void)bytes; // check_parent compares it
    Session *settings;
    Error error = settings_named(check, DAMAGE_CHILDREN, TABLE_CHILDREN, key,
                                 key_id_at(key, ULID_BYTES), &settings);
    if (error || !settings) return error;
    if (!check_id_is(settings->parent_id, key_id_at(key, 0))) {
        check_damage(check, DAMAGE_CHILDREN, TABLE_CHILDREN, key, "the child's parent_id is '%s'",
                     settings->parent_id);
    }
    return ERROR_NONE;
}

Error check_session_indexes(Check *check)
{
    Slice all = {NULL, 0};
    Error error = check_each(check, TABLE_SESSION_INDEX, all, check_index_row, NULL);
    if (!error) error = check_active(check);
    if (!error) error = check_each(check, TABLE_CHILDREN, all, check_child_row, NULL);
    return error;
}
