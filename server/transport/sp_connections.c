// All connections. Places are never freed while the server lives: who was told of a connection that
// is gone finds another serial there.

#include "transport/sp_connections.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/limits.h"
#include "os/clock.h"
#include "report/log.h"
#include "transport/sp_connection.h"

enum {
    GREETING_MAX = 256,       // who may be there beyond the clients, to be turned away with a hello
    NUMBER_LOOK = EVENTS_OWN, // of events: the timers' …
    NUMBER_HELLO,
    NUMBER_FIRST, // … and the first place's
};

struct Connections {
    ConnectionShared shared;     // what it points to is owned
    int look_timer, hello_timer; // run while there is something to wait for
    atomic_bool is_looking, is_greeting;
    Connection *places; // owned
    size_t place_count;

    pthread_mutex_t mutex; // guards all below
    uint32_t begun_count;  // places that were used once
    uint32_t free_place;   // its first; NONE: none
    uint32_t last_serial;
};

#define NONE UINT32_MAX

static SendResult send_reply(void *context, SpRequest *request);
static void cut_off(void *context, uint32_t place, uint32_t serial);

static int timer_open(int poller, uint64_t number)
{
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = number};
    if (timer < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, timer, &event) == 0) return timer;
    close(timer);
    return -1;
}

static void timer_start(int timer, int64_t milliseconds)
{
    struct itimerspec time = {
        .it_value = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000}};
    (void)timerfd_settime(timer, 0, &time, NULL);
}

// Replies wait for being read: there will be a look at them.
static void keep_looking(Connections *connections)
{
    if (atomic_load(&connections->is_looking)) return;
    if (!atomic_exchange(&connections->is_looking, true)) {
        timer_start(connections->look_timer, UNSENT_LOOK_MS);
    }
}

// Somebody has yet to say a hello.
static void keep_greeting(Connections *connections)
{
    if (atomic_load(&connections->is_greeting)) return;
    if (!atomic_exchange(&connections->is_greeting, true)) {
        timer_start(connections->hello_timer, HELLO_WAIT_MS);
    }
}

Error connections_open(const ConnectionsOptions *options, ErrorDetail *detail, Connections **out)
{
    Connections *connections = calloc(1, sizeof(Connections));
    if (!connections) return ERROR_OUT_OF_MEMORY;
    connections->free_place = NONE;
    pthread_mutex_init(&connections->mutex, NULL);
    *out = connections;
    connections->shared.poller = epoll_create1(EPOLL_CLOEXEC);
    connections->look_timer = timer_open(connections->shared.poller, NUMBER_LOOK);
    connections->hello_timer = timer_open(connections->shared.poller, NUMBER_HELLO);
    if (connections->look_timer < 0 || connections->hello_timer < 0) {
        return error_say(detail, ERROR_IO, "cannot watch connections: %s", strerror(errno));
    }
    // The kernel gives a page of this when a connection first has its place there.
    connections->place_count = options->clients_max + GREETING_MAX;
    connections->places = calloc(connections->place_count, sizeof(Connection));
    if (!connections->places) return ERROR_OUT_OF_MEMORY;
    Error error = clients_open(options->clients_max, &connections->shared.clients);
    if (error) return error;
    RequestsOptions requests_options = {
        .engine = options->engine,
        .clients = connections->shared.clients,
        .hooks = {send_reply, cut_off, connections},
    };
    return requests_open(&requests_options, &connections->shared.requests);
}

void connections_free(Connections *connections)
{
    if (!connections) return;
    requests_close(connections->shared.requests);
    clients_close(connections->shared.clients);
    for (size_t i = 0; i < connections->begun_count; i++) {
        pthread_mutex_destroy(&connections->places[i].mutex);
    }
    free(connections->places);
    if (connections->look_timer > 0) close(connections->look_timer);
    if (connections->hello_timer > 0) close(connections->hello_timer);
    if (connections->shared.poller > 0) close(connections->shared.poller);
    pthread_mutex_destroy(&connections->mutex);
    free(connections);
}

int connections_poller(const Connections *connections)
{
    return connections->shared.poller;
}

// A place that nobody has, and a new serial. NULL: all are taken.
static Connection *place_take(Connections *connections, uint32_t *out_place, uint32_t *out_serial)
{
    pthread_mutex_lock(&connections->mutex);
    uint32_t place = connections->free_place;
    if (place != NONE) {
        connections->free_place = connections->places[place].next_free;
    } else if (connections->begun_count < connections->place_count) {
        place = connections->begun_count++;
        pthread_mutex_init(&connections->places[place].mutex, NULL);
    }
    connections->last_serial += connections->last_serial == UINT32_MAX ? 2 : 1;
    *out_place = place;
    *out_serial = connections->last_serial;
    pthread_mutex_unlock(&connections->mutex);
    return place != NONE ? &connections->places[place] : NULL;
}

static void place_give(Connections *connections, Connection *connection)
{
    pthread_mutex_lock(&connections->mutex);
    connection->next_free = connections->free_place;
    connections->free_place = (uint32_t)(connection - connections->places);
    pthread_mutex_unlock(&connections->mutex);
}

// Hands back what was dropped with a connection, without its mutex.
static void replies_drop(SpRequest *unsent)
{
    while (unsent) {
        SpRequest *next = unsent->next;
        request_sent(unsent, /* is_taken= */ false);
        unsent = next;
    }
}

// Under its mutex. Returns its replies that were not sent, for replies_drop.
static SpRequest *end_one(Connections *connections, Connection *connection)
{
    SpRequest *unsent = connection_end(connection);
    place_give(connections, connection);
    return unsent;
}

void connections_add(Connections *connections, int file, bool is_welcome)
{
    uint32_t place, serial;
    Connection *connection = place_take(connections, &place, &serial);
    if (!connection) {
        close(file);
        return;
    }
    pthread_mutex_lock(&connection->mutex);
    connection->shared = &connections->shared;
    connection->place = place;
    connection->serial = serial;
    connection->number = (uint64_t)serial << 32 | (place + NUMBER_FIRST);
    connection->file = file;
    connection->is_welcome = is_welcome;
    bool is_fine = connection_begin(connection);
    SpRequest *unsent = is_fine ? NULL : end_one(connections, connection);
    pthread_mutex_unlock(&connection->mutex);
    replies_drop(unsent);
    keep_greeting(connections);
}

static SendResult send_reply(void *context, SpRequest *request)
{
    Connections *connections = context;
    Connection *connection = &connections->places[request->place];
    SendResult result = SEND_GONE;
    SpRequest *dropped = NULL;
    pthread_mutex_lock(&connection->mutex);
    if (connection->serial == request->serial) {
        bool ends;
        result = connection_send(connection, request, &ends);
        if (ends) dropped = end_one(connections, connection);
    }
    pthread_mutex_unlock(&connection->mutex);
    if (result == SEND_LATER) keep_looking(connections);
    replies_drop(dropped);
    return result;
}

static void cut_off(void *context, uint32_t place, uint32_t serial)
{
    Connections *connections = context;
    Connection *connection = &connections->places[place];
    SpRequest *dropped = NULL;
    pthread_mutex_lock(&connection->mutex);
    if (connection->serial == serial) dropped = end_one(connections, connection);
    pthread_mutex_unlock(&connection->mutex);
    replies_drop(dropped);
}

// Without its mutex: what came runs, and what it leaves is handed back.
static void follow_up(RequestList *whole, RequestList *done, SpRequest *dropped)
{
    while (whole->first) {
        SpRequest *request = whole->first;
        whole->first = request->next;
        request_begin(request);
    }
    while (done->first) {
        SpRequest *request = done->first;
        done->first = request->next;
        request_sent(request, /* is_taken= */ true);
    }
    replies_drop(dropped);
}

static Connection *connection_of(Connections *connections, uint64_t number)
{
    return &connections->places[(uint32_t)number - NUMBER_FIRST];
}

static bool is_there(const Connection *connection, uint64_t number)
{
    return connection->serial == (uint32_t)(number >> 32);
}

static void connection_ready(Connections *connections, uint64_t number, uint32_t events,
                             uint8_t *inbox)
{
    Connection *connection = connection_of(connections, number);
    RequestList whole = {NULL, &whole.first}, done = {NULL, &done.first};
    SpRequest *dropped = NULL;
    bool is_ending = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);
    pthread_mutex_lock(&connection->mutex);
    if (is_there(connection, number)) {
        bool is_fine = !(events & EPOLLOUT) || connection_send_unsent(connection, &done);
        if (is_fine) is_fine = connection_receive(connection, is_ending, inbox, &whole);
        if (whole.first) spin_missed(&connection->spin, clock_monotonic_ns());
        if (!is_fine) dropped = end_one(connections, connection);
    }
    pthread_mutex_unlock(&connection->mutex);
    follow_up(&whole, &done, dropped);
}

bool connections_keep(Connections *connections, uint64_t number)
{
    if (number < NUMBER_FIRST) return false;
    Connection *connection = connection_of(connections, number);
    pthread_mutex_lock(&connection->mutex);
    bool is_kept = false;
    if (is_there(connection, number) && !connection->is_kept) {
        int64_t now_ns = clock_monotonic_ns();
        spin_begin(&connection->spin, now_ns);
        is_kept = spin_goes_on(&connection->spin, now_ns) && connection_keep(connection);
    }
    pthread_mutex_unlock(&connection->mutex);
    return is_kept;
}

bool connections_look(Connections *connections, uint64_t number, uint8_t *inbox)
{
    Connection *connection = connection_of(connections, number);
    RequestList whole = {NULL, &whole.first}, done = {NULL, &done.first};
    SpRequest *dropped = NULL;
    bool goes_on = false;
    pthread_mutex_lock(&connection->mutex);
    if (is_there(connection, number) && connection->running == 0) {
        goes_on = connection_receive(connection, /* is_ending= */ false, inbox, &whole);
        if (!goes_on) dropped = end_one(connections, connection);
        if (goes_on && !whole.first) {
            goes_on = spin_goes_on(&connection->spin, clock_monotonic_ns());
        }
    }
    pthread_mutex_unlock(&connection->mutex);
    bool has_come = whole.first != NULL;
    follow_up(&whole, &done, dropped);
    if (!has_come) return goes_on;
    pthread_mutex_lock(&connection->mutex);
    spin_met(&connection->spin);
    spin_begin(&connection->spin, clock_monotonic_ns());
    pthread_mutex_unlock(&connection->mutex);
    return goes_on;
}

void connections_let_go(Connections *connections, uint64_t number)
{
    Connection *connection = connection_of(connections, number);
    SpRequest *dropped = NULL;
    pthread_mutex_lock(&connection->mutex);
    if (is_there(connection, number) && !connection_let_go(connection)) {
        dropped = end_one(connections, connection);
    }
    pthread_mutex_unlock(&connection->mutex);
    replies_drop(dropped);
}

void connections_refuse(Connections *connections)
{
    atomic_store(&connections->shared.is_refusing, true);
    requests_refuse(connections->shared.requests);
}

bool connections_drain(Connections *connections, int64_t until_ns)
{
    return requests_drain(connections->shared.requests, until_ns);
}

// How many places may have a connection.
static uint32_t places_begun(Connections *connections)
{
    pthread_mutex_lock(&connections->mutex);
    uint32_t count = connections->begun_count;
    pthread_mutex_unlock(&connections->mutex);
    return count;
}

// Whether a connection that is there is to end.
typedef bool (*IsToEnd)(const Connection *connection, const void *context);

static void end_those(Connections *connections, IsToEnd is_to_end, const void *context)
{
    uint32_t count = places_begun(connections);
    for (uint32_t i = 0; i < count; i++) {
        Connection *connection = &connections->places[i];
        SpRequest *dropped = NULL;
        pthread_mutex_lock(&connection->mutex);
        if (connection->serial && is_to_end(connection, context)) {
            dropped = end_one(connections, connection);
        }
        pthread_mutex_unlock(&connection->mutex);
        replies_drop(dropped);
    }
}

static bool has_serial(const Connection *connection, const void *context)
{
    return connection->serial == *(const uint32_t *)context;
}

static bool always(const Connection *connection, const void *context)
{
    (void)connection;
    (void)context;
    return true;
}

void connections_close(Connections *connections)
{
    end_those(connections, always, NULL);
    if (connections->shared.requests) requests_stop(connections->shared.requests);
}

// What is handed over while this says that nothing is unsent begins to look itself.
static void look(Connections *connections)
{
    atomic_store(&connections->is_looking, false);
    if (clients_look(connections->shared.clients)) keep_looking(connections);
    for (uint32_t serial; (serial = clients_overdue(connections->shared.clients)) != 0;) {
        log_write(LOG_WARNING, "connection closed: it does not read its replies", NULL);
        end_those(connections, has_serial, &serial);
    }
}

typedef struct Patience {
    int64_t before_ns;
    bool *is_left;
} Patience;

static bool has_said_nothing(const Connection *connection, const void *context)
{
    const Patience *patience = context;
    if (connection->is_greeted) return false;
    bool is_late = connection->begun_ns < patience->before_ns;
    if (!is_late) *patience->is_left = true;
    return is_late;
}

// Those who have had HELLO_WAIT_MS for their hello go.
static void give_up(Connections *connections)
{
    bool is_left = false;
    Patience patience = {clock_monotonic_ns() - (int64_t)HELLO_WAIT_MS * 1000000, &is_left};
    atomic_store(&connections->is_greeting, false);
    end_those(connections, has_said_nothing, &patience);
    if (is_left) keep_greeting(connections);
}

void connections_ready(Connections *connections, uint64_t number, uint32_t events, uint8_t *inbox)
{
    uint64_t times;
    switch (number) {
    case NUMBER_LOOK:
        if (read(connections->look_timer, &times, sizeof(times)) > 0) look(connections);
        break;
    case NUMBER_HELLO:
        if (read(connections->hello_timer, &times, sizeof(times)) > 0) give_up(connections);
        break;
    default: connection_ready(connections, number, events, inbox);
    }
}

size_t connections_count(Connections *connections)
{
    return clients_count(connections->shared.clients);
}

uint64_t connections_request_count(Connections *connections)
{
    return requests_count(connections->shared.requests);
}

void connections_trim(Connections *connections)
{
    requests_trim(connections->shared.requests);
}
