// The table is an array of places, which are not freed while the listener lives. A place that a
// connection has left is used again before a new one is.

#include "transport/sp_connections.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/limits.h"
#include "os/clock.h"
#include "os/timer.h"

enum { GREETING_MAX = 256 }; // connections above the limit, to turn them away with a hello

struct SpConnections {
    SpShared shared; // its mutex guards also `begun_count` and `last_serial`
    int timer;
    atomic_bool is_greeting; // the timer runs
    SpConnection *places;    // owned
    size_t place_count;
    uint32_t begun_count; // places that were used
    uint32_t last_serial;
};

Error sp_connections_open(Listener *listener, int poller, ErrorDetail *detail, SpConnections **out)
{
    SpConnections *connections = calloc(1, sizeof(SpConnections));
    if (!connections) return ERROR_OUT_OF_MEMORY;
    connections->shared.listener = listener;
    connections->shared.poller = poller;
    pthread_mutex_init(&connections->shared.mutex, NULL);
    connections->timer = -1;
    // The kernel gives a page of this when a connection first has its place there.
    connections->place_count = listener->group.count_max + GREETING_MAX;
    connections->places = calloc(connections->place_count, sizeof(SpConnection));
    Error error = connections->places ? ERROR_NONE : ERROR_OUT_OF_MEMORY;
    if (!error) error = timer_open("wait for hellos", detail, &connections->timer);
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
    if (connections->timer >= 0) close(connections->timer);
    pthread_mutex_destroy(&connections->shared.mutex);
    free(connections);
}

// Returns a place that no connection has, and a number for its new one. NULL: all are taken.
static SpConnection *place_take(SpConnections *connections, uint64_t *out_number)
{
    SpShared *shared = &connections->shared;
    pthread_mutex_lock(&shared->mutex);
    SpConnection *place = shared->free;
    if (place) {
        shared->free = place->next_free;
    } else if (connections->begun_count < connections->place_count) {
        place = &connections->places[connections->begun_count++];
        place->shared = shared;
        pthread_mutex_init(&place->mutex, NULL);
    }
    if (place) {
        connections->last_serial += connections->last_serial == UINT32_MAX ? 2 : 1;
        uint32_t index = (uint32_t)(place - connections->places);
        *out_number = (uint64_t)connections->last_serial << 32 | index;
    }
    pthread_mutex_unlock(&shared->mutex);
    return place;
}

// Starts the timer unless it runs.
static void keep_greeting(SpConnections *connections)
{
    if (atomic_load(&connections->is_greeting)) return;
    if (!atomic_exchange(&connections->is_greeting, true)) {
        timer_start(connections->timer, HELLO_WAIT_MS);
    }
}

void sp_connections_add(SpConnections *connections, int file, bool is_welcome)
{
    uint64_t number;
    SpConnection *connection = place_take(connections, &number);
    if (connection) {
        sp_connection_begin(connection, number, file, is_welcome);
        keep_greeting(connections);
    } else {
        close(file);
    }
}

SpConnection *sp_connections_at(SpConnections *connections, uint64_t number)
{
    return &connections->places[(uint32_t)number];
}

int sp_connections_timer(const SpConnections *connections)
{
    return connections->timer;
}

static uint32_t places_begun(SpConnections *connections)
{
    pthread_mutex_lock(&connections->shared.mutex);
    uint32_t count = connections->begun_count;
    pthread_mutex_unlock(&connections->shared.mutex);
    return count;
}

void sp_connections_end_silent(SpConnections *connections)
{
    if (!timer_has_ended(connections->timer)) return;
    atomic_store(&connections->is_greeting, false);
    int64_t before_ns = clock_monotonic_ns() - (int64_t)HELLO_WAIT_MS * 1000000;
    bool has_silent = false;
    uint32_t count = places_begun(connections);
    for (uint32_t i = 0; i < count; i++) {
        if (sp_connection_end_silent(&connections->places[i], before_ns)) has_silent = true;
    }
    if (has_silent) keep_greeting(connections);
}

void sp_connections_settle(SpConnections *connections)
{
    uint32_t count = places_begun(connections);
    for (uint32_t i = 0; i < count; i++)
        sp_connection_settle(&connections->places[i]);
}

void sp_connections_end(SpConnections *connections)
{
    uint32_t count = places_begun(connections);
    for (uint32_t i = 0; i < count; i++)
        sp_connection_end(&connections->places[i]);
}
