// Check of sessions: their two rows, and the fields of the head record that depend on the log.

#include "store/call_record.h"
#include "store/check_pass.h"
#include "store/preview.h"
#include "store/record.h"
#include "store/session.h"
#include "store/session_index.h"

typedef struct CheckedSession {
    Ulid id;
    Slice key; // of the settings row, or of a head that has none
    Session *settings;
    Session *head;
} CheckedSession;

static void check_counts(Check *check, Slice key, const Session *head, const CheckedLog *log)
{
    if (head->entry_count != log->entry_count || head->message_count != log->message_count ||
        head->next_sequence != log->entry_count_all) {
        check_damage(
            check, DAMAGE_SESSION_COUNTS, TABLE_SESSIONS, key,
            "entry_count, message_count and next_sequence are %llu, %llu, %llu, but the log has "
            "%llu, %llu, %llu",
            (unsigned long long)head->entry_count, (unsigned long long)head->message_count,
            (unsigned long long)head->next_sequence, (unsigned long long)log->entry_count,
            (unsigned long long)log->message_count, (unsigned long long)log->entry_count_all);
    }
}

// Compares the sums. Skips those that may have saturated on the way, because saturated sums depend
// on the order of additions.
static void check_totals(Check *check, Slice key, const Session *head, const CheckedLog *log)
{
    static const Totals NOTHING = TOTALS__INIT;
    const Totals *own = head->own_totals ? head->own_totals : &NOTHING;
    const int64_t said[] = {own->input_tokens, own->output_tokens, own->cache_read_tokens,
                            own->cache_write_tokens, own->cost_nano_usd};
    static const char *const NAMES[] = {"input_tokens", "output_tokens", "cache_read_tokens",
                                        "cache_write_tokens", "cost_nano_usd"};
    for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++) {
        if (log->magnitudes[i] > INT64_MAX || log->sums[i] == said[i]) continue;
        check_damage(check, DAMAGE_SESSION_TOTALS, TABLE_SESSIONS, key,
                     "own_totals.%s is %lld, but the sum of the entries is %lld", NAMES[i],
                     (long long)said[i], (long long)log->sums[i]);
    }
}

static void check_places(Check *check, Slice key, const CheckedSession *session,
                         const CheckedLog *log)
{
    const Session *head = session->head;
    char text[ULID_TEXT_BYTES + 1];
    if (!check_id_is(head->head_id, log->head)) {
        ulid_format(log->head, text);
        check_damage(check, DAMAGE_SESSION_HEAD_ID, TABLE_SESSIONS, key,
                     "head_id is '%s', but the history ends with %s", head->head_id, text);
    }
    if (!check_id_is(head->last_entry_id, log->last_entry)) {
        ulid_format(log->last_entry, text);
        check_damage(check, DAMAGE_SESSION_LAST_ENTRY, TABLE_SESSIONS, key,
                     "last_entry_id is '%s', but the log ends with %s", head->last_entry_id, text);
    }
    bool has_entries = log->newest_at != INT64_MIN;
    int64_t newest_at = has_entries ? log->newest_at : session->settings->created_at;
    if (head->last_active_at != newest_at) {
        check_damage(check, DAMAGE_SESSION_LAST_ACTIVE, TABLE_SESSIONS, key,
                     "last_active_at is %lld, but the newest time is %lld",
                     (long long)head->last_active_at, (long long)newest_at);
    }
    uint64_t last_event = check_last_event(check, session->id);
    bool is_right = last_event ? head->last_event_sequence == last_event
                               : head->last_event_sequence < check->state.first_event_sequence;
    if (!is_right) {
        check_damage(check, DAMAGE_SESSION_EVENT, TABLE_SESSIONS, key,
                     "last_event_sequence is %llu, but its last event is %llu",
                     (unsigned long long)head->last_event_sequence, (unsigned long long)last_event);
    }
}

// Returns whether a stored preview is right. Stores from before text parts were joined hold only
// the first part.
static bool is_preview(const char *stored, const char *anew)
{
    size_t size = strlen(stored);
    if (size == 0 || strncmp(stored, anew, size) != 0) return strcmp(stored, anew) == 0;
    return anew[size] == '\0' || anew[size] == ' ';
}

static Error check_previews(Check *check, Slice key, const CheckedSession *session)
{
    Session anew = *session->head;
    Error error = preview_recompute_first(&check->txn, session->id, &anew);
    if (!error) error = preview_recompute_last(&check->txn, session->id, &anew);
    if (error) return check_survive(check, error, TABLE_SESSIONS, key);
    const Session *head = session->head;
    if (!is_preview(head->first_message_preview, anew.first_message_preview)) {
        check_damage(check, DAMAGE_SESSION_PREVIEW, TABLE_SESSIONS, key,
                     "first_message_preview is wrong");
    }
    if (!is_preview(head->last_user_message, anew.last_user_message)) {
        check_damage(check, DAMAGE_SESSION_PREVIEW, TABLE_SESSIONS, key,
                     "last_user_message is wrong");
    }
    if (!is_preview(head->last_agent_message, anew.last_agent_message)) {
        check_damage(check, DAMAGE_SESSION_PREVIEW, TABLE_SESSIONS, key,
                     "last_agent_message is wrong");
    }
    return ERROR_NONE;
}

static Error count_call(Check *check, void *context, Slice key, Slice bytes)
{
    (void)check;
    (void)key;
    (void)bytes;
    (*(uint64_t *)context)++;
    return ERROR_NONE;
}

static bool is_same_call(const LastCall *a, const LastCall *b)
{
    if (!a || !b) return a == b;
    return strcmp(a->id, b->id) == 0 && strcmp(a->request_id, b->request_id) == 0 &&
           a->cost_nano_usd == b->cost_nano_usd && a->created_at == b->created_at && a->model &&
           b->model && strcmp(a->model->provider, b->model->provider) == 0 &&
           strcmp(a->model->name, b->model->name) == 0;
}

static Error check_ledger(Check *check, Slice key, const CheckedSession *session)
{
    uint64_t count = 0;
    CallRecord *newest;
    LastCall *last = NULL;
    Error error = check_each(check, TABLE_CALLS, ulid_slice(&session->id), count_call, &count);
    if (error) return error;
    error = call_record_newest(&check->txn, session->id, &newest);
    if (!error && newest) error = call_record_last(&check->txn, newest, &last);
    if (error) return check_survive(check, error, TABLE_SESSIONS, key);
    if (session->head->call_count != count) {
        check_damage(check, DAMAGE_CALL, TABLE_SESSIONS, key,
                     "call_count is %llu, but there are %llu calls",
                     (unsigned long long)session->head->call_count, (unsigned long long)count);
    }
    if (!is_same_call(session->head->last_call, last)) {
        check_damage(check, DAMAGE_CALL, TABLE_SESSIONS, key, "last_call is not the newest call");
    }
    return ERROR_NONE;
}

static Error check_indexed(Check *check, Slice key, const CheckedSession *session)
{
    SessionIndexEntry entries[SESSION_INDEX_ENTRIES_MAX];
    SessionIndexed indexed = {session->settings, session->head->status};
    size_t count = session_index_entries(indexed, entries);
    for (size_t i = 0; i < count; i++) {
        Key entry = key_session_index(entries[i].listing, entries[i].hash, session->id);
        bool found;
        Error error = check_row(check, TABLE_SESSION_INDEX, &entry, &found, NULL);
        if (error) return error;
        if (!found) {
            check_damage(check, DAMAGE_SESSION_INDEX, TABLE_SESSIONS, key,
                         "session_index has no row of listing %d for it", (int)entries[i].listing);
        }
    }
    // The row of a session is the last one not above its last_active_at and ID (session_active.h).
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    Error error = kv_cursor_open(check->txn.kv, TABLE_BY_ACTIVE, &cursor);
    if (error) return error;
    Key bound = key_by_active(session->head->last_active_at, ulid_next(session->id));
    KvRow row;
    bool found = false;
    error = kv_seek_before(cursor, key_slice(&bound), &found, &row);
    if (error == ERROR_CORRUPT && found) return ERROR_NONE; // check_tables reports the row
    if (error) return error;
    if (!found || !check_key_is_valid(TABLE_BY_ACTIVE, row.key) ||
        !ulid_equal(key_id_at(row.key, 8), session->id)) {
        check_damage(check, DAMAGE_BY_ACTIVE, TABLE_SESSIONS, key,
                     "by_active has no row for it, or the row is in the wrong place");
    }
    return ERROR_NONE;
}

static Error check_parent(Check *check, Slice key, const CheckedSession *session)
{
    const Session *settings = session->settings;
    Ulid parent, root;
    if (!ulid_parse(slice_of(settings->root_id), &root) || ulid_compare(root, session->id) > 0) {
        check_damage(check, DAMAGE_SESSION_LINEAGE, TABLE_SESSIONS, key,
                     "root_id '%s' is not an ID or is newer than the session", settings->root_id);
    }
    if (!*settings->parent_id) return ERROR_NONE;
    if (!ulid_parse(slice_of(settings->parent_id), &parent) ||
        ulid_compare(parent, session->id) >= 0) {
        check_damage(check, DAMAGE_SESSION_LINEAGE, TABLE_SESSIONS, key,
                     "parent_id '%s' is not the ID of an older session", settings->parent_id);
        return ERROR_NONE;
    }
    SessionState state;
    Error error = check_session_state(check, parent, &state);
    if (error) return error;
    if (!state.is_live && !state.is_purging) {
        check_damage(check, DAMAGE_SESSION_LINEAGE, TABLE_SESSIONS, key,
                     "its parent %s does not exist", settings->parent_id);
    }
    Key child = key_of_ids(parent, session->id);
    bool found;
    Slice kind;
    error = check_row(check, TABLE_CHILDREN, &child, &found, &kind);
    if (error) return error;
    if (!found || kind.size != 1 || kind.bytes[0] != (uint8_t)settings->kind) {
        check_damage(check, DAMAGE_CHILDREN, TABLE_SESSIONS, key,
                     "children has no row for it, or the row has another kind");
    }
    return ERROR_NONE;
}

// Checks that a fork's first origin has the ID of the session and leads to fork_message_id.
static Error check_fork_point(Check *check, Slice key, const CheckedSession *session)
{
    Key origin = key_of_ids(session->id, session->id);
    Slice value = {NULL, 0};
    bool found;
    Error error = check_row(check, TABLE_ORIGINS, &origin, &found, &value);
    if (error) return error;
    Ulid message = value.size == 2 * ULID_BYTES ? key_id_at(value, ULID_BYTES) : ULID_ZERO;
    if (!check_id_is(session->settings->fork_message_id, message)) {
        check_damage(check, DAMAGE_SESSION_LINEAGE, TABLE_SESSIONS, key,
                     "fork_message_id is '%s', but its origin leads to another message",
                     session->settings->fork_message_id);
    }
    return ERROR_NONE;
}

static Error check_session(Check *check, Slice key, const CheckedSession *session)
{
    if (!check_id_is(session->settings->id, session->id)) {
        check_damage(check, DAMAGE_MISPLACED, TABLE_SESSIONS, key, "it says it is session '%s'",
                     session->settings->id);
    }
    CheckedLog log;
    SessionState state;
    Error error = check_session_state(check, session->id, &state);
    if (!error && (state.is_purging || state.is_tombstone)) {
        check_damage(check, DAMAGE_PURGE, TABLE_SESSIONS, key, "it exists, although it was purged");
    }
    if (!error) error = check_log(check, session->id, state, &log);
    if (error) return error;
    check_counts(check, key, session->head, &log);
    check_totals(check, key, session->head, &log);
    check_places(check, key, session, &log);
    error = check_previews(check, key, session);
    if (!error) error = check_ledger(check, key, session);
    if (!error) error = check_indexed(check, key, session);
    if (!error) error = check_parent(check, key, session);
    if (!error) error = check_fork_point(check, key, session);
    return error;
}

// Visits the first row of a session, normally its settings, and reads the other. A head without
// settings is damage.
static Error check_session_row(Check *check, void *context, Slice key, Slice bytes)
{
    (void)context;
    CheckedSession session = {.id = key_id_at(key, 0), .key = key};
    uint8_t row = key.bytes[ULID_BYTES];
    if (row > SESSION_ROW_HEAD) {
        check_damage(check, DAMAGE_KEY, TABLE_SESSIONS, key, "the row is unknown");
        return ERROR_NONE;
    }
    uint8_t other = row == SESSION_ROW_SETTINGS ? SESSION_ROW_HEAD : SESSION_ROW_SETTINGS;
    Key other_key = key_session(session.id, other);
    Slice other_bytes = {NULL, 0};
    bool found;
    Error error = record_get(&check->txn, TABLE_SESSIONS, &other_key, &found, &other_bytes);
    if (error) return check_survive(check, error, TABLE_SESSIONS, key);
    if (!found) {
        check_damage(check, DAMAGE_SESSION_ROWS, TABLE_SESSIONS, key, "its %s row is missing",
                     other == SESSION_ROW_HEAD ? "head" : "settings");
    }
    if (!found || row == SESSION_ROW_HEAD) return ERROR_NONE;
    check->result->sessions++;
    error =
        check_decode(check, &session__descriptor, TABLE_SESSIONS, key, bytes, &session.settings);
    if (!error) {
        error = check_decode(check, &session__descriptor, TABLE_SESSIONS, key_slice(&other_key),
                             other_bytes, &session.head);
    }
    if (error || !session.settings || !session.head) return error;
    return check_session(check, key, &session);
}

Error check_sessions(Check *check)
{
    return check_each(check, TABLE_SESSIONS, (Slice){NULL, 0}, check_session_row, NULL);
}
