// Events: records what changed, in the transaction that changed it, and keeps the newest events in
// a ring.

#pragma once

#include "fields.h"
#include "names.h"
#include "store/store.h"

// The value of an event: its store time u64 (store/store_time.h), then the `Event`.
enum { EVENT_HEADER_BYTES = 8 };

#define EVENT_SESSION_CREATED "session.created"
#define EVENT_SESSION_UPDATED "session.updated"
#define EVENT_SESSION_DELETED "session.deleted"
#define EVENT_SESSION_RESTORED "session.restored"
#define EVENT_SESSION_PURGED "session.purged"
#define EVENT_SESSION_REWOUND "session.rewound"
#define EVENT_TOTALS_UPDATED "totals.updated"
#define EVENT_MESSAGE_APPENDED "message.appended"
#define EVENT_MESSAGE_SEALED "message.sealed"
#define EVENT_PART_APPENDED "part.appended"
#define EVENT_PART_REPLACED "part.replaced"
#define EVENT_MESSAGE_DELETED "message.deleted"
#define EVENT_MESSAGE_PURGED "message.purged"
#define EVENT_MARKER_ADDED "marker.added"
#define EVENT_MEMORY_REMEMBERED "memory.remembered"
#define EVENT_MEMORY_FORGOTTEN "memory.forgotten"
#define EVENT_TODOS_REPLACED "todos.replaced"
#define EVENT_CALL_RECORDED "call.recorded"
#define EVENT_CALL_DELETED "call.deleted"

// Sent on the bus only, never stored. Tells subscribers the newest sequence.
#define EVENT_HEARTBEAT "heartbeat"

// Returns whether only the server may create events of this type.
bool event_type_is_reserved(const char *type);

// Stores an event. The caller has set its type and what it is about; this function fills in the
// rest. `head` is the decoded head record of `session`: the function updates its
// last_event_sequence, and the caller must store it. Without a head record (for a global event, or
// a session that is gone) the event is not linked to the session's previous one. Also removes up to
// EVENT_PRUNE_PER_EVENT old events from the ring.
MUST_USE Error event_put(Txn *txn, Ulid session, Session *head, Event *event);

// Passes an event to listeners without storing it: its sequence is 0, and it keeps its place among
// the events of the transaction. Fills the event as event_put does.
MUST_USE Error event_broadcast(Txn *txn, Ulid session, Event *event);

// An event of a transaction, for listeners (rpc/event_hub.h).
typedef struct ListedEvent {
    Ulid session; // zero: none
    Slice type;   // borrows from the call that caused the event
    Slice bytes;  // encoded; borrows from that call's arena
} ListedEvent;

struct EventList {
    ListedEvent *events; // owned
    size_t count, capacity;
};

// Removes all events after the first `count`, when their transaction or call has failed.
void event_list_truncate(EventList *list, size_t count);
// Frees the array. The events are borrowed and stay.
void event_list_free(EventList *list);

typedef struct EventQuery {
    uint64_t after_sequence;
    Ulid session; // zero: events of all sessions
    uint32_t limit;
    size_t page_bytes; // limit for the whole reply
} EventQuery;

// Appends encoded events to `out`, each as the content of the bytes field `field`. The next page
// continues after sequence `*out_next`. `*out_more` is set if the page ended before the events did.
MUST_USE Error event_list(Txn *txn, const EventQuery *query, uint32_t field, Buffer *out,
                          uint64_t *out_next, bool *out_more);

// Deletes a session's published events. Follows the session's chain of events down from `*sequence`
// and subtracts each visited event from `*rows_left`, until that is 0. Sets `*sequence` to the
// event to continue with, 0 if there is none.
MUST_USE Error event_purge_published(Txn *txn, Ulid session, uint64_t *sequence, size_t *rows_left);
