// The SP channel. All callers share one connection. Each call in flight holds a ticket of it, and
// the request's id names the ticket.
//
// There is no reader thread. One of the callers that wait for a reply receives for all and hands
// replies to their callers. When its own reply is there, it wakes another caller, which goes on. So
// a lone caller needs no other thread. Senders take turns. Everything but the system calls happens
// under the link's mutex.

#include "channel_sp.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "feed_sp.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/socket_path.h"
#include "sp_link.h"
#include "status.h"
#include "wait.h"

enum {
    POLL_MS_MAX = 60 * 1000,
    WRITE_POLL_MS_MAX = 50, // a sender that waits checks this often whether it should receive
};

typedef struct SpChannel {
    Channel channel;
    _Atomic(SpLink *) link;
    char path[SOCKET_PATH_BYTES_MAX + 1];
} SpChannel;

static int sp_call(Channel *channel, ChannelCall *call, TineStatus *status);
static int round_trip(SpLink *link, ChannelCall *call, TineStatus *status);
static int take_ticket(SpLink *link, const ChannelCall *call, TineStatus *status,
                       SpConnection **out_connection, SpTicket **out_ticket);
static bool request_send(SpLink *link, SpConnection *connection, SpFrame *frame,
                         int64_t deadline_ns);
static void writable_wait(SpLink *link, SpConnection *connection, int64_t deadline_ns);
static void reply_wait(SpLink *link, SpConnection *connection, SpTicket *ticket,
                       int64_t deadline_ns);
static void receive(SpLink *link, SpConnection *connection, int64_t deadline_ns);
static void deliver(SpLink *link, SpConnection *connection);
static void receiver_leave(SpConnection *connection);
static SpLink *link_of_process(SpChannel *sp);
static Feed *sp_feed_open(Channel *channel);
static unsigned sp_connection_serial(Channel *channel, bool looks);
static int64_t sp_peer_user(Channel *channel);
static void sp_close(Channel *channel);

int channel_sp_open(const char *path, TineStatus *status, Channel **out_channel)
{
    SpChannel *sp = calloc(1, sizeof(SpChannel));
    if (!sp) return status_out_of_memory(status);
    assert(strlen(path) <= SOCKET_PATH_BYTES_MAX);
    memcpy(sp->path, path, strlen(path));
    SpLink *link = sp_link_make(sp->path, NULL);
    if (!link) {
        free(sp);
        return status_out_of_memory(status);
    }
    atomic_init(&sp->link, link);
    sp->channel = (Channel){.call = sp_call,
                            .close = sp_close,
                            .connection_serial = sp_connection_serial,
                            .peer_user = sp_peer_user,
                            .is_remote = true,
                            .feed_open = sp_feed_open};
    *out_channel = &sp->channel;
    return STATUS_OK;
}

static int sp_call(Channel *channel, ChannelCall *call, TineStatus *status)
{
    SpChannel *sp = (SpChannel *)channel;
    SpLink *link = link_of_process(sp);
    if (!link) return status_out_of_memory(status);
    pthread_mutex_lock(&link->mutex);
    int code = round_trip(link, call, status);
    // A connection that was closed meanwhile fails at the first byte: then nothing was sent.
    if (call->is_broken && !call->was_sent) code = round_trip(link, call, status);
    pthread_mutex_unlock(&link->mutex);
    return code;
}

static int round_trip(SpLink *link, ChannelCall *call, TineStatus *status)
{
    call->is_broken = false;
    call->was_sent = false;
    SpConnection *connection = NULL;
    SpTicket *ticket = NULL;
    int code = take_ticket(link, call, status, &connection, &ticket);
    if (code) return code;

    ticket->reply = *call->response; // its memory is used again
    *call->response = (Buffer){.bytes = NULL};
    SpFrame frame;
    sp_frame_begin(&frame, ticket->id, call->request);
    call->was_sent = request_send(link, connection, &frame, call->deadline_ns);
    if (call->was_sent) reply_wait(link, connection, ticket, call->deadline_ns);

    if (ticket->state == TICKET_ANSWERED) {
        *call->response = ticket->reply;
        ticket->reply = (Buffer){.bytes = NULL};
        sp_ticket_release(link, connection, ticket);
    } else if (connection->is_broken) {
        call->is_broken = true;
        sp_ticket_release(link, connection, ticket);
        code = status_unavailable(status, "the connection to %s broke before the reply came: %s%s",
                                  link->path, connection->why,
                                  call->was_sent ? "; whether the call was done is not known" : "");
    } else {
        code = status_deadline_exceeded(status, call->was_sent);
        if (call->was_sent) { // the reply may still come: the call stays in flight until then
            ticket->state = TICKET_ABANDONED;
            connection->abandoned_count++;
            pthread_cond_signal(&link->ticket_freed);
        } else {
            if (frame.sent > 0) sp_connection_break(link, connection, "it stopped reading");
            sp_ticket_release(link, connection, ticket);
        }
    }
    sp_connection_release(connection);
    return code;
}

// Takes a free ticket of the current connection, and a reference to that.
static int take_ticket(SpLink *link, const ChannelCall *call, TineStatus *status,
                       SpConnection **out_connection, SpTicket **out_ticket)
{
    for (;;) {
        int code = sp_link_connect(link, call, status);
        if (code) return code;
        SpConnection *connection = link->connection;
        *out_ticket = sp_ticket_take(connection);
        if (*out_ticket) {
            connection->references++;
            *out_connection = connection;
            return STATUS_OK;
        }
        if (connection->abandoned_count == CHANNEL_IN_FLIGHT_MAX) {
            sp_connection_break(link, connection, "it answered none of its calls in time");
        } else if (!sp_link_wait(link, &link->ticket_freed, call->deadline_ns)) {
            return status_deadline_exceeded(status, /* was_sent= */ false);
        }
    }
}

// Sends the frame when it is its turn. Returns false if the connection broke or the time is up.
static bool request_send(SpLink *link, SpConnection *connection, SpFrame *frame,
                         int64_t deadline_ns)
{
    while (connection->has_sender && !connection->is_broken) {
        if (!sp_link_wait(link, &link->sender_left, deadline_ns)) return false;
    }
    if (connection->is_broken) return false;

    connection->has_sender = true;
    pthread_mutex_unlock(&link->mutex);
    SpResult result = sp_frame_send(frame, connection->fd);
    while (result == SP_AGAIN && !time_is_past(deadline_ns)) {
        writable_wait(link, connection, deadline_ns);
        result = sp_frame_send(frame, connection->fd);
    }
    int error = errno;
    pthread_mutex_lock(&link->mutex);
    connection->has_sender = false;
    pthread_cond_signal(&link->sender_left);
    if (result == SP_BROKEN) sp_connection_break(link, connection, strerror(error));
    return result == SP_DONE;
}

// A server may stop reading until its replies are read. So a sender that must wait also receives,
// unless another caller does.
static void writable_wait(SpLink *link, SpConnection *connection, int64_t deadline_ns)
{
    pthread_mutex_lock(&link->mutex);
    bool is_receiver = !connection->has_receiver;
    connection->has_receiver = true;
    pthread_mutex_unlock(&link->mutex);

    struct pollfd wanted = {.fd = connection->fd, .events = POLLOUT};
    if (is_receiver) wanted.events |= POLLIN;
    int ms_max = is_receiver ? POLL_MS_MAX : WRITE_POLL_MS_MAX;
    int ready = poll(&wanted, 1, poll_ms_until(deadline_ns, ms_max));
    if (!is_receiver) return;

    pthread_mutex_lock(&link->mutex);
    if (ready > 0 && wanted.revents & POLLIN) receive(link, connection, 0);
    receiver_leave(connection);
    pthread_mutex_unlock(&link->mutex);
}

// Waits until the ticket is answered, the connection breaks, or the time is up.
static void reply_wait(SpLink *link, SpConnection *connection, SpTicket *ticket,
                       int64_t deadline_ns)
{
    bool is_receiver = false;
    while (ticket->state == TICKET_WAITING && !connection->is_broken &&
           !time_is_past(deadline_ns)) {
        if (is_receiver || !connection->has_receiver) {
            is_receiver = true;
            connection->has_receiver = true;
            receive(link, connection, deadline_ns);
        } else {
            ticket->is_parked = true;
            connection->parked_count++;
            (void)sp_link_wait(link, &ticket->wakes, deadline_ns);
            connection->parked_count--;
            ticket->is_parked = false;
        }
    }
    // This caller may have been woken to receive when its own reply or its deadline came first.
    if (is_receiver || !connection->has_receiver) receiver_leave(connection);
}

// Receives what comes within the spin. Returns -1 with EAGAIN if nothing came.
static ssize_t receive_awake(SpConnection *connection, uint8_t *bytes, size_t room)
{
    bool is_in_body = connection->reader.is_in_body;
    Spin *spin = is_in_body ? &connection->body_spin : &connection->spin;
    ssize_t count;
    spin_begin(spin, clock_monotonic_ns());
    do {
        count = recv(connection->fd, bytes, room, MSG_DONTWAIT);
    } while (count < 0 && errno == EAGAIN && spin_goes_on(spin, clock_monotonic_ns()));
    if (count > 0) spin_met(spin);
    return count;
}

static ssize_t receive_asleep(SpConnection *connection, uint8_t *bytes, size_t room,
                              int64_t deadline_ns)
{
    if (deadline_ns == INT64_MAX) return recv(connection->fd, bytes, room, 0);
    struct pollfd wanted = {.fd = connection->fd, .events = POLLIN};
    errno = EAGAIN;
    if (poll(&wanted, 1, poll_ms_until(deadline_ns, POLL_MS_MAX)) <= 0) return -1;
    return recv(connection->fd, bytes, room, MSG_DONTWAIT);
}

// Receives once for all callers. Only the receiver calls this. The mutex is not held while it
// waits.
static void receive(SpLink *link, SpConnection *connection, int64_t deadline_ns)
{
    pthread_mutex_unlock(&link->mutex);
    size_t room;
    uint8_t *bytes = sp_reader_room(&connection->reader, &room);
    ssize_t count = receive_awake(connection, bytes, room);
    if (count < 0 && errno == EAGAIN) {
        count = receive_asleep(connection, bytes, room, deadline_ns);
    }
    int error = errno;
    pthread_mutex_lock(&link->mutex);
    if (count > 0) {
        sp_reader_took(&connection->reader, (size_t)count);
        deliver(link, connection);
    } else if (count == 0) {
        sp_connection_break(link, connection, "it hung up");
    } else if (error != EAGAIN && error != EINTR) {
        sp_connection_break(link, connection, strerror(error));
    }
}

// Hands complete replies to their tickets. Drops a reply that nobody waits for.
static void deliver(SpLink *link, SpConnection *connection)
{
    uint32_t id;
    Buffer body;
    const char *why;
    SpResult result;
    while ((result = sp_reader_next(&connection->reader, &id, &body, &why)) == SP_DONE) {
        connection->has_replied = true;
        link->failures = 0;
        SpTicket *ticket = &connection->tickets[id % CHANNEL_IN_FLIGHT_MAX];
        bool is_known = ticket->id == id;
        if (is_known && ticket->state == TICKET_WAITING) {
            connection->reader.body = ticket->reply; // memory for the next reply
            ticket->reply = body;
            ticket->state = TICKET_ANSWERED;
            if (ticket->is_parked) pthread_cond_signal(&ticket->wakes);
            continue;
        }
        buffer_free(&body);
        if (is_known && ticket->state == TICKET_ABANDONED) {
            connection->abandoned_count--;
            sp_ticket_release(link, connection, ticket);
        }
    }
    if (result == SP_BROKEN) sp_connection_break(link, connection, why);
}

// Wakes a caller that waits, so that it goes on receiving.
static void receiver_leave(SpConnection *connection)
{
    connection->has_receiver = false;
    if (connection->parked_count == 0) return;
    for (size_t i = 0; i < CHANNEL_IN_FLIGHT_MAX; i++) {
        SpTicket *ticket = &connection->tickets[i];
        if (!ticket->is_parked || ticket->state != TICKET_WAITING) continue;
        pthread_cond_signal(&ticket->wakes);
        return;
    }
}

static SpLink *link_of_process(SpChannel *sp)
{
    SpLink *link = atomic_load(&sp->link);
    if (link->generation == process_generation()) return link;

    SpLink *own = sp_link_make(sp->path, link);
    if (!own) return NULL;
    if (!atomic_compare_exchange_strong(&sp->link, &link, own)) { // another thread was first
        own->of_parent = NULL;
        sp_link_free(own);
        return link;
    }
    sp_link_leave_to_parent(link);
    return own;
}

static Feed *sp_feed_open(Channel *channel)
{
    return feed_sp_open(((SpChannel *)channel)->path);
}

static unsigned sp_connection_serial(Channel *channel, bool looks)
{
    SpLink *link = link_of_process((SpChannel *)channel);
    if (!link) return 0;
    if (looks) {
        pthread_mutex_lock(&link->mutex);
        sp_link_look(link);
        pthread_mutex_unlock(&link->mutex);
    }
    return atomic_load_explicit(&link->serial, memory_order_relaxed);
}

static int64_t sp_peer_user(Channel *channel)
{
    SpLink *link = link_of_process((SpChannel *)channel);
    if (!link) return -1;
    struct ucred peer = {.pid = 0};
    socklen_t size = sizeof(peer);
    pthread_mutex_lock(&link->mutex);
    bool is_known = link->connection &&
                    getsockopt(link->connection->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
    pthread_mutex_unlock(&link->mutex);
    return is_known ? (int64_t)peer.uid : -1;
}

static void sp_close(Channel *channel)
{
    SpChannel *sp = (SpChannel *)channel;
    sp_link_free(atomic_load(&sp->link));
    free(sp);
}
