// One connection. epoll tells of changes only (EPOLLET). A receive that brings less than it has
// room for has emptied the socket, so a lone request costs three calls of the kernel: wait,
// receive, send.

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
    HELLO_BYTES = 8,
    FRAME_BYTES_MAX = REQUEST_BYTES_MAX + FRAME_EXTRA_BYTES,
    RECEIVES_MAX = 4, // before it is the others' turn
};

static const uint8_t HELLO_REP[HELLO_BYTES] = {0, 'S', 'P', 0, 0, 0x31, 0, 0};
static const uint8_t HELLO_REQ[HELLO_BYTES] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};

static bool watch(const Connection *connection, int operation)
{
    struct epoll_event event = {.events = EPOLLET, .data.u64 = connection->number};
    if (!connection->is_kept) event.events |= EPOLLIN | EPOLLRDHUP;
    if (connection->wants_room) event.events |= EPOLLOUT;
    return epoll_ctl(connection->shared->poller, operation, connection->file, &event) == 0;
}

// A page that the kernel takes whole is sent in one go. Else the rest of it waits for epoll to tell
// of room, which it does when most was read: two sleeping processors are woken once more. Whoever
// does not read pins kernel memory by it, so not everybody gets it. It may be refused; then the
// connection is as good as any other.
static void ask_for_room(const Connection *connection)
{
    int bytes = SEND_BUFFER_BYTES;
    if (connection->place >= SEND_BUFFERS_MAX) return;
    (void)setsockopt(connection->file, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

bool connection_begin(Connection *connection)
{
    connection->is_greeted = connection->wants_room = connection->is_kept = false;
    connection->spin = (Spin){.until_ns = 0};
    connection->running = 0;
    connection->begun_ns = clock_monotonic_ns();
    connection->head_bytes = connection->incoming_bytes = connection->sent_bytes = 0;
    connection->incoming = NULL;
    connection->unsent = NULL;
    connection->unsent_end = &connection->unsent;
    ask_for_room(connection);
    // The socket is new: there is room for a hello.
    return send(connection->file, HELLO_REP, HELLO_BYTES, MSG_NOSIGNAL) == HELLO_BYTES &&
           watch(connection, EPOLL_CTL_ADD);
}

SpRequest *connection_end(Connection *connection)
{
    SpRequest *unsent = connection->unsent;
    if (connection->is_greeted) clients_remove(connection->shared->clients, connection->serial);
    // Out of epoll first: a thread that looks at the socket within epoll_wait holds it, and may
    // fall asleep there before it lets go. Then close() alone would not end the connection.
    (void)epoll_ctl(connection->shared->poller, EPOLL_CTL_DEL, connection->file, NULL);
    close(connection->file);
    if (connection->incoming) request_give(connection->incoming);
    connection->serial = 0;
    connection->incoming = NULL;
    connection->unsent = NULL;
    return unsent;
}

// When the other side's hello is whole.
static bool greet(Connection *connection)
{
    if (memcmp(connection->head, HELLO_REQ, HELLO_BYTES) != 0 || !connection->is_welcome ||
        atomic_load(&connection->shared->is_refusing) ||
        !clients_add(connection->shared->clients, connection->serial, /* needs_token= */ false)) {
        return false;
    }
    connection->is_greeted = true;
    connection->head_bytes = 0;
    return true;
}

// When a frame's head is whole: makes the request that its payload goes to.
static bool frame_begin(Connection *connection)
{
    uint64_t size = 0;
    for (size_t i = 1; i < FRAME_HEAD_BYTES; i++)
        size = size << 8 | connection->head[i];
    if (connection->head[0] != 1 || size == 0 || size > FRAME_BYTES_MAX) return false;
    SpRequest *request = request_take(connection->shared->requests, (size_t)size);
    if (!request) return false;
    request->place = connection->place;
    request->serial = connection->serial;
    connection->incoming = request;
    connection->head_bytes = connection->incoming_bytes = 0;
    return true;
}

static void frame_end(Connection *connection, RequestList *whole)
{
    if (connection->incoming_bytes < connection->incoming->size) return;
    *whole->end = connection->incoming;
    whole->end = &connection->incoming->next;
    connection->incoming = NULL;
    connection->running++;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

// False: these are no frames, or none for us.
static bool take_bytes(Connection *connection, Slice bytes, RequestList *whole)
{
    while (bytes.size > 0) {
        size_t size;
        if (connection->incoming) {
            size = smaller(bytes.size, connection->incoming->size - connection->incoming_bytes);
            memcpy(connection->incoming->bytes + connection->incoming_bytes, bytes.bytes, size);
            connection->incoming_bytes += size;
            frame_end(connection, whole);
        } else {
            size_t wanted = connection->is_greeted ? FRAME_HEAD_BYTES : HELLO_BYTES;
            size = smaller(bytes.size, wanted - connection->head_bytes);
            memcpy(connection->head + connection->head_bytes, bytes.bytes, size);
            connection->head_bytes += size;
            bool is_whole = connection->head_bytes == wanted;
            if (is_whole &&
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
static ReceiveResult receive_once(Connection *connection, uint8_t *inbox, RequestList *whole)
{
    SpRequest *incoming = connection->incoming;
    size_t left = incoming ? incoming->size - connection->incoming_bytes : 0;
    bool is_direct = left >= RECEIVE_BYTES;
    uint8_t *room = is_direct ? incoming->bytes + connection->incoming_bytes : inbox;
    size_t wanted = is_direct ? left : RECEIVE_BYTES;
    ssize_t size = recv(connection->file, room, wanted, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
        return errno == EAGAIN ? RECEIVED_ALL : RECEIVED_SOME;
    }
    if (size <= 0) return RECEIVED_END;
    if (is_direct) {
        connection->incoming_bytes += (size_t)size;
        frame_end(connection, whole);
    } else if (!take_bytes(connection, slice(inbox, (size_t)size), whole)) {
        return RECEIVED_END;
    }
    return (size_t)size < wanted ? RECEIVED_ALL : RECEIVED_SOME;
}

// Asks epoll anew, which tells at once of what is there already.
static bool rearm(const Connection *connection)
{
    return watch(connection, EPOLL_CTL_MOD);
}

// False: the connection is to end.
bool connection_receive(Connection *connection, bool is_ending, uint8_t *inbox, RequestList *whole)
{
    for (int i = 0; i < RECEIVES_MAX; i++) {
        switch (receive_once(connection, inbox, whole)) {
        case RECEIVED_END: return false;
        case RECEIVED_ALL:
            if (!is_ending) return true;
            break; // behind the last bytes stands the end
        case RECEIVED_SOME: break;
        }
    }
    return rearm(connection);
}

bool connection_keep(Connection *connection)
{
    if (!connection->is_greeted || connection->running > 0 || connection->unsent ||
        connection->incoming || connection->head_bytes > 0) {
        return false;
    }
    connection->is_kept = true;
    return rearm(connection);
}

bool connection_let_go(Connection *connection)
{
    connection->is_kept = false;
    return rearm(connection);
}

// The parts of a reply's frame that are not sent yet; returns how many.
static size_t frame_parts(const SpRequest *request, size_t sent, uint8_t head[FRAME_HEAD_BYTES],
                          struct iovec out[3])
{
    Slice parts[3];
    request_reply(request, parts + 1);
    uint64_t size = parts[1].size + parts[2].size;
    head[0] = 1;
    for (int i = 0; i < 8; i++)
        head[1 + i] = (uint8_t)(size >> (56 - 8 * i));
    parts[0] = slice(head, FRAME_HEAD_BYTES);
    size_t count = 0;
    for (size_t i = 0; i < 3; i++) {
        size_t skipped = smaller(sent, parts[i].size);
        sent -= skipped;
        if (skipped == parts[i].size) continue;
        out[count++] =
            (struct iovec){(void *)(uintptr_t)(parts[i].bytes + skipped), parts[i].size - skipped};
    }
    return count;
}

static size_t frame_bytes(const SpRequest *request)
{
    return FRAME_HEAD_BYTES + request->way_bytes + buffer_size(&request->rpc.reply);
}

// Sends what fits of one reply, beginning at `*sent`. False: the connection is to end.
static bool send_some(const Connection *connection, const SpRequest *request, size_t *sent)
{
    uint8_t head[FRAME_HEAD_BYTES];
    struct iovec parts[3];
    struct msghdr message = {.msg_iov = parts};
    size_t size = frame_bytes(request);
    while (*sent < size) {
        message.msg_iovlen = frame_parts(request, *sent, head, parts);
        ssize_t out = sendmsg(connection->file, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (out < 0 && errno == EINTR) continue;
        if (out < 0) return errno == EAGAIN;
        *sent += (size_t)out;
    }
    return true;
}

SendResult connection_send(Connection *connection, SpRequest *request, bool *out_ends)
{
    size_t sent = 0;
    bool is_first = connection->unsent == NULL;
    connection->running--;
    *out_ends = is_first && !send_some(connection, request, &sent);
    if (*out_ends) return SEND_GONE;
    if (sent == frame_bytes(request)) return SEND_DONE;
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

// Sends what waits; what was sent whole is added to `done`. False: the connection
// is to end.
bool connection_send_unsent(Connection *connection, RequestList *done)
{
    while (connection->unsent) {
        SpRequest *request = connection->unsent;
        if (!send_some(connection, request, &connection->sent_bytes)) return false;
        if (connection->sent_bytes < frame_bytes(request)) break;
        connection->unsent = request->next;
        connection->sent_bytes = 0;
        request->next = NULL;
        *done->end = request;
        done->end = &request->next;
    }
    if (connection->unsent) return true;
    connection->unsent_end = &connection->unsent;
    if (!connection->wants_room) return true;
    connection->wants_room = false;
    return rearm(connection);
}
