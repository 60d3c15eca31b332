// Links and connections. A connection lives as long as a caller uses it. The first caller that sees
// it fail shuts the socket down, which ends what all other callers do with it; the last one closes
// it.

#include "sp_link.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "os/clock.h"
#include "os/condition.h"
#include "os/process.h"
#include "os/random.h"
#include "status.h"
#include "wait.h"

enum {
    CONNECT_MS_MAX = 5000,
    ID_COUNTER_MASK = 0x1ffffff, // 25 bits; six name the ticket, one marks the id
};

static void connect_once(SpLink *link, int64_t deadline_ns);

SpLink *sp_link_make(const char *path, SpLink *of_parent)
{
    SpLink *link = calloc(1, sizeof(SpLink));
    if (!link) return NULL;
    link->path = path;
    link->generation = process_generation();
    link->of_parent = of_parent;
    link->was_connected = of_parent && of_parent->was_connected;
    pthread_mutex_init(&link->mutex, NULL);
    condition_init(&link->changed);
    condition_init(&link->ticket_freed);
    condition_init(&link->sender_left);
    return link;
}

static void free_one(SpLink *link)
{
    if (link->generation == process_generation()) {
        if (link->connection) sp_connection_release(link->connection);
        pthread_mutex_destroy(&link->mutex);
        pthread_cond_destroy(&link->changed);
        pthread_cond_destroy(&link->ticket_freed);
        pthread_cond_destroy(&link->sender_left);
    } else {
        sp_link_leave_to_parent(link);
        // If a thread was receiving during the fork, the reader may be in the middle of a change.
        if (link->connection && !link->connection->has_receiver) {
            sp_reader_free(&link->connection->reader);
        }
        free(link->connection);
    }
    free(link);
}

void sp_link_free(SpLink *link)
{
    while (link) {
        SpLink *of_parent = link->of_parent;
        free_one(link);
        link = of_parent;
    }
}

void sp_link_leave_to_parent(SpLink *link)
{
    if (!link->connection || link->connection->fd < 0) return;
    close(link->connection->fd);
    link->connection->fd = -1;
}

bool sp_link_wait(SpLink *link, pthread_cond_t *condition, int64_t until_ns)
{
    if (condition_wait(condition, &link->mutex, until_ns)) return true;
    pthread_cond_signal(condition); // passes on a signal that this caller may have taken
    return false;
}

int sp_link_connect(SpLink *link, const ChannelCall *call, TineStatus *status)
{
    unsigned attempts_before = link->attempts;
    while (!link->connection) {
        int64_t now_ns = clock_monotonic_ns();
        bool is_late = now_ns >= call->deadline_ns;
        bool has_failed = link->attempts != attempts_before;
        bool is_patient = !is_late && now_ns < call->connect_until_ns &&
                          (link->was_connected || call->waits_at_first);
        bool is_too_early = !link->is_connecting && now_ns < link->connect_after_ns;
        if (is_late && !has_failed) {
            return status_deadline_exceeded(status, /* was_sent= */ false);
        }
        if (!is_patient && (is_too_early || has_failed)) {
            return status_unavailable(status, "no tined answers at %s: %s", link->path, link->why);
        }
        int64_t until_ns = call->deadline_ns;
        if (is_patient && call->connect_until_ns < until_ns) until_ns = call->connect_until_ns;
        if (link->is_connecting) {
            (void)sp_link_wait(link, &link->changed, until_ns);
        } else if (is_too_early) {
            if (link->connect_after_ns < until_ns) until_ns = link->connect_after_ns;
            (void)sp_link_wait(link, &link->changed, until_ns);
        } else {
            connect_once(link, call->deadline_ns);
        }
    }
    return STATUS_OK;
}

static void link_failed(SpLink *link, const char *why, bool is_absent)
{
    snprintf(link->why, sizeof(link->why), "%s", why);
    link->absences = is_absent ? link->absences + 1 : 0;
    if (!is_absent) link->failures++;
    int64_t wait_ns = is_absent ? backoff_ns(BACKOFF_ABSENT_MS_MIN, link->absences)
                                : backoff_ns(BACKOFF_MS_MIN, link->failures);
    link->connect_after_ns = clock_monotonic_ns() + wait_ns;
}

static SpConnection *connection_make(int fd)
{
    SpConnection *connection = calloc(1, sizeof(SpConnection));
    if (!connection) return NULL;
    Random random;
    random_seed_system(&random);
    connection->fd = fd;
    connection->references = 1;
    connection->id_counter = (uint32_t)random_next(&random);
    for (unsigned i = 0; i < CHANNEL_IN_FLIGHT_MAX; i++) {
        connection->free_tickets[i] = (uint8_t)(CHANNEL_IN_FLIGHT_MAX - 1 - i);
        condition_init(&connection->tickets[i].wakes);
    }
    connection->free_count = CHANNEL_IN_FLIGHT_MAX;
    return connection;
}

// Makes one attempt without the mutex. Other callers wait for its end.
static void connect_once(SpLink *link, int64_t deadline_ns)
{
    link->is_connecting = true;
    pthread_mutex_unlock(&link->mutex);
    int64_t until_ns = clock_monotonic_ns() + (int64_t)CONNECT_MS_MAX * 1000000;
    char why[SP_WHY_BYTES] = "there is no memory for a connection";
    int fd = sp_dial(link->path, until_ns < deadline_ns ? until_ns : deadline_ns, why);
    SpConnection *connection = fd >= 0 ? connection_make(fd) : NULL;
    if (fd >= 0 && !connection) close(fd);

    pthread_mutex_lock(&link->mutex);
    link->is_connecting = false;
    link->connection = connection;
    if (connection) atomic_fetch_add(&link->serial, 1);
    link->was_connected |= connection != NULL;
    // If the caller's own deadline ended the attempt, other callers learn nothing and try again.
    bool is_cut_short = !connection && time_is_past(deadline_ns);
    if (!is_cut_short) link->attempts++;
    bool is_absent = fd == -ENOENT || fd == -ECONNREFUSED;
    if (connection) link->absences = 0;
    if (!connection && !is_cut_short) link_failed(link, why, is_absent);
    pthread_cond_broadcast(&link->changed);
}

void sp_connection_break(SpLink *link, SpConnection *connection, const char *why)
{
    if (connection->is_broken) return;
    connection->is_broken = true;
    snprintf(connection->why, sizeof(connection->why), "%s", why);
    shutdown(connection->fd, SHUT_RDWR); // ends all sends and receives
    for (size_t i = 0; i < CHANNEL_IN_FLIGHT_MAX; i++) {
        if (connection->tickets[i].is_parked) pthread_cond_signal(&connection->tickets[i].wakes);
    }
    pthread_cond_broadcast(&link->sender_left);
    pthread_cond_broadcast(&link->ticket_freed);
    pthread_cond_broadcast(&link->changed);
    if (link->connection != connection) return;

    // A connection without any reply counts as a failed attempt, so that a server which accepts and
    // hangs up is not connected to in a loop.
    if (!connection->has_replied) link_failed(link, why, /* is_absent= */ false);
    link->connection = NULL;
    atomic_fetch_add(&link->serial, 1);
    sp_connection_release(connection);
}

void sp_link_look(SpLink *link)
{
    SpConnection *connection = link->connection;
    if (!connection || connection->has_receiver) return; // the receiver sees it
    struct pollfd wanted = {.fd = connection->fd, .events = POLLRDHUP};
    if (poll(&wanted, 1, 0) > 0) sp_connection_break(link, connection, "it hung up");
}

void sp_connection_release(SpConnection *connection)
{
    assert(connection->references > 0);
    if (--connection->references > 0) return;
    close(connection->fd);
    for (size_t i = 0; i < CHANNEL_IN_FLIGHT_MAX; i++) {
        buffer_free(&connection->tickets[i].reply);
        pthread_cond_destroy(&connection->tickets[i].wakes);
    }
    sp_reader_free(&connection->reader);
    free(connection);
}

SpTicket *sp_ticket_take(SpConnection *connection)
{
    if (connection->free_count == 0) return NULL;
    uint32_t index = connection->free_tickets[--connection->free_count];
    SpTicket *ticket = &connection->tickets[index];
    ticket->id =
        SP_ID_LAST | index | (connection->id_counter++ & ID_COUNTER_MASK) * CHANNEL_IN_FLIGHT_MAX;
    ticket->state = TICKET_WAITING;
    return ticket;
}

void sp_ticket_release(SpLink *link, SpConnection *connection, SpTicket *ticket)
{
    buffer_free(&ticket->reply);
    ticket->state = TICKET_FREE;
    ticket->id = 0;
    connection->free_tickets[connection->free_count++] = (uint8_t)(ticket - connection->tickets);
    pthread_cond_signal(&link->ticket_freed);
}
