// The hub: how the events of each commit reach those who listen in this process, be it the bus that
// sends them on or a client of an embedded store.
//
// Each listener has a queue. The writer puts a commit's events into every queue when the commit is
// visible and before its calls are answered: who takes an event finds in the store what it tells
// of. Broadcast events stand among them in their place. Of an aborted batch nothing is put.
//
// Nothing that is kept can be missed: who opens a queue and then lists has in the list what was
// committed before, in the queue what is committed later, and some of it in both (the sequence
// tells). A queue is bounded. What does not fit is lost, and with it all that comes until the next
// take, so that a loss is one gap: ListEvents fills it, up to the newest sequence that every batch
// names.

#pragma once

#include "base/buffer.h"
#include "store/event.h"

typedef struct EventHub EventHub;
typedef struct EventQueue EventQueue;

// ERROR_OUT_OF_MEMORY. All events up to `newest_sequence` have been committed before.
MUST_USE Error event_hub_open(uint64_t newest_sequence, EventHub **out);

// No queue may be open. NULL is allowed.
void event_hub_close(EventHub *hub);

// Puts a commit's events into the queues. Copies them. `newest_sequence` is the store's by now.
void event_hub_put(EventHub *hub, const EventList *events, uint64_t newest_sequence);

// What a take took: events as the bus sends them, and what is known of the others.
typedef struct EventBatch {
    Buffer bytes;             // owned
    size_t read_bytes;        // of them, by event_batch_next
    uint64_t newest_sequence; // of all events of the store when the batch was taken
    bool has_lost;            // behind these, events were lost
} EventBatch;

// Opens a queue that gets what is committed from now on, up to `bytes_max` at a time (0:
// EVENT_QUEUE_BYTES_MAX). `out` is closed before the hub. ERROR_OUT_OF_MEMORY.
MUST_USE Error event_queue_open(EventHub *hub, size_t bytes_max, EventQueue **out);

// No take may be running. What is queued is dropped. NULL is allowed.
void event_queue_close(EventQueue *queue);

// A queue that is off gets nothing, drops what it has, and costs a commit nothing. New ones are on.
void event_queue_turn(EventQueue *queue, bool is_on);

// Takes all that is queued: waits for it until `until_ns` (monotonic; INT64_MAX: for ever; 0: not
// at all) or until it is woken. False: there was nothing, only the newest sequence. `batch` was
// zeroed or taken before; what it held is gone, its memory is used again.
bool event_queue_take(EventQueue *queue, int64_t until_ns, EventBatch *batch);

// Ends the take that waits, or the next one, as if its time were up.
void event_queue_wake(EventQueue *queue);

// The next event of a batch. The slices borrow from it: the whole message of the bus (the topic, a
// 0x00 byte, the encoded Event), and in it the topic and the Event. False: there is none.
typedef struct HubEvent {
    Slice message, topic, event;
} HubEvent;

bool event_batch_next(EventBatch *batch, HubEvent *out);
void event_batch_free(EventBatch *batch);
