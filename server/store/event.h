// Events: what changed, written in the transaction that changed it, kept in a ring.

#pragma once

#include "fields.h"
#include "names.h"
#include "store/store.h"

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

// Of the bus alone, never stored: who subscribes learns the newest sequence.
#define EVENT_HEARTBEAT "heartbeat"

// Whether events of this type come from the server alone.
bool event_type_is_reserved(const char *type);

// Stores an event: the caller set type and what it is about, the rest is filled here. `head`, if
// given, is the decoded head of `session`: its last_event_sequence moves, and the caller stores it.
// Without a head (a global event, or a session that is gone) there is no link to the previous one.
// The ring is pruned by up to two events.
MUST_USE Error event_put(Txn *txn, Ulid session, Session *head, Event *event);

// Sends an event without storing it, sequence 0: it is listed in its place among the transaction's
// events, for those who listen. The rest is filled as above.
MUST_USE Error event_broadcast(Txn *txn, Ulid session, Event *event);

// The events of a transaction, for those who listen (rpc/event_hub.h).
typedef struct ListedEvent {
    Ulid session; // zero: none
    Slice type;   // borrows from the call that the event is of
    Slice bytes;  // encoded; borrows from that call's arena
} ListedEvent;

struct EventList {
    ListedEvent *events; // owned
    size_t count, capacity;
};

// Forgets the events behind the first `count`, whose transaction or whose call came to nothing.
void event_list_truncate(EventList *list, size_t count);
void event_list_free(EventList *list);

typedef struct EventQuery {
    uint64_t after_sequence;
    Ulid session; // zero: all
    uint32_t limit;
    size_t page_bytes; // of the whole reply
} EventQuery;

// Appends the encoded events to `out` as contents of the bytes field `field`.
// `out_next` is the sequence to go on after; `out_more` says that the page ended first.
MUST_USE Error event_list(Txn *txn, const EventQuery *query, uint32_t field, Buffer *out,
                          uint64_t *out_next, bool *out_more);

// Deletes a session's published events, following its chain down from `*sequence`, at most
// `rows_max` events at a time. `*sequence` is where to go on; 0: done.
MUST_USE Error event_purge_published(Txn *txn, Ulid session, uint64_t *sequence, size_t *rows_left);
