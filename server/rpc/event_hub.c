// One mutex guards all queues. It is held while the events of a commit are copied in, and while a
// queue is swapped out, but not while anything waits or is sent.

#include "rpc/event_hub.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "os/condition.h"
#include "wire/bus_message.h"

struct EventQueue {
    EventHub *hub;
    EventQueue *next;
    size_t bytes_max;
    pthread_cond_t wakes;
    Buffer bytes; // records, each after its RecordHead
    bool is_on;
    bool has_lost;
    bool is_woken;
};

struct EventHub {
    pthread_mutex_t mutex; // guards all below, and the queues
    EventQueue *queues;
    uint64_t newest_sequence;
};

typedef struct RecordHead {
    uint32_t message_bytes;
    uint32_t topic_bytes;
} RecordHead;

Error event_hub_open(uint64_t newest_sequence, EventHub **out)
{
    EventHub *hub = calloc(1, sizeof(EventHub));
    if (!hub) return ERROR_OUT_OF_MEMORY;
    pthread_mutex_init(&hub->mutex, NULL);
    hub->newest_sequence = newest_sequence;
    *out = hub;
    return ERROR_NONE;
}

void event_hub_close(EventHub *hub)
{
    if (!hub) return;
    pthread_mutex_destroy(&hub->mutex);
    free(hub);
}

// Returns false if the event does not fit or there is no memory for it.
static bool queue_put(EventQueue *queue, const ListedEvent *event)
{
    char topic[BUS_TOPIC_BYTES_MAX], id[ULID_TEXT_BYTES + 1] = "";
    if (!ulid_is_zero(event->session)) ulid_format(event->session, id);
    size_t topic_bytes = bus_topic_write(slice_of(id), event->type, topic);
    RecordHead head = {
        .message_bytes = (uint32_t)bus_message_bytes(topic_bytes, event->bytes.size),
        .topic_bytes = (uint32_t)topic_bytes,
    };
    size_t size = sizeof(head) + head.message_bytes;
    if (buffer_size(&queue->bytes) + size > queue->bytes_max) return false;
    uint8_t *room;
    if (buffer_reserve(&queue->bytes, size, &room)) return false;
    memcpy(room, &head, sizeof(head));
    bus_message_write(room + sizeof(head), slice(topic, topic_bytes), event->bytes);
    buffer_grow(&queue->bytes, size);
    return true;
}

void event_hub_put(EventHub *hub, const EventList *events, uint64_t newest_sequence)
{
    pthread_mutex_lock(&hub->mutex);
    hub->newest_sequence = newest_sequence;
    for (EventQueue *queue = hub->queues; queue; queue = queue->next) {
        if (!queue->is_on || events->count == 0) continue;
        bool was_empty = buffer_size(&queue->bytes) == 0;
        for (size_t i = 0; !queue->has_lost && i < events->count; i++) {
            queue->has_lost = !queue_put(queue, &events->events[i]);
        }
        if (was_empty) pthread_cond_signal(&queue->wakes);
    }
    pthread_mutex_unlock(&hub->mutex);
}

Error event_queue_open(EventHub *hub, size_t bytes_max, EventQueue **out)
{
    EventQueue *queue = calloc(1, sizeof(EventQueue));
    if (!queue) return ERROR_OUT_OF_MEMORY;
    queue->hub = hub;
    queue->bytes_max = bytes_max ? bytes_max : EVENT_QUEUE_BYTES_MAX;
    queue->is_on = true;
    condition_init(&queue->wakes);
    pthread_mutex_lock(&hub->mutex);
    queue->next = hub->queues;
    hub->queues = queue;
    pthread_mutex_unlock(&hub->mutex);
    *out = queue;
    return ERROR_NONE;
}

void event_queue_close(EventQueue *queue)
{
    if (!queue) return;
    EventHub *hub = queue->hub;
    pthread_mutex_lock(&hub->mutex);
    EventQueue **link = &hub->queues;
    while (*link != queue)
        link = &(*link)->next;
    *link = queue->next;
    pthread_mutex_unlock(&hub->mutex);
    pthread_cond_destroy(&queue->wakes);
    buffer_free(&queue->bytes);
    free(queue);
}

void event_queue_turn(EventQueue *queue, bool is_on)
{
    pthread_mutex_lock(&queue->hub->mutex);
    queue->is_on = is_on;
    if (!is_on) {
        buffer_free(&queue->bytes);
        queue->has_lost = false;
    }
    pthread_mutex_unlock(&queue->hub->mutex);
}

static bool queue_is_empty(const EventQueue *queue)
{
    return buffer_size(&queue->bytes) == 0 && !queue->has_lost;
}

bool event_queue_take(EventQueue *queue, int64_t until_ns, EventBatch *batch)
{
    EventHub *hub = queue->hub;
    bool is_late = false;
    pthread_mutex_lock(&hub->mutex);
    while (queue_is_empty(queue) && !queue->is_woken && !is_late) {
        is_late = !condition_wait(&queue->wakes, &hub->mutex, until_ns);
    }
    Buffer emptied = batch->bytes;
    emptied.start = emptied.end = 0;
    if (emptied.capacity > BUFFER_KEEP_BYTES_MAX) buffer_free(&emptied);
    bool is_taken = !queue_is_empty(queue);
    *batch = (EventBatch){
        .bytes = queue->bytes,
        .newest_sequence = hub->newest_sequence,
        .has_lost = queue->has_lost,
    };
    queue->bytes = emptied;
    queue->has_lost = queue->is_woken = false;
    pthread_mutex_unlock(&hub->mutex);
    return is_taken;
}

void event_queue_wake(EventQueue *queue)
{
    pthread_mutex_lock(&queue->hub->mutex);
    queue->is_woken = true;
    pthread_cond_signal(&queue->wakes);
    pthread_mutex_unlock(&queue->hub->mutex);
}

bool event_batch_next(EventBatch *batch, HubEvent *out)
{
    Slice rest = slice_skip(buffer_slice(&batch->bytes), batch->read_bytes);
    RecordHead head;
    if (rest.size < sizeof(head)) return false;
    memcpy(&head, rest.bytes, sizeof(head));
    out->message = slice(rest.bytes + sizeof(head), head.message_bytes);
    out->topic = slice(out->message.bytes, head.topic_bytes);
    out->event = slice_skip(out->message, head.topic_bytes + 1);
    batch->read_bytes += sizeof(head) + head.message_bytes;
    return true;
}

void event_batch_free(EventBatch *batch)
{
    buffer_free(&batch->bytes);
    *batch = (EventBatch){.read_bytes = 0};
}
