// Places are never freed while the server lives, so a late event or reply may look into its place.
// Each function locks one connection, and follows up what is left to do when it has unlocked it.

#include "transport/sp_connections.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/limits.h"
#include "os/clock.h"
#include "os/timer.h"
#include "transport/sp_connection.h"

enum {
    GREETING_MAX = 256,        // connections beyond the limit, to turn them away with a hello
    NUMBER_HELLO = EVENTS_OWN, // of events: of the timer …
    NUMBER_FIRST,              // … and of the first place
};

struct SpConnections {
    SpShared shared; // the first: a connection finds its table by it
    int hello_timer; // runs while a connection has not said hello
    atomic_bool is_greeting;
    SpConnection *places; // owned
    size_t place_count;

    pthread_mutex_t mutex; // guards all below
    uint32_t begun_count;  // places that were used
    uint32_t free_place;   // the first; NONE: none
    uint32_t last_serial;
};

#define NONE UINT32_MAX

Error sp_connections_open(Listener *listener, ErrorDetail *detail, SpConnections **out)
{
    SpConnections *connections = calloc(1, sizeof(SpConnections));
    if (!connections) return ERROR_OUT_OF_MEMORY;
    connections->shared = (SpShared){listener, epoll_create1(EPOLL_CLOEXEC)};
    int poller_errno = errno;
    connections->hello_timer = -1;
    connections->free_place = NONE;
    pthread_mutex_init(&connections->mutex, NULL);
    // The kernel gives a page of this when a connection first has its place there.
    connections->place_count = listener->group.count_max + GREETING_MAX;
    connections->places = calloc(connections->place_count, sizeof(SpConnection));
    Error error = connections->places ? ERROR_NONE : ERROR_OUT_OF_MEMORY;
    if (!error && connections->shared.poller < 0) {
        error = error_say(detail, ERROR_IO, "cannot watch connections: epoll_create1: %s",
                          strerror(poller_errno));
    }
    if (!error) error = timer_open("wait for hellos", detail, &connections->hello_timer);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = NUMBER_HELLO};
    if (!error && epoll_ctl(connections->shared.poller, EPOLL_CTL_ADD, connections->hello_timer,
                            &event) != 0) {
        error = error_say(detail, ERROR_IO, "cannot watch connections: %s", strerror(errno));
    }
    if (error) {
        sp_connections_free(connections);
        return error;
    }
    *out = connections;
    return ERROR_NONE;
}

void sp_connections_free(SpConnections *connections)
{
    if (!connections) return;
    for (size_t i = 0; i < connections->begun_count; i++) {
        pthread_mutex_destroy(&connections->places[i].mutex);
    }
    free(connections->places);
    if (connections->hello_timer >= 0) close(connections->hello_timer);
    if (connections->shared.poller >= 0) close(connections->shared.poller);
    pthread_mutex_destroy(&connections->mutex);
    free(connections);
}

int sp_connections_poller(const SpConnections *connections)
{
    return connections->shared.poller;
}

// Returns a place that no connection has, and a new serial. NULL: all are taken.
static SpConnection *place_take(SpConnections *connections, uint32_t *out_place,
                                uint32_t *out_serial)
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

// The connection must be locked.
static void end(SpConnection *connection, SpFollowUp *follow_up)
{
    SpConnections *connections = (SpConnections *)connection->shared;
    sp_connection_end(connection, follow_up);
    pthread_mutex_lock(&connections->mutex);
    connection->next_free = connections->free_place;
    connections->free_place = connection->place;
    pthread_mutex_unlock(&connections->mutex);
}

static PeerRequest *list_take(SpRequestList *list)
{
    PeerRequest *request = list->first;
    if (request) list->first = request->next;
    return request;
}

static void lock(SpConnection *connection, SpFollowUp *follow_up)
{
    follow_up->received = (SpRequestList){NULL, &follow_up->received.first};
    follow_up->sent = (SpRequestList){NULL, &follow_up->sent.first};
    follow_up->dropped = (SpRequestList){NULL, &follow_up->dropped.first};
    pthread_mutex_lock(&connection->mutex);
}

static void unlock(SpConnection *connection, SpFollowUp *follow_up)
{
    pthread_mutex_unlock(&connection->mutex);
    PeerRequest *request;
    while ((request = list_take(&follow_up->received)) != NULL) {
        Slice frame = slice(request->frame, request->frame_bytes);
        request_begin(request, slice_skip(frame, request->route_bytes));
    }
    while ((request = list_take(&follow_up->sent)) != NULL)
        request_sent(request, /* is_taken= */ true);
    while ((request = list_take(&follow_up->dropped)) != NULL)
        request_sent(request, /* is_taken= */ false);
}

// Some connection has yet to say hello.
static void keep_greeting(SpConnections *connections)
{
    if (atomic_load(&connections->is_greeting)) return;
    if (!atomic_exchange(&connections->is_greeting, true)) {
        timer_start(connections->hello_timer, HELLO_WAIT_MS);
    }
}

void sp_connections_add(SpConnections *connections, int file, bool is_welcome)
{
    uint32_t place, serial;
    SpConnection *connection = place_take(connections, &place, &serial);
    if (!connection) {
        close(file);
        return;
    }
    SpFollowUp follow_up;
    lock(connection, &follow_up);
    connection->shared = &connections->shared;
    connection->place = place;
    connection->serial = serial;
    connection->number = (uint64_t)serial << 32 | (place + NUMBER_FIRST);
    connection->file = file;
    connection->is_welcome = is_welcome;
    if (!sp_connection_begin(connection)) end(connection, &follow_up);
    unlock(connection, &follow_up);
    keep_greeting(connections);
}

SendResult sp_connections_send(PeerRequest *request)
{
    const Account *account = request->entry.account;
    SpConnection *connection = account->connection;
    SendResult result = SEND_GONE;
    SpFollowUp follow_up;
    lock(connection, &follow_up);
    if (connection->serial == account->connection_id) {
        bool ends;
        result = sp_connection_send(connection, request, &ends);
        if (ends) end(connection, &follow_up);
    }
    unlock(connection, &follow_up);
    return result;
}

void sp_connections_cut_off(Account *account)
{
    SpConnection *connection = account->connection;
    SpFollowUp follow_up;
    lock(connection, &follow_up);
    if (connection->serial == account->connection_id) end(connection, &follow_up);
    unlock(connection, &follow_up);
}

static SpConnection *connection_of(SpConnections *connections, uint64_t number)
{
    return &connections->places[(uint32_t)number - NUMBER_FIRST];
}

static bool is_there(const SpConnection *connection, uint64_t number)
{
    return connection->serial == (uint32_t)(number >> 32);
}

static void connection_ready(SpConnection *connection, uint64_t number, uint32_t events,
                             uint8_t *inbox)
{
    bool is_ending = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);
    SpFollowUp follow_up;
    lock(connection, &follow_up);
    if (is_there(connection, number)) {
        bool is_fine = !(events & EPOLLOUT) || sp_connection_send_unsent(connection, &follow_up);
        if (is_fine) is_fine = sp_connection_receive(connection, is_ending, inbox, &follow_up);
        if (follow_up.received.first) spin_missed(&connection->spin, clock_monotonic_ns());
        if (!is_fine) end(connection, &follow_up);
    }
    unlock(connection, &follow_up);
}

bool sp_connections_keep(SpConnections *connections, uint64_t number)
{
    if (number < NUMBER_FIRST) return false;
    SpConnection *connection = connection_of(connections, number);
    pthread_mutex_lock(&connection->mutex);
    bool is_kept = false;
    if (is_there(connection, number) && !connection->is_kept) {
        int64_t now_ns = clock_monotonic_ns();
        spin_begin(&connection->spin, now_ns);
        is_kept = spin_goes_on(&connection->spin, now_ns) && sp_connection_keep(connection);
    }
    pthread_mutex_unlock(&connection->mutex);
    return is_kept;
}

bool sp_connections_look(SpConnections *connections, uint64_t number, uint8_t *inbox)
{
    SpConnection *connection = connection_of(connections, number);
    bool goes_on = false, has_received = false;
    SpFollowUp follow_up;
    lock(connection, &follow_up);
    if (is_there(connection, number) && connection->running == 0) {
        goes_on = sp_connection_receive(connection, /* is_ending= */ false, inbox, &follow_up);
        if (!goes_on) end(connection, &follow_up);
        has_received = follow_up.received.first != NULL;
        if (goes_on && !has_received) {
            goes_on = spin_goes_on(&connection->spin, clock_monotonic_ns());
        }
    }
    unlock(connection, &follow_up);
    if (!has_received) return goes_on;
    pthread_mutex_lock(&connection->mutex);
    spin_met(&connection->spin);
    spin_begin(&connection->spin, clock_monotonic_ns());
    pthread_mutex_unlock(&connection->mutex);
    return goes_on;
}

void sp_connections_let_go(SpConnections *connections, uint64_t number)
{
    SpConnection *connection = connection_of(connections, number);
    SpFollowUp follow_up;
    lock(connection, &follow_up);
    if (is_there(connection, number) && !sp_connection_let_go(connection)) {
        end(connection, &follow_up);
    }
    unlock(connection, &follow_up);
}

// Ends the open connections: all of them, or those that began before and have not said hello.
// Returns whether younger ones have not said hello either.
static bool end_all(SpConnections *connections, int64_t silent_since_ns)
{
    bool has_silent = false;
    pthread_mutex_lock(&connections->mutex);
    uint32_t count = connections->begun_count;
    pthread_mutex_unlock(&connections->mutex);
    for (uint32_t i = 0; i < count; i++) {
        SpConnection *connection = &connections->places[i];
        SpFollowUp follow_up;
        lock(connection, &follow_up);
        if (connection->serial && (silent_since_ns == INT64_MAX || !connection->is_greeted)) {
            bool ends = connection->begun_ns < silent_since_ns;
            if (ends) end(connection, &follow_up);
            if (!ends) has_silent = true;
        }
        unlock(connection, &follow_up);
    }
    return has_silent;
}

void sp_connections_close(SpConnections *connections)
{
    (void)end_all(connections, INT64_MAX);
}

// Ends the connections that have had HELLO_WAIT_MS for their hello.
static void end_silent(SpConnections *connections)
{
    atomic_store(&connections->is_greeting, false);
    int64_t since_ns = clock_monotonic_ns() - (int64_t)HELLO_WAIT_MS * 1000000;
    if (end_all(connections, since_ns)) keep_greeting(connections);
}

void sp_connections_ready(SpConnections *connections, uint64_t number, uint32_t events,
                          uint8_t *inbox)
{
    if (number >= NUMBER_FIRST) {
        connection_ready(connection_of(connections, number), number, events, inbox);
    } else if (timer_has_ended(connections->hello_timer)) {
        end_silent(connections);
    }
}
