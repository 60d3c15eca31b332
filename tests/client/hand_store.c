// A store and its bus by hand.

#include "hand_store.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "tine/v1/store.pb-c.h"
#include "wire/wire.h"

enum { EVENTS_MAX = 4096, SUBSCRIBERS_MAX = 512 };

static const char INSTANCE[] = "01HANDSTORE000000000000000";

typedef struct KeptEvent {
    char session[32], type[32];
    uint64_t previous_session_sequence;
} KeptEvent;

struct HandStore {
    WireServer *requests, *bus;
    pthread_mutex_t mutex; // guards all below
    pthread_cond_t news, greeted;
    HandGreeting greeting;
    KeptEvent events[EVENTS_MAX]; // by sequence
    uint64_t newest;
    WireConnection *subscribers[SUBSCRIBERS_MAX]; // that listen now
    unsigned listening, greeted_count, lists;
};

static void answer_requests(WireConnection *connection);
static void greet(WireConnection *connection);
static void event_fill(const HandStore *store, uint64_t sequence, Tine__V1__Event *event);

HandStore *hand_open(void)
{
    HandStore *store = calloc(1, sizeof(HandStore));
    CHECK(store != NULL);
    pthread_mutex_init(&store->mutex, NULL);
    pthread_cond_init(&store->news, NULL);
    pthread_cond_init(&store->greeted, NULL);
    static unsigned stores;
    unsigned number = stores++;
    char path[108];
    CHECK(snprintf(path, sizeof(path), "%s/%u.events", test_dir(), number) < (int)sizeof(path));
    store->bus = wire_server_start_at(path, greet, store);
    CHECK(snprintf(path, sizeof(path), "%s/%u.sock", test_dir(), number) < (int)sizeof(path));
    store->requests = wire_server_start_at(path, answer_requests, store);
    return store;
}

void hand_close(HandStore **store)
{
    wire_server_stop(&(*store)->bus);
    wire_server_stop(&(*store)->requests);
    free(*store);
}

const char *hand_url(const HandStore *store)
{
    return wire_server_url(store->requests);
}

void hand_greet_with(HandStore *store, HandGreeting greeting)
{
    pthread_mutex_lock(&store->mutex);
    store->greeting = greeting;
    pthread_mutex_unlock(&store->mutex);
}

static void reply_with(WireConnection *connection, uint32_t id, const ProtobufCMessage *message)
{
    Buffer response = {.bytes = NULL};
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *room;
    CHECK_EQ(buffer_reset(&response, 0), ERROR_NONE);
    CHECK_EQ(wire_append_header(&response, 15, size), ERROR_NONE);
    CHECK_EQ(buffer_reserve(&response, size, &room), ERROR_NONE);
    protobuf_c_message_pack(message, room);
    buffer_grow(&response, size);
    wire_reply(connection, id, buffer_slice(&response));
    buffer_free(&response);
}

static void reply_stats(WireConnection *connection, const WireRequest *request)
{
    HandStore *store = connection->context;
    Tine__V1__StatsResponse stats = TINE__V1__STATS_RESPONSE__INIT;
    pthread_mutex_lock(&store->mutex);
    stats.newest_event_sequence = store->newest;
    stats.oldest_event_sequence = store->newest > 0;
    pthread_mutex_unlock(&store->mutex);
    reply_with(connection, request->id, &stats.base);
}

static Tine__V1__ListEventsRequest *list_request(const WireRequest *request)
{
    WireField body;
    CHECK(wire_find(slice(request->bytes, request->size), 15, &body));
    Tine__V1__ListEventsRequest *list =
        tine__v1__list_events_request__unpack(NULL, body.bytes.size, body.bytes.bytes);
    CHECK(list != NULL);
    return list;
}

// Fills the page, one event at least if there is one. Waits for news first, if it is asked to.
static void page_fill(HandStore *store, const Tine__V1__ListEventsRequest *request,
                      Tine__V1__Event *events, Tine__V1__ListEventsResponse *page)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += request->wait_ms / 1000;
    until.tv_nsec += request->wait_ms % 1000 * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    int late = request->wait_ms == 0;
    while (store->newest == request->after_sequence && !late)
        late = pthread_cond_timedwait(&store->news, &store->mutex, &until);
    CHECK(request->after_sequence <= store->newest);
    for (uint64_t i = request->after_sequence + 1; i <= store->newest; i++) {
        if (page->n_events == request->limit) {
            page->more = true;
            break;
        }
        page->next_after_sequence = i;
        if (*request->session_id && strcmp(request->session_id, store->events[i].session) != 0) {
            continue;
        }
        event_fill(store, i, &events[page->n_events]);
        page->events[page->n_events] = &events[page->n_events];
        page->n_events++;
    }
    if (!page->more) page->next_after_sequence = store->newest;
    page->newest_sequence = store->newest;
}

static void reply_list(WireConnection *connection, const WireRequest *request)
{
    HandStore *store = connection->context;
    Tine__V1__ListEventsRequest *list = list_request(request);
    Tine__V1__ListEventsResponse page = TINE__V1__LIST_EVENTS_RESPONSE__INIT;
    CHECK(list->limit > 0 && list->limit <= EVENTS_MAX);
    Tine__V1__Event *events = calloc(list->limit, sizeof(*events));
    page.events = calloc(list->limit, sizeof(*page.events));
    CHECK(events && page.events);
    page.instance_id = (char *)(uintptr_t)INSTANCE;
    pthread_mutex_lock(&store->mutex);
    store->lists++;
    page_fill(store, list, events, &page);
    pthread_mutex_unlock(&store->mutex);
    reply_with(connection, request->id, &page.base);
    free(events);
    free(page.events);
    tine__v1__list_events_request__free_unpacked(list, NULL);
}

static void answer_requests(WireConnection *connection)
{
    wire_hello(connection);
    for (WireRequest request; wire_next_request(connection, &request);) {
        if (strstr(request.method, "/Stats")) {
            reply_stats(connection, &request);
        } else {
            CHECK(strstr(request.method, "/ListEvents"));
            reply_list(connection, &request);
        }
    }
}

// An event as it is kept: the texts are borrowed from the store.
static void event_fill(const HandStore *store, uint64_t sequence, Tine__V1__Event *event)
{
    const KeptEvent *kept = &store->events[sequence];
    tine__v1__event__init(event);
    event->sequence = sequence;
    event->previous_session_sequence = kept->previous_session_sequence;
    event->instance_id = (char *)(uintptr_t)INSTANCE;
    event->session_id = (char *)(uintptr_t)kept->session;
    event->type = (char *)(uintptr_t)kept->type;
}

static void message_send(WireConnection *connection, const char *topic,
                         const Tine__V1__Event *event)
{
    size_t topic_size = strlen(topic) + 1;
    size_t size = topic_size + tine__v1__event__get_packed_size(event);
    uint8_t *bytes = calloc(1, 9 + size);
    CHECK(bytes != NULL);
    bytes[0] = 1;
    for (int i = 0; i < 8; i++)
        bytes[1 + i] = (uint8_t)(size >> (56 - 8 * i));
    memcpy(bytes + 9, topic, topic_size);
    tine__v1__event__pack(event, bytes + 9 + topic_size);
    wire_send(connection, bytes, 9 + size);
    free(bytes);
}

static void heartbeat_send(WireConnection *connection, uint64_t newest)
{
    Tine__V1__Event event = TINE__V1__EVENT__INIT;
    event.sequence = newest;
    event.instance_id = (char *)(uintptr_t)INSTANCE;
    event.type = (char *)(uintptr_t) "heartbeat";
    message_send(connection, "heartbeat", &event);
}

static void greet(WireConnection *connection)
{
    HandStore *store = connection->context;
    pthread_mutex_lock(&store->mutex);
    HandGreeting greeting = store->greeting;
    if (greeting) {
        pthread_mutex_unlock(&store->mutex);
        greeting(connection);
        pthread_mutex_lock(&store->mutex);
    } else if (wire_hello_pub(connection)) {
        heartbeat_send(connection, store->newest);
        CHECK(store->listening < SUBSCRIBERS_MAX);
        store->subscribers[store->listening++] = connection;
    }
    store->greeted_count++;
    pthread_cond_broadcast(&store->greeted);
    pthread_mutex_unlock(&store->mutex);
    if (greeting) return;
    wire_expect_end(connection); // a subscriber never sends
    pthread_mutex_lock(&store->mutex);
    for (unsigned i = 0; i < store->listening; i++) {
        if (store->subscribers[i] != connection) continue;
        store->subscribers[i] = store->subscribers[--store->listening];
        break;
    }
    pthread_mutex_unlock(&store->mutex);
}

uint64_t hand_keep(HandStore *store, const char *session, const char *type)
{
    pthread_mutex_lock(&store->mutex);
    CHECK(store->newest + 1 < EVENTS_MAX);
    KeptEvent *event = &store->events[store->newest + 1];
    snprintf(event->session, sizeof(event->session), "%s", session ? session : "");
    snprintf(event->type, sizeof(event->type), "%s", type);
    for (uint64_t i = store->newest; i > 0 && session; i--) {
        if (strcmp(store->events[i].session, session) != 0) continue;
        event->previous_session_sequence = i;
        break;
    }
    uint64_t sequence = ++store->newest;
    pthread_cond_broadcast(&store->news);
    pthread_mutex_unlock(&store->mutex);
    return sequence;
}

static void tell(HandStore *store, const Tine__V1__Event *event)
{
    char topic[96];
    if (*event->session_id) {
        snprintf(topic, sizeof(topic), "session/%s/%s", event->session_id, event->type);
    } else {
        snprintf(topic, sizeof(topic), "global/%s", event->type);
    }
    pthread_mutex_lock(&store->mutex);
    for (unsigned i = 0; i < store->listening; i++)
        message_send(store->subscribers[i], topic, event);
    pthread_mutex_unlock(&store->mutex);
}

void hand_tell(HandStore *store, uint64_t sequence)
{
    Tine__V1__Event event;
    event_fill(store, sequence, &event);
    tell(store, &event);
}

uint64_t hand_keep_and_tell(HandStore *store, const char *session, const char *type)
{
    uint64_t sequence = hand_keep(store, session, type);
    hand_tell(store, sequence);
    return sequence;
}

void hand_broadcast(HandStore *store, const char *session, const char *type)
{
    Tine__V1__Event event = TINE__V1__EVENT__INIT;
    event.instance_id = (char *)(uintptr_t)INSTANCE;
    event.session_id = (char *)(uintptr_t)(session ? session : "");
    event.type = (char *)(uintptr_t)type;
    tell(store, &event);
}

void hand_heartbeat(HandStore *store, uint64_t newest_sequence)
{
    pthread_mutex_lock(&store->mutex);
    for (unsigned i = 0; i < store->listening; i++)
        heartbeat_send(store->subscribers[i], newest_sequence);
    pthread_mutex_unlock(&store->mutex);
}

void hand_tell_lie(HandStore *store, const char *instance_id, uint64_t sequence)
{
    Tine__V1__Event event = TINE__V1__EVENT__INIT;
    event.sequence = sequence;
    event.instance_id = (char *)(uintptr_t)(instance_id ? instance_id : INSTANCE);
    event.type = (char *)(uintptr_t) "lie";
    tell(store, &event);
}

void hand_send(HandStore *store, Slice bytes)
{
    pthread_mutex_lock(&store->mutex);
    for (unsigned i = 0; i < store->listening; i++)
        wire_send(store->subscribers[i], bytes.bytes, bytes.size);
    pthread_mutex_unlock(&store->mutex);
}

void hand_cut(HandStore *store)
{
    pthread_mutex_lock(&store->mutex);
    for (unsigned i = 0; i < store->listening; i++)
        shutdown(store->subscribers[i]->fd, SHUT_RDWR);
    store->listening = 0;
    pthread_mutex_unlock(&store->mutex);
}

void hand_wait_subscribers(HandStore *store, unsigned count)
{
    pthread_mutex_lock(&store->mutex);
    while (store->greeted_count < count)
        pthread_cond_wait(&store->greeted, &store->mutex);
    pthread_mutex_unlock(&store->mutex);
}

unsigned hand_subscribers(HandStore *store)
{
    pthread_mutex_lock(&store->mutex);
    unsigned count = store->greeted_count;
    pthread_mutex_unlock(&store->mutex);
    return count;
}

unsigned hand_lists(HandStore *store)
{
    pthread_mutex_lock(&store->mutex);
    unsigned count = store->lists;
    pthread_mutex_unlock(&store->mutex);
    return count;
}
