// Check of events. Each sequence of the ring must exist, unless a purge removed it, and each event
// must name the previous one of its session. A purge removes only published events and stores its
// own event after them. So a gap without a later purge is damage.

#include <stdlib.h>

#include "store/check_pass.h"
#include "store/event.h"

typedef struct LastEvent {
    Ulid session; // zero: the slot is free
    uint64_t sequence;
} LastEvent;

typedef struct EventWalk {
    uint64_t next;       // the sequence to expect
    uint64_t last_gap;   // the last missing sequence; 0: none
    uint64_t last_purge; // the last session.purged
    int64_t last_at;     // the store time of the event before
} EventWalk;

static LastEvent *slot_of(const LastEvents *events, Ulid session)
{
    uint64_t hash = bytes_get_u64(session.bytes + 8) * UINT64_C(0x9E3779B97F4A7C15);
    for (size_t i = (size_t)(hash >> 20);; i++) {
        LastEvent *slot = &events->slots[i & (events->capacity - 1)];
        if (ulid_is_zero(slot->session) || ulid_equal(slot->session, session)) return slot;
    }
}

static Error events_grow(LastEvents *events)
{
    LastEvents larger = {.capacity = events->capacity ? 2 * events->capacity : 64};
    larger.slots = calloc(larger.capacity, sizeof(LastEvent));
    if (!larger.slots) return ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < events->capacity; i++) {
        if (ulid_is_zero(events->slots[i].session)) continue;
        *slot_of(&larger, events->slots[i].session) = events->slots[i];
        larger.count++;
    }
    free(events->slots);
    *events = larger;
    return ERROR_NONE;
}

uint64_t check_last_event(const Check *check, Ulid session)
{
    return check->last_events.capacity ? slot_of(&check->last_events, session)->sequence : 0;
}

void check_events_free(Check *check)
{
    free(check->last_events.slots);
}

static Error note_last(Check *check, Ulid session, uint64_t sequence)
{
    LastEvents *events = &check->last_events;
    if (2 * events->count >= events->capacity) {
        Error error = events_grow(events);
        if (error) return error;
    }
    LastEvent *slot = slot_of(events, session);
    if (ulid_is_zero(slot->session)) events->count++;
    *slot = (LastEvent){session, sequence};
    return ERROR_NONE;
}

static Error check_session_event(Check *check, Slice key, const Event *event, Ulid session)
{
    SessionState state;
    Error error = check_session_state(check, session, &state);
    if (error) return error;
    if (!state.is_live) {
        // The purge may have removed the published events of a purged session.
        if (!state.is_purging && !event_type_is_reserved(event->type)) {
            check_damage(check, DAMAGE_ORPHAN, TABLE_EVENTS, key,
                         "it was published for a session that does not exist");
        }
        return ERROR_NONE;
    }
    uint64_t previous = check_last_event(check, session);
    uint64_t said = event->previous_session_sequence;
    bool is_right = previous ? said == previous : said < check->state.first_event_sequence;
    if (!is_right) {
        check_damage(check, DAMAGE_EVENT_CHAIN, TABLE_EVENTS, key,
                     "previous_session_sequence is %llu, but the session's previous event is %llu",
                     (unsigned long long)said, (unsigned long long)previous);
    }
    return note_last(check, session, event->sequence);
}

static void check_event_time(Check *check, EventWalk *walk, Slice key, int64_t at)
{
    if (at < walk->last_at || at > check->state.time.now_ms) {
        check_damage(check, DAMAGE_EVENT, TABLE_EVENTS, key,
                     "its store time is before that of the event before it, or after the store's");
    }
    walk->last_at = at;
}

static Error check_event(Check *check, void *context, Slice key, Slice value)
{
    EventWalk *walk = context;
    uint64_t sequence = bytes_get_u64(key.bytes);
    check->result->events++;
    if (sequence < check->state.first_event_sequence ||
        sequence > check->state.last_event_sequence) {
        check_damage(check, DAMAGE_EVENT, TABLE_EVENTS, key,
                     "it is outside the ring of kept events");
    }
    if (sequence > walk->next) walk->last_gap = sequence - 1;
    walk->next = sequence + 1;
    if (value.size < EVENT_HEADER_BYTES) {
        check_damage(check, DAMAGE_EVENT, TABLE_EVENTS, key, "it is shorter than its header");
        return ERROR_NONE;
    }
    check_event_time(check, walk, key, (int64_t)bytes_get_u64(value.bytes));
    Event *event;
    Error error = check_decode(check, &event__descriptor, TABLE_EVENTS, key,
                               slice_skip(value, EVENT_HEADER_BYTES), &event);
    if (error || !event) return error;
    if (event->sequence != sequence) {
        check_damage(check, DAMAGE_MISPLACED, TABLE_EVENTS, key, "it says it is event %llu",
                     (unsigned long long)event->sequence);
        event->sequence = sequence;
    }
    if (strcmp(event->instance_id, store_instance_id(check->txn.store)) != 0 || !*event->type) {
        check_damage(check, DAMAGE_EVENT, TABLE_EVENTS, key,
                     "it belongs to another store or has no type");
    }
    if (strcmp(event->type, EVENT_SESSION_PURGED) == 0) walk->last_purge = sequence;
    if (!*event->session_id) return ERROR_NONE;
    Ulid session;
    if (!ulid_parse(slice_of(event->session_id), &session)) {
        check_damage(check, DAMAGE_EVENT, TABLE_EVENTS, key, "session_id is not an ID");
        return ERROR_NONE;
    }
    return check_session_event(check, key, event, session);
}

Error check_events(Check *check)
{
    EventWalk walk = {.next = check->state.first_event_sequence};
    Error error = check_each(check, TABLE_EVENTS, (Slice){NULL, 0}, check_event, &walk);
    if (error) return error;
    if (walk.next <= check->state.last_event_sequence) {
        walk.last_gap = check->state.last_event_sequence;
    }
    if (walk.last_gap > walk.last_purge) {
        Key key = key_event(walk.last_gap);
        check_damage(check, DAMAGE_EVENT, TABLE_EVENTS, key_slice(&key),
                     "it is missing, and no session was purged since");
    }
    return ERROR_NONE;
}
