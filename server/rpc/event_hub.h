// The hub: passes the events of each commit to the listeners in this process: the bus, or a client
// of an embedded store.
//
// Each listener has a queue. The writer puts the events of a commit into every queue after the
// commit is visible and before its calls are answered, so a listener that takes an event finds its
// effect in the store. Broadcast events are queued in order with the others. An aborted batch
// queues nothing.
//
// No stored event can be missed: a listener that opens a queue and then calls ListEvents finds
// earlier commits in the list, later ones in the queue, and some in both (compare the sequences). A
// queue is bounded. If an event does not fit, it and all events until the next take are lost, so a
// loss is one gap. ListEvents fills it, up to the newest sequence, which every batch contains.

#pragma once

#include "base/buffer.h"
#include "store/event.h"

typedef struct EventHub EventHub;
typedef struct EventQueue EventQueue;

// ERROR_OUT_OF_MEMORY. All events up to `newest_sequence` have been committed before.
MUST_USE Error event_hub_open(uint64_t newest_sequence, EventHub **out);

// No queue may be open. NULL is allowed.
void event_hub_close(EventHub *hub);

// Copies the events of a commit into the queues. `newest_sequence` is that of the store after it.
void event_hub_put(EventHub *hub, const EventList *events, uint64_t newest_sequence);

// The result of a take: events as the bus sends them, and whether others are missing.
typedef struct EventBatch {
    Buffer bytes;             // owned
    size_t read_bytes;        // of them, by event_batch_next
    uint64_t newest_sequence; // of all events of the store when the batch was taken
    bool has_lost;            // events after these were lost
} EventBatch;

// Opens a queue for the events of later commits. It holds at most `bytes_max` (0:
// EVENT_QUEUE_BYTES_MAX). The caller closes `*out` before the hub. ERROR_OUT_OF_MEMORY.
MUST_USE Error event_queue_open(EventHub *hub, size_t bytes_max, EventQueue **out);

// Closes a queue and drops what is in it. No take may be running. NULL is allowed.
void event_queue_close(EventQueue *queue);

// Switches a queue on or off. A queue that is off is empty, gets no events and costs a commit
// nothing. New queues are on.
void event_queue_turn(EventQueue *queue, bool is_on);

// Takes all queued events. If there are none, waits until `until_ns` (monotonic; INT64_MAX:
// forever; 0: does not wait) or until it is woken. Returns false if there were none; the newest
// sequence is set all the same. `batch` must be zeroed or from an earlier take, whose memory is
// reused.
bool event_queue_take(EventQueue *queue, int64_t until_ns, EventBatch *batch);

// Ends the waiting take, or the next one, as if its time were up.
void event_queue_wake(EventQueue *queue);

// Reads the next event of a batch. Returns false at the end. The slices borrow from the batch: the
// whole message of the bus (the topic, a 0x00 byte, the encoded Event), and in it topic and Event.
typedef struct HubEvent {
    Slice message, topic, event;
} HubEvent;

bool event_batch_next(EventBatch *batch, HubEvent *out);
void event_batch_free(EventBatch *batch);
