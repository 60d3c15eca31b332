// One connection. epoll reports changes only (EPOLLET). A receive that returns less than it has
// room for has emptied the socket, so a lone request costs three system calls: wait, receive, send.

#include "transport/sp_connection.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/limits.h"
#include "os/clock.h"

enum {
    FRAME_BYTES_MAX = REQUEST_BYTES_MAX + FRAME_EXTRA_BYTES,
    RECEIVES_MAX = 4, // before other connections have their turn
    PARTS_MAX = 3,    // of a reply's frame: header, route, Response
};

static void list_add(SpRequestList *list, PeerRequest *request)
{
    request->next = NULL;
    *list->end = request;
    list->end = &request->next;
}

static bool watch(const SpConnection *connection, int operation)
{
    struct epoll_event event = {.events = EPOLLET, .data.u64 = connection->number};
    if (!connection->is_kept) event.events |= EPOLLIN | EPOLLRDHUP;
    if (connection->wants_room) event.events |= EPOLLOUT;
    return epoll_ctl(connection->shared->poller, operation, connection->file, &event) == 0;
}

// A page that the kernel takes as a whole is sent in one call. Otherwise the rest waits until epoll
// reports room, which it does when most of it has been read: two more sleeping processors must
// wake. A peer that does not read pins kernel memory by a large buffer, so only some connections
// get one. The kernel may refuse it; the connection works without.
static void enlarge_send_buffer(const SpConnection *connection)
{
    int bytes = SEND_BUFFER_BYTES;
    if (connection->place >= SEND_BUFFERS_MAX) return;
    (void)setsockopt(connection->file, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

bool sp_connection_begin(SpConnection *connection)
{
    connection->is_greeted = connection->wants_room = connection->is_kept = false;
    connection->spin = (Spin){.until_ns = 0};
    connection->running = 0;
    connection->begun_ns = clock_monotonic_ns();
    connection->header_bytes = connection->incoming_bytes = connection->sent_bytes = 0;
    connection->incoming = NULL;
    connection->unsent = NULL;
    connection->unsent_end = &connection->unsent;
    enlarge_send_buffer(connection);
    uint8_t hello[SP_HELLO_BYTES];
    sp_hello_write(SP_PROTOCOL_REP, hello);
    // The socket is new, so it has room for a hello.
    return send(connection->file, hello, sizeof(hello), MSG_NOSIGNAL) == sizeof(hello) &&
           watch(connection, EPOLL_CTL_ADD);
}

void sp_connection_end(SpConnection *connection, SpFollowUp *follow_up)
{
    if (connection->is_greeted) {
        requests_disconnect(connection->shared->listener, connection->serial);
    }
    // Out of epoll first: a thread that looks at the socket within epoll_wait holds it, and may
    // sleep there before it lets go. Then close() alone would not end the connection.
    (void)epoll_ctl(connection->shared->poller, EPOLL_CTL_DEL, connection->file, NULL);
    close(connection->file);
    if (connection->incoming) request_abandon(connection->incoming);
    while (connection->unsent) {
        PeerRequest *request = connection->unsent;
        connection->unsent = request->next;
        list_add(&follow_up->dropped, request);
    }
    connection->serial = 0;
    connection->incoming = NULL;
}

// The peer's hello is complete. Returns false if the connection must end.
static bool greet(SpConnection *connection)
{
    connection->is_greeted =
        sp_hello_is(connection->header, SP_PROTOCOL_REQ) && connection->is_welcome &&
        requests_connect(connection->shared->listener, connection->serial, connection);
    connection->header_bytes = 0;
    return connection->is_greeted;
}

// The header of a frame is complete: makes the request that the payload goes to. Returns false if
// the connection must end.
static bool frame_begin(SpConnection *connection)
{
    uint64_t size;
    if (!sp_frame_read(connection->header, &size) || size == 0 || size > FRAME_BYTES_MAX) {
        return false;
    }
    connection->incoming =
        request_take(connection->shared->listener, connection->serial, (size_t)size);
    connection->header_bytes = connection->incoming_bytes = 0;
    return connection->incoming != NULL;
}

// Payload has arrived. Returns false if it is complete and no request: the connection must end.
static bool frame_grow(SpConnection *connection, size_t size, SpFollowUp *follow_up)
{
    PeerRequest *request = connection->incoming;
    connection->incoming_bytes += size;
    if (connection->incoming_bytes < request->frame_bytes) return true;
    request->route_bytes = sp_route_bytes(slice(request->frame, request->frame_bytes));
    if (request->route_bytes == 0) return false;
    connection->incoming = NULL;
    if (request->route_bytes == SIZE_MAX) { // it has passed through too many hops
        request_abandon(request);
        return true;
    }
    list_add(&follow_up->received, request);
    connection->running++;
    return true;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

// Returns false if the bytes are no frames, or none that are accepted: the connection must end.
static bool take_bytes(SpConnection *connection, Slice bytes, SpFollowUp *follow_up)
{
    while (bytes.size > 0) {
        PeerRequest *incoming = connection->incoming;
        size_t size;
        if (incoming) {
            size = smaller(bytes.size, incoming->frame_bytes - connection->incoming_bytes);
            memcpy(incoming->frame + connection->incoming_bytes, bytes.bytes, size);
            if (!frame_grow(connection, size, follow_up)) return false;
        } else {
            size_t wanted = connection->is_greeted ? SP_FRAME_HEADER_BYTES : SP_HELLO_BYTES;
            size = smaller(bytes.size, wanted - connection->header_bytes);
            memcpy(connection->header + connection->header_bytes, bytes.bytes, size);
            connection->header_bytes += size;
            bool is_complete = connection->header_bytes == wanted;
            if (is_complete &&
                !(connection->is_greeted ? frame_begin(connection) : greet(connection))) {
                return false;
            }
        }
        bytes = slice_skip(bytes, size);
    }
    return true;
}

typedef enum ReceiveResult { RECEIVED_ALL, RECEIVED_SOME, RECEIVED_END } ReceiveResult;

// Receives once: a long payload into its request, all else through the inbox.
static ReceiveResult receive_once(SpConnection *connection, uint8_t *inbox, SpFollowUp *follow_up)
{
    PeerRequest *incoming = connection->incoming;
    size_t left = incoming ? incoming->frame_bytes - connection->incoming_bytes : 0;
    bool is_direct = left >= RECEIVE_BYTES;
    uint8_t *room = is_direct ? incoming->frame + connection->incoming_bytes : inbox;
    size_t wanted = is_direct ? left : RECEIVE_BYTES;
    ssize_t size = recv(connection->file, room, wanted, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
        return errno == EAGAIN ? RECEIVED_ALL : RECEIVED_SOME;
    }
    if (size <= 0) return RECEIVED_END;
    bool is_fine = is_direct ? frame_grow(connection, (size_t)size, follow_up)
                             : take_bytes(connection, slice(inbox, (size_t)size), follow_up);
    if (!is_fine) return RECEIVED_END;
    return (size_t)size < wanted ? RECEIVED_ALL : RECEIVED_SOME;
}

// Asks epoll anew: it reports at once what is there already.
static bool rearm(const SpConnection *connection)
{
    return watch(connection, EPOLL_CTL_MOD);
}

bool sp_connection_receive(SpConnection *connection, bool is_ending, uint8_t *inbox,
                           SpFollowUp *follow_up)
{
    for (int i = 0; i < RECEIVES_MAX; i++) {
        switch (receive_once(connection, inbox, follow_up)) {
        case RECEIVED_END: return false;
        case RECEIVED_ALL:
            if (!is_ending) return true;
            break; // the end comes after the last bytes
        case RECEIVED_SOME: break;
        }
    }
    return rearm(connection);
}

bool sp_connection_keep(SpConnection *connection)
{
    if (!connection->is_greeted || connection->running > 0 || connection->unsent ||
        connection->incoming || connection->header_bytes > 0) {
        return false;
    }
    connection->is_kept = true;
    return rearm(connection);
}

bool sp_connection_let_go(SpConnection *connection)
{
    connection->is_kept = false;
    return rearm(connection);
}

static size_t reply_frame_bytes(const PeerRequest *request)
{
    return SP_FRAME_HEADER_BYTES + request->route_bytes + request_reply(request).size;
}

// Finds the parts of a reply's frame that are not sent yet. Returns how many there are.
static size_t frame_parts(const PeerRequest *request, size_t sent,
                          uint8_t header[SP_FRAME_HEADER_BYTES], struct iovec out[PARTS_MAX])
{
    Slice reply = request_reply(request);
    sp_frame_write(request->route_bytes + reply.size, header);
    const Slice parts[PARTS_MAX] = {
        slice(header, SP_FRAME_HEADER_BYTES),
        slice(request->frame, request->route_bytes),
        reply,
    };
    size_t count = 0;
    for (size_t i = 0; i < PARTS_MAX; i++) {
        size_t skipped = smaller(sent, parts[i].size);
        sent -= skipped;
        if (skipped == parts[i].size) continue;
        Slice left = slice_skip(parts[i], skipped);
        out[count++] = (struct iovec){(void *)(uintptr_t)left.bytes, left.size};
    }
    return count;
}

// Sends what fits of one reply, beginning at `*sent`. Returns false if the connection must end.
static bool send_some(const SpConnection *connection, const PeerRequest *request, size_t *sent)
{
    uint8_t header[SP_FRAME_HEADER_BYTES];
    struct iovec parts[PARTS_MAX];
    struct msghdr message = {.msg_iov = parts};
    size_t size = reply_frame_bytes(request);
    while (*sent < size) {
        message.msg_iovlen = frame_parts(request, *sent, header, parts);
        ssize_t out = sendmsg(connection->file, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (out < 0 && errno == EINTR) continue;
        if (out < 0) return errno == EAGAIN;
        *sent += (size_t)out;
    }
    return true;
}

SendResult sp_connection_send(SpConnection *connection, PeerRequest *request, bool *out_ends)
{
    size_t sent = 0;
    bool is_first = connection->unsent == NULL;
    connection->running--;
    *out_ends = is_first && !send_some(connection, request, &sent);
    if (*out_ends) return SEND_GONE;
    if (sent == reply_frame_bytes(request)) return SEND_DONE;
    if (is_first) connection->sent_bytes = sent;
    request->is_late = true;
    request->next = NULL;
    *connection->unsent_end = request;
    connection->unsent_end = &request->next;
    if (!connection->wants_room) {
        connection->wants_room = true;
        *out_ends = !rearm(connection);
    }
    return SEND_LATER;
}

bool sp_connection_send_unsent(SpConnection *connection, SpFollowUp *follow_up)
{
    while (connection->unsent) {
        PeerRequest *request = connection->unsent;
        if (!send_some(connection, request, &connection->sent_bytes)) return false;
        if (connection->sent_bytes < reply_frame_bytes(request)) break;
        connection->unsent = request->next;
        connection->sent_bytes = 0;
        list_add(&follow_up->sent, request);
    }
    if (connection->unsent) return true;
    connection->unsent_end = &connection->unsent;
    if (!connection->wants_room) return true;
    connection->wants_room = false;
    return rearm(connection);
}
