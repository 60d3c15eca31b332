// Events. Each event names the previous one of its session. With this chain, a subscriber notices a
// gap, and a purge finds a session's events without an index. The chain may lead to events that are
// older than the ring's oldest: it ends there.

#include "store/event.h"

#include <stdlib.h>

#include "base/limits.h"
#include "store/record.h"
#include "wire/wire.h"

enum { EVENT_LIST_COUNT_MIN = 64 };

static const char *const RESERVED_TYPES[] = {
    EVENT_SESSION_CREATED,  EVENT_SESSION_UPDATED, EVENT_SESSION_DELETED, EVENT_SESSION_RESTORED,
    EVENT_SESSION_PURGED,   EVENT_SESSION_REWOUND, EVENT_TOTALS_UPDATED,  EVENT_MESSAGE_APPENDED,
    EVENT_MESSAGE_DELETED,  EVENT_MESSAGE_PURGED,  EVENT_MARKER_ADDED,    EVENT_MEMORY_REMEMBERED,
    EVENT_MEMORY_FORGOTTEN, EVENT_TODOS_REPLACED,  EVENT_HEARTBEAT,       EVENT_CALL_RECORDED,
    EVENT_CALL_DELETED,     EVENT_MESSAGE_SEALED,  EVENT_PART_APPENDED,   EVENT_PART_REPLACED,
};

bool event_type_is_reserved(const char *type)
{
    for (size_t i = 0; i < sizeof(RESERVED_TYPES) / sizeof(*RESERVED_TYPES); i++) {
        if (strcmp(type, RESERVED_TYPES[i]) == 0) return true;
    }
    return false;
}

static Error refuse_short(Txn *txn)
{
    return error_say(txn->detail, ERROR_CORRUPT, "an event is shorter than its header");
}

// Reads the store time of the first event that exists at or after `from`. `*out_found` is false if
// there is none.
static Error event_oldest(Txn *txn, uint64_t from, bool *out_found, int64_t *out_at)
{
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    Error error = kv_cursor_open(txn->kv, TABLE_EVENTS, &cursor);
    if (error) return error;
    Key record_key = key_event(from);
    Key key = key_with_chunk(&record_key, 0);
    KvRow row;
    error = kv_seek(cursor, key_slice(&key), out_found, &row);
    if (error || !*out_found) return error;
    if (row.key.size != KEY_EVENT_BYTES) return kv_refuse_key(cursor, row.key);
    if (row.value.size < EVENT_HEADER_BYTES) return refuse_short(txn);
    *out_at = (int64_t)bytes_get_u64(row.value.bytes);
    return ERROR_NONE;
}

// Reads the store time of the oldest event. Every event that is put needs it, so it is
// remembered while that event is the oldest. It is remembered even if the event is purged
// meanwhile: its place in the ring is then given up at the same time as if it were there.
static Error event_date_oldest(Txn *txn, bool *out_found, int64_t *out_at)
{
    StoreState *state = &txn->state;
    *out_found = state->dated_event_sequence == state->first_event_sequence;
    if (!*out_found) {
        uint64_t sequence = state->first_event_sequence;
        Error error = event_oldest(txn, sequence, out_found, &state->dated_event_at);
        if (error || !*out_found) return error;
        state->dated_event_sequence = sequence;
    }
    *out_at = state->dated_event_at;
    return ERROR_NONE;
}

// Removes the oldest events that exceed the limits, but only a few for each event that is put.
// While the ring exceeds its limits, it thus shrinks by one with each new event.
static Error event_prune(Txn *txn)
{
    const StoreOptions *options = store_options(txn->store);
    for (int i = 0; i < EVENT_PRUNE_PER_EVENT; i++) {
        StoreState *state = &txn->state;
        if (state->first_event_sequence > state->last_event_sequence) return ERROR_NONE;
        uint64_t count = state->last_event_sequence - state->first_event_sequence + 1;
        int64_t at = 0;
        bool found = false;
        if (count <= options->event_count_max) {
            Error error = event_date_oldest(txn, &found, &at);
            // A damaged event is removed: it must not keep others from writing.
            bool is_damaged = error == ERROR_CORRUPT;
            if (error && !is_damaged) return error;
            if (!is_damaged && (!found || at >= state->time.now_ms - options->event_age_ms_max))
                return ERROR_NONE;
        }
        Key key = key_event(state->first_event_sequence);
        Error error = record_delete(txn, TABLE_EVENTS, &key, NULL);
        if (error) return error;
        state->first_event_sequence++;
        txn->state_is_dirty = true;
    }
    return ERROR_NONE;
}

// Lists an event without copying its bytes. They are in the arena of their call, which keeps them
// until the call is answered.
static Error event_note(Txn *txn, Ulid session, const char *type, Slice bytes)
{
    EventList *list = txn->events;
    if (!list) return ERROR_NONE;
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : EVENT_LIST_COUNT_MIN;
        ListedEvent *events = realloc(list->events, capacity * sizeof(ListedEvent));
        if (!events) return ERROR_OUT_OF_MEMORY;
        list->events = events;
        list->capacity = capacity;
    }
    list->events[list->count++] = (ListedEvent){session, slice_of(type), bytes};
    return ERROR_NONE;
}

void event_list_truncate(EventList *list, size_t count)
{
    if (count < list->count) list->count = count;
}

void event_list_free(EventList *list)
{
    free(list->events);
    *list = (EventList){.events = NULL};
}

// Fills in the fields that every event has.
static Error event_fill(Txn *txn, Ulid session, Event *event)
{
    event->created_at = txn->now_ms;
    event->instance_id = (char *)(uintptr_t)store_instance_id(txn->store);
    if (!ulid_is_zero(session)) {
        event->session_id = txn_id_text(txn, session);
        if (!event->session_id) return arena_error(txn->arena);
    }
    if (txn->operation_id.size > 0) {
        event->operation_id = arena_string(txn->arena, txn->operation_id);
        if (!event->operation_id) return arena_error(txn->arena);
    }
    return ERROR_NONE;
}

// Encodes an event with its header.
static Error event_encode(Txn *txn, const Event *event, Slice *out)
{
    Slice bytes;
    Error error = txn_encode(txn->arena, &event->base, EVENT_HEADER_BYTES, &bytes);
    if (error) return error;
    uint8_t *value = (uint8_t *)(uintptr_t)(bytes.bytes - EVENT_HEADER_BYTES);
    bytes_put_u64(value, (uint64_t)txn->state.time.now_ms);
    *out = slice(value, EVENT_HEADER_BYTES + bytes.size);
    return ERROR_NONE;
}

Error event_put(Txn *txn, Ulid session, Session *head, Event *event)
{
    uint64_t sequence = ++txn->state.last_event_sequence;
    txn->state_is_dirty = true;
    event->sequence = sequence;
    if (head) {
        event->previous_session_sequence = head->last_event_sequence;
        head->last_event_sequence = sequence;
    }
    Slice value;
    Error error = event_fill(txn, session, event);
    if (!error) error = event_encode(txn, event, &value);
    if (error) return error;
    Key key = key_event(sequence);
    error = record_insert(txn, TABLE_EVENTS, &key, value);
    if (!error) {
        error = event_note(txn, session, event->type, slice_skip(value, EVENT_HEADER_BYTES));
    }
    if (error) return error;
    return event_prune(txn);
}

Error event_broadcast(Txn *txn, Ulid session, Event *event)
{
    Slice bytes;
    Error error = event_fill(txn, session, event);
    if (!error) error = txn_encode(txn->arena, &event->base, 0, &bytes);
    if (error) return error;
    return event_note(txn, session, event->type, bytes);
}

static bool event_is_of(Slice bytes, Ulid session)
{
    WireField field;
    while (wire_next(&bytes, &field) && field.number <= FIELD_EVENT_SESSION_ID) {
        Ulid id;
        if (field.number == FIELD_EVENT_SESSION_ID && ulid_parse(field.bytes, &id)) {
            return ulid_equal(id, session);
        }
    }
    return false;
}

Error event_list(Txn *txn, const EventQuery *query, uint32_t field, Buffer *out, uint64_t *out_next,
                 bool *out_more)
{
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    Error error = kv_cursor_open(txn->kv, TABLE_EVENTS, &cursor);
    if (error) return error;
    uint64_t next = query->after_sequence;
    size_t scanned = 0;
    uint32_t count = 0;
    *out_more = false;
    Key record_key = key_event(next + 1);
    Key key = key_with_chunk(&record_key, 0);
    KvRow row;
    bool found;
    for (error = kv_seek(cursor, key_slice(&key), &found, &row); !error && found;
         error = kv_next(cursor, &found, &row)) {
        if (row.key.size != KEY_EVENT_BYTES) return kv_refuse_key(cursor, row.key);
        if (key_u16_at(row.key, 8) != 0) continue; // a later chunk of an event that was skipped
        if (scanned++ == SCANNED_RECORDS_MAX || count == query->limit) {
            *out_more = true;
            break;
        }
        if (row.value.size < EVENT_HEADER_BYTES) return refuse_short(txn);
        uint64_t sequence = bytes_get_u64(row.key.bytes);
        Slice first = slice_skip(row.value, EVENT_HEADER_BYTES);
        if (ulid_is_zero(query->session) || event_is_of(first, query->session)) {
            Slice value;
            error = record_read_on(txn, cursor, &row, &value);
            if (error) return error;
            Slice bytes = slice_skip(value, EVENT_HEADER_BYTES);
            size_t size = wire_bytes_field_size(field, bytes.size);
            if (count > 0 && buffer_size(out) + size > query->page_bytes) {
                *out_more = true;
                break;
            }
            error = wire_append_bytes(out, field, bytes);
            if (error) return error;
            count++;
            // The cursor may already be past an event of several chunks: seek to its end.
            if (value.size >= VALUE_BYTES_MAX) {
                record_key = key_event(sequence);
                key = key_with_chunk(&record_key, UINT16_MAX);
                error = kv_seek_before(cursor, key_slice(&key), &found, &row);
                if (error) return error;
            }
        }
        next = sequence;
    }
    *out_next = next;
    return error;
}

Error event_purge_published(Txn *txn, Ulid session, uint64_t *sequence, size_t *rows_left)
{
    while (*sequence >= txn->state.first_event_sequence && *sequence > 0 && *rows_left > 0) {
        Key key = key_event(*sequence);
        Slice value;
        bool found;
        Error error = record_get(txn, TABLE_EVENTS, &key, &found, &value);
        if (error) return error;
        if (!found) break;
        if (value.size < EVENT_HEADER_BYTES) return refuse_short(txn);
        Event *event;
        error = txn_decode(txn, &event__descriptor, slice_skip(value, EVENT_HEADER_BYTES), &event);
        if (error) return error;
        Ulid owner;
        if (!ulid_parse(slice_of(event->session_id), &owner) || !ulid_equal(owner, session)) {
            return error_say(txn->detail, ERROR_CORRUPT,
                             "the event chain of a session leads to another session");
        }
        *sequence = event->previous_session_sequence;
        (*rows_left)--;
        if (event_type_is_reserved(event->type)) continue;
        error = record_delete(txn, TABLE_EVENTS, &key, NULL);
        if (error) return error;
    }
    if (*rows_left > 0) *sequence = 0;
    return ERROR_NONE;
}
