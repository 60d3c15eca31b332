// The SP channel. All callers share one connection; its slots hold the calls in flight, and a
// request's id names its slot.
//
// No thread of its own reads. Of the callers that wait for a reply one receives for all, and
// hands what comes to its owners; when its own reply is there it leaves, and wakes another to go
// on. So a lone caller sends and receives and meets no other thread. Senders take turns.
// Everything but the system calls happens under the link's mutex.

#include "channel_sp.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "feed_sp.h"
#include "os/clock.h"
#include "os/process.h"
#include "sp_link.h"
#include "status.h"
#include "wait.h"

enum {
    POLL_MS_MAX = 60 * 1000,
    WRITE_POLL_MS_MAX = 50, // a sender that waits looks this often whether it should receive
};

typedef struct SpChannel {
    Channel channel;
    _Atomic(Link *) link;
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
} SpChannel;

static int sp_call(Channel *channel, ChannelCall *call, TineStatus *status);
static int round_trip(Link *link, ChannelCall *call, TineStatus *status);
static int place_take(Link *link, const ChannelCall *call, TineStatus *status,
                      Connection **out_connection, Slot **out_slot);
static bool request_send(Link *link, Connection *connection, SpFrame *frame, int64_t deadline_ns);
static void writable_wait(Link *link, Connection *connection, int64_t deadline_ns);
static void reply_wait(Link *link, Connection *connection, Slot *slot, int64_t deadline_ns);
static void receive(Link *link, Connection *connection, int64_t deadline_ns);
static void deliver(Link *link, Connection *connection);
static void receiver_leave(Connection *connection);
static Link *link_of_process(SpChannel *sp);
static Feed *sp_feed_open(Channel *channel);
static unsigned sp_connection(Channel *channel, bool looks);
static int64_t sp_peer_user(Channel *channel);
static void sp_close(Channel *channel);

int channel_sp_open(const char *path, TineStatus *status, Channel **out_channel)
{
    SpChannel *sp = calloc(1, sizeof(SpChannel));
    if (!sp) return status_out_of_memory(status);
    if (!*path || strlen(path) >= sizeof(sp->path)) {
        free(sp);
        return status_set(status, STATUS_INVALID_ARGUMENT, "INVALID_ARGUMENT",
                          "the path of a socket has 1 to 107 bytes: ipc://PATH");
    }
    memcpy(sp->path, path, strlen(path));
    Link *link = link_make(sp->path, NULL);
    if (!link) {
        free(sp);
        return status_out_of_memory(status);
    }
    atomic_init(&sp->link, link);
    sp->channel = (Channel){.call = sp_call,
                            .close = sp_close,
                            .connection = sp_connection,
                            .peer_user = sp_peer_user,
                            .is_remote = true,
                            .feed_open = sp_feed_open};
    *out_channel = &sp->channel;
    return STATUS_OK;
}

static int sp_call(Channel *channel, ChannelCall *call, TineStatus *status)
{
    SpChannel *sp = (SpChannel *)channel;
    Link *link = link_of_process(sp);
    if (!link) return status_out_of_memory(status);
    pthread_mutex_lock(&link->mutex);
    int code = round_trip(link, call, status);
    // A connection that had gone stale shows it at the first byte: then nothing was sent.
    if (call->is_broken && !call->was_sent) code = round_trip(link, call, status);
    pthread_mutex_unlock(&link->mutex);
    return code;
}

static int round_trip(Link *link, ChannelCall *call, TineStatus *status)
{
    call->is_broken = false;
    call->was_sent = false;
    Connection *connection = NULL;
    Slot *slot = NULL;
    int code = place_take(link, call, status, &connection, &slot);
    if (code) return code;

    slot->reply = *call->response; // its memory is used again
    *call->response = (Buffer){.bytes = NULL};
    SpFrame frame;
    sp_frame_begin(&frame, slot->id, call->request);
    call->was_sent = request_send(link, connection, &frame, call->deadline_ns);
    if (call->was_sent) reply_wait(link, connection, slot, call->deadline_ns);

    if (slot->state == SLOT_ANSWERED) {
        *call->response = slot->reply;
        slot->reply = (Buffer){.bytes = NULL};
        slot_release(link, connection, slot);
    } else if (connection->is_broken) {
        call->is_broken = true;
        slot_release(link, connection, slot);
        code = status_unavailable(status, "the connection to %s broke before the reply came: %s%s",
                                  link->path, connection->why,
                                  call->was_sent ? "; whether the call was done is not known" : "");
    } else {
        code = status_deadline_exceeded(status, call->was_sent);
        if (call->was_sent) { // its reply may still come, and counts as in flight until then
            slot->state = SLOT_ABANDONED;
            connection->abandoned_count++;
            pthread_cond_signal(&link->slot_freed);
        } else {
            if (frame.sent > 0) connection_break(link, connection, "it stopped reading");
            slot_release(link, connection, slot);
        }
    }
    connection_release(connection);
    return code;
}

// A free slot of the current connection, which is held by a reference.
static int place_take(Link *link, const ChannelCall *call, TineStatus *status,
                      Connection **out_connection, Slot **out_slot)
{
    for (;;) {
        int code = link_connect(link, call, status);
        if (code) return code;
        Connection *connection = link->connection;
        *out_slot = slot_take(connection);
        if (*out_slot) {
            connection->references++;
            *out_connection = connection;
            return STATUS_OK;
        }
        if (connection->abandoned_count == CHANNEL_IN_FLIGHT_MAX) {
            connection_break(link, connection, "it answered none of its calls in time");
        } else if (!link_wait(link, &link->slot_freed, call->deadline_ns)) {
            return status_deadline_exceeded(status, /* was_sent= */ false);
        }
    }
}

// Sends the frame when its turn has come. False: the connection is broken, or the time is up.
static bool request_send(Link *link, Connection *connection, SpFrame *frame, int64_t deadline_ns)
{
    while (connection->has_sender && !connection->is_broken) {
        if (!link_wait(link, &link->sender_left, deadline_ns)) return false;
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
    if (result == SP_BROKEN) connection_break(link, connection, strerror(error));
    return result == SP_DONE;
}

// A server may stop reading until somebody takes its replies. So a sender that must wait
// receives, unless another does.
static void writable_wait(Link *link, Connection *connection, int64_t deadline_ns)
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

// Until the slot is answered, the connection is broken, or the time is up.
static void reply_wait(Link *link, Connection *connection, Slot *slot, int64_t deadline_ns)
{
    bool is_receiver = false;
    while (slot->state == SLOT_WAITING && !connection->is_broken && !time_is_past(deadline_ns)) {
        if (is_receiver || !connection->has_receiver) {
            is_receiver = true;
            connection->has_receiver = true;
            receive(link, connection, deadline_ns);
        } else {
            slot->is_parked = true;
            connection->parked_count++;
            (void)link_wait(link, &slot->wakes, deadline_ns);
            connection->parked_count--;
            slot->is_parked = false;
        }
    }
    // Also when somebody woke this caller to receive, but its own reply or its deadline came first.
    if (is_receiver || !connection->has_receiver) receiver_leave(connection);
}

// What comes at once. -1 and EAGAIN: nothing has.
static ssize_t receive_awake(Connection *connection, uint8_t *bytes, size_t room)
{
    Spin *spin = &connection->spin;
    ssize_t count;
    spin_begin(spin, clock_monotonic_ns());
    do {
        count = recv(connection->fd, bytes, room, MSG_DONTWAIT);
    } while (count < 0 && errno == EAGAIN && spin_goes_on(spin, clock_monotonic_ns()));
    if (count > 0) spin_met(spin);
    return count;
}

static ssize_t receive_asleep(Connection *connection, uint8_t *bytes, size_t room,
                              int64_t deadline_ns)
{
    if (deadline_ns == INT64_MAX) return recv(connection->fd, bytes, room, 0);
    struct pollfd wanted = {.fd = connection->fd, .events = POLLIN};
    errno = EAGAIN;
    if (poll(&wanted, 1, poll_ms_until(deadline_ns, POLL_MS_MAX)) <= 0) return -1;
    return recv(connection->fd, bytes, room, MSG_DONTWAIT);
}

// Receives once, for all. Only the receiver calls this; the mutex is free while it waits.
static void receive(Link *link, Connection *connection, int64_t deadline_ns)
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
        connection_break(link, connection, "it hung up");
    } else if (error != EAGAIN && error != EINTR) {
        connection_break(link, connection, strerror(error));
    }
}

// Hands complete replies to their slots. One that nobody waits for is dropped.
static void deliver(Link *link, Connection *connection)
{
    uint32_t id;
    Buffer body;
    const char *why;
    SpResult result;
    while ((result = sp_reader_next(&connection->reader, &id, &body, &why)) == SP_DONE) {
        connection->has_replied = true;
        link->failures = 0;
        Slot *slot = &connection->slots[id % CHANNEL_IN_FLIGHT_MAX];
        bool is_known = slot->id == id;
        if (is_known && slot->state == SLOT_WAITING) {
            connection->reader.body = slot->reply; // memory for the next one
            slot->reply = body;
            slot->state = SLOT_ANSWERED;
            if (slot->is_parked) pthread_cond_signal(&slot->wakes);
            continue;
        }
        buffer_free(&body);
        if (is_known && slot->state == SLOT_ABANDONED) {
            connection->abandoned_count--;
            slot_release(link, connection, slot);
        }
    }
    if (result == SP_BROKEN) connection_break(link, connection, why);
}

// Somebody who waits must go on receiving.
static void receiver_leave(Connection *connection)
{
    connection->has_receiver = false;
    if (connection->parked_count == 0) return;
    for (size_t i = 0; i < CHANNEL_IN_FLIGHT_MAX; i++) {
        Slot *slot = &connection->slots[i];
        if (!slot->is_parked || slot->state != SLOT_WAITING) continue;
        pthread_cond_signal(&slot->wakes);
        return;
    }
}

static Link *link_of_process(SpChannel *sp)
{
    Link *link = atomic_load(&sp->link);
    if (link->generation == process_generation()) return link;

    Link *own = link_make(sp->path, link);
    if (!own) return NULL;
    if (!atomic_compare_exchange_strong(&sp->link, &link, own)) { // another thread of the child
        own->of_parent = NULL;
        link_free(own);
        return link;
    }
    link_leave_to_parent(link);
    return own;
}

static Feed *sp_feed_open(Channel *channel)
{
    return feed_sp_open(((SpChannel *)channel)->path);
}

static unsigned sp_connection(Channel *channel, bool looks)
{
    Link *link = link_of_process((SpChannel *)channel);
    if (!link) return 0;
    if (looks) {
        pthread_mutex_lock(&link->mutex);
        link_look(link);
        pthread_mutex_unlock(&link->mutex);
    }
    return atomic_load_explicit(&link->serial, memory_order_relaxed);
}

static int64_t sp_peer_user(Channel *channel)
{
    Link *link = link_of_process((SpChannel *)channel);
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
    link_free(atomic_load(&sp->link));
    free(sp);
}
