// One connection. The mutex is held while bytes go in or out and never while a request runs, so the
// requests of one connection run in parallel. What must be done without the mutex, the functions
// that need it add to a FollowUp, and unlock does it.
//
// epoll reports changes only (EPOLLET). A receive that returns less than it has room for has
// emptied the socket, so a lone request costs three system calls: wait, receive, send.

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
    PARTS_MAX = 256,  // of a reply's frame that are sent at once: header, route, Response
};

// Requests, oldest first.
typedef struct RequestList {
    PeerRequest *first, **end;
} RequestList;

typedef struct FollowUp {
    RequestList received; // to begin
    RequestList sent;     // to end: the reply was sent
    RequestList dropped;  // to end: the reply was not sent
} FollowUp;

static void list_add(RequestList *list, PeerRequest *request)
{
    request->next = NULL;
    *list->end = request;
    list->end = &request->next;
}

static PeerRequest *list_take(RequestList *list)
{
    PeerRequest *request = list->first;
    if (request) list->first = request->next;
    return request;
}

static void lock(SpConnection *connection, FollowUp *follow_up)
{
    follow_up->received = (RequestList){NULL, &follow_up->received.first};
    follow_up->sent = (RequestList){NULL, &follow_up->sent.first};
    follow_up->dropped = (RequestList){NULL, &follow_up->dropped.first};
    pthread_mutex_lock(&connection->mutex);
}

static void unlock(SpConnection *connection, FollowUp *follow_up)
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
    if ((uint32_t)connection->number >= SEND_BUFFERS_MAX) return;
    (void)setsockopt(connection->file, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

// Closes the connection and gives its place back. The connection must be locked.
static void end(SpConnection *connection, FollowUp *follow_up)
{
    SpShared *shared = connection->shared;
    if (connection->is_greeted) requests_disconnect(shared->listener, connection->serial);
    // Out of epoll first: a thread that looks at the socket within epoll_wait holds it, and may
    // sleep there before it lets go. Then close() alone would not end the connection.
    (void)epoll_ctl(shared->poller, EPOLL_CTL_DEL, connection->file, NULL);
    close(connection->file);
    if (connection->incoming) request_abandon(connection->incoming);
    while (connection->unsent) {
        PeerRequest *request = connection->unsent;
        connection->unsent = request->next;
        list_add(&follow_up->dropped, request);
    }
    connection->serial = 0;
    connection->incoming = NULL;
    pthread_mutex_lock(&shared->mutex);
    connection->next_free = shared->free;
    shared->free = connection;
    pthread_mutex_unlock(&shared->mutex);
}

void sp_connection_begin(SpConnection *connection, uint64_t number, int file, bool is_welcome)
{
    FollowUp follow_up;
    lock(connection, &follow_up);
    connection->number = number;
    connection->serial = (uint32_t)(number >> 32);
    connection->file = file;
    connection->is_welcome = is_welcome;
    connection->is_greeted = connection->wants_room = connection->is_kept = false;
    connection->spin = (Spin){.until_ns = 0};
    connection->begun_ns = clock_monotonic_ns();
    connection->header_bytes = connection->incoming_bytes = connection->sent_bytes = 0;
    connection->incoming = NULL;
    connection->running = 0;
    connection->unsent = NULL;
    connection->unsent_end = &connection->unsent;
    enlarge_send_buffer(connection);
    uint8_t hello[SP_HELLO_BYTES];
    sp_hello_write(SP_PROTOCOL_REP, hello);
    // The socket is new, so it has room for a hello.
    if (send(file, hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello) ||
        !watch(connection, EPOLL_CTL_ADD)) {
        end(connection, &follow_up);
    }
    unlock(connection, &follow_up);
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
static bool frame_grow(SpConnection *connection, size_t size, FollowUp *follow_up)
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
static bool take_bytes(SpConnection *connection, Slice bytes, FollowUp *follow_up)
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
static ReceiveResult receive_once(SpConnection *connection, uint8_t *inbox, FollowUp *follow_up)
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

// Receives what has arrived, up to a bound. `is_ending`: epoll reports that the peer is gone.
// Returns false if the connection must end.
static bool receive(SpConnection *connection, bool is_ending, uint8_t *inbox, FollowUp *follow_up)
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

static size_t reply_head_bytes(const PeerRequest *request)
{
    return SP_FRAME_HEADER_BYTES + request->route_bytes;
}

static size_t reply_frame_bytes(const PeerRequest *request)
{
    return reply_head_bytes(request) + request_reply_bytes(request);
}

// Returns how many of the first `sent` bytes of a reply's frame are the Response's.
static size_t reply_sent(const PeerRequest *request, size_t sent)
{
    size_t head_bytes = reply_head_bytes(request);
    return sent > head_bytes ? sent - head_bytes : 0;
}

// Finds the next parts of a reply's frame that are not sent yet. Returns how many there are.
static size_t frame_parts(const PeerRequest *request, size_t sent,
                          uint8_t header[SP_FRAME_HEADER_BYTES], struct iovec out[PARTS_MAX])
{
    sp_frame_write(request->route_bytes + request_reply_bytes(request), header);
    const Slice heads[] = {
        slice(header, SP_FRAME_HEADER_BYTES),
        slice(request->frame, request->route_bytes),
    };
    size_t count = 0, skipped = sent;
    for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
        Slice left = slice_skip(heads[i], smaller(skipped, heads[i].size));
        skipped -= heads[i].size - left.size;
        if (left.size == 0) continue;
        out[count++] = (struct iovec){(void *)(uintptr_t)left.bytes, left.size};
    }
    size_t from = reply_sent(request, sent);
    return count + request_reply_parts(request, from, PARTS_MAX - count, out + count);
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

// Sends the reply of a request, after those that wait already. SEND_LATER: the request belongs to
// the connection now. `*out_ends`: the connection must end.
static SendResult send_reply(SpConnection *connection, PeerRequest *request, bool *out_ends)
{
    size_t sent = 0;
    bool is_first = connection->unsent == NULL;
    connection->running--;
    *out_ends = is_first && !send_some(connection, request, &sent);
    if (*out_ends) return SEND_GONE;
    if (sent == reply_frame_bytes(request)) return SEND_DONE;
    *out_ends = !request_wait(request, reply_sent(request, sent));
    if (*out_ends) return SEND_GONE;
    if (is_first) connection->sent_bytes = sent;
    request->next = NULL;
    *connection->unsent_end = request;
    connection->unsent_end = &request->next;
    if (!connection->wants_room) {
        connection->wants_room = true;
        *out_ends = !rearm(connection);
    }
    return SEND_LATER;
}

// Sends the replies that wait. Returns false if the connection must end.
static bool send_unsent(SpConnection *connection, FollowUp *follow_up)
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

// Returns whether the connection with this number still has its place.
static bool is_there(const SpConnection *connection, uint64_t number)
{
    return connection->serial && connection->number == number;
}

void sp_connection_ready(SpConnection *connection, uint64_t number, uint32_t events, uint8_t *inbox)
{
    bool is_ending = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);
    FollowUp follow_up;
    lock(connection, &follow_up);
    if (is_there(connection, number)) {
        bool is_fine = !(events & EPOLLOUT) || send_unsent(connection, &follow_up);
        if (is_fine) is_fine = receive(connection, is_ending, inbox, &follow_up);
        if (follow_up.received.first) spin_missed(&connection->spin, clock_monotonic_ns());
        if (!is_fine) end(connection, &follow_up);
    }
    unlock(connection, &follow_up);
}

SendResult sp_connection_send(PeerRequest *request)
{
    const Account *account = request->entry.account;
    SpConnection *connection = account->connection;
    SendResult result = SEND_GONE;
    FollowUp follow_up;
    lock(connection, &follow_up);
    if (connection->serial == account->connection_id) {
        bool ends;
        result = send_reply(connection, request, &ends);
        if (ends) end(connection, &follow_up);
    }
    unlock(connection, &follow_up);
    return result;
}

void sp_connection_cut_off(Account *account)
{
    SpConnection *connection = account->connection;
    FollowUp follow_up;
    lock(connection, &follow_up);
    if (connection->serial == account->connection_id) end(connection, &follow_up);
    unlock(connection, &follow_up);
}

void sp_connection_settle(SpConnection *connection)
{
    FollowUp follow_up;
    lock(connection, &follow_up);
    bool is_fine = true;
    size_t sent = connection->sent_bytes; // of the first
    for (PeerRequest *request = connection->unsent; request; request = request->next) {
        if (!request_settle(request, reply_sent(request, sent))) is_fine = false;
        sent = 0;
    }
    if (!is_fine) end(connection, &follow_up);
    unlock(connection, &follow_up);
}

bool sp_connection_end_silent(SpConnection *connection, int64_t begun_before_ns)
{
    FollowUp follow_up;
    lock(connection, &follow_up);
    bool is_silent = connection->serial && !connection->is_greeted;
    bool ends = is_silent && connection->begun_ns < begun_before_ns;
    if (ends) end(connection, &follow_up);
    unlock(connection, &follow_up);
    return is_silent && !ends;
}

void sp_connection_end(SpConnection *connection)
{
    FollowUp follow_up;
    lock(connection, &follow_up);
    if (connection->serial) end(connection, &follow_up);
    unlock(connection, &follow_up);
}

static bool is_quiet(const SpConnection *connection)
{
    return connection->is_greeted && connection->running == 0 && !connection->unsent &&
           !connection->incoming && connection->header_bytes == 0;
}

bool sp_connection_keep(SpConnection *connection, uint64_t number)
{
    bool is_kept = false;
    pthread_mutex_lock(&connection->mutex);
    if (is_there(connection, number) && !connection->is_kept) {
        int64_t now_ns = clock_monotonic_ns();
        spin_begin(&connection->spin, now_ns);
        connection->is_kept = spin_goes_on(&connection->spin, now_ns) && is_quiet(connection);
        if (connection->is_kept) connection->is_kept = rearm(connection);
        is_kept = connection->is_kept;
    }
    pthread_mutex_unlock(&connection->mutex);
    return is_kept;
}

bool sp_connection_look(SpConnection *connection, uint64_t number, uint8_t *inbox)
{
    bool goes_on = false, has_received = false;
    FollowUp follow_up;
    lock(connection, &follow_up);
    if (is_there(connection, number) && connection->running == 0) {
        goes_on = receive(connection, /* is_ending= */ false, inbox, &follow_up);
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

void sp_connection_let_go(SpConnection *connection, uint64_t number)
{
    FollowUp follow_up;
    lock(connection, &follow_up);
    if (is_there(connection, number)) {
        connection->is_kept = false;
        if (!rearm(connection)) end(connection, &follow_up);
    }
    unlock(connection, &follow_up);
}
