// Connections. What is known of one is guarded by its mutex, which is held while bytes go in or out
// and never while a request runs: so the requests of one connection run at the same time.
//
// epoll tells of changes only (EPOLLET). A receive that brings less than it has room for has
// emptied the socket, so a lone request costs three calls of the kernel: wait, receive, send.
// Places are never freed while the server lives: who was told of a connection that is gone finds
// another serial there.

#include "transport/sp_connection.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"

enum {
    HELLO_BYTES = 8,
    FRAME_HEAD_BYTES = 9,
    FRAME_BYTES_MAX = REQUEST_BYTES_MAX + FRAME_EXTRA_BYTES,
    GREETING_MAX = 256,       // who may be there beyond the clients, to be turned away with a hello
    RECEIVES_MAX = 4,         // of one connection, before it is the others' turn
    NUMBER_LOOK = EVENTS_OWN, // of events: the timers' …
    NUMBER_HELLO,
    NUMBER_FIRST, // … and the first place's
};

static const uint8_t HELLO_REP[HELLO_BYTES] = {0, 'S', 'P', 0, 0, 0x31, 0, 0};
static const uint8_t HELLO_REQ[HELLO_BYTES] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};

typedef struct Connection {
    pthread_mutex_t mutex; // guards all below
    uint32_t serial;       // of who is here; 0: nobody
    int file;
    bool is_welcome, is_greeted;
    bool wants_room; // epoll tells when there is room for what is unsent
    int64_t begun_ns;

    uint8_t head[FRAME_HEAD_BYTES]; // of the hello or of a frame, so far
    size_t head_bytes;
    SpRequest *incoming; // owned; NULL: a head comes next
    size_t incoming_bytes;

    SpRequest *unsent, **unsent_end; // answered, oldest first; owned
    size_t sent_bytes;               // of the oldest one's frame
    uint32_t next_free;
} Connection;

struct Connections {
    ConnectionsOptions options;
    int poller;
    Clients *clients;   // owned
    Requests *requests; // owned
    atomic_bool is_refusing;
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

// Requests that came whole in one receive, oldest first.
typedef struct Batch {
    SpRequest *first, **end;
} Batch;

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
    connections->options = *options;
    connections->free_place = NONE;
    pthread_mutex_init(&connections->mutex, NULL);
    *out = connections;
    connections->poller = epoll_create1(EPOLL_CLOEXEC);
    connections->look_timer = timer_open(connections->poller, NUMBER_LOOK);
    connections->hello_timer = timer_open(connections->poller, NUMBER_HELLO);
    if (connections->look_timer < 0 || connections->hello_timer < 0) {
        return error_say(detail, ERROR_IO, "cannot watch connections: %s", strerror(errno));
    }
    // The kernel gives a page of this when a connection first has its place there.
    connections->place_count = options->clients_max + GREETING_MAX;
    connections->places = calloc(connections->place_count, sizeof(Connection));
    if (!connections->places) return ERROR_OUT_OF_MEMORY;
    Error error = clients_open(options->clients_max, &connections->clients);
    if (error) return error;
    RequestsOptions requests_options = {
        .engine = options->engine,
        .clients = connections->clients,
        .hooks = {send_reply, cut_off, connections},
    };
    return requests_open(&requests_options, &connections->requests);
}

void connections_free(Connections *connections)
{
    if (!connections) return;
    requests_close(connections->requests);
    clients_close(connections->clients);
    for (size_t i = 0; i < connections->begun_count; i++) {
        pthread_mutex_destroy(&connections->places[i].mutex);
    }
    free(connections->places);
    if (connections->look_timer > 0) close(connections->look_timer);
    if (connections->hello_timer > 0) close(connections->hello_timer);
    if (connections->poller > 0) close(connections->poller);
    pthread_mutex_destroy(&connections->mutex);
    free(connections);
}

int connections_poller(const Connections *connections)
{
    return connections->poller;
}

static uint64_t number_of(uint32_t place, uint32_t serial)
{
    return (uint64_t)serial << 32 | (place + NUMBER_FIRST);
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
static SpRequest *connection_end(Connections *connections, Connection *connection)
{
    SpRequest *unsent = connection->unsent;
    if (connection->is_greeted) clients_remove(connections->clients, connection->serial);
    close(connection->file); // which takes it out of epoll
    if (connection->incoming) request_give(connection->incoming);
    connection->serial = 0;
    connection->incoming = NULL;
    connection->unsent = NULL;
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
    connection->serial = serial;
    connection->file = file;
    connection->is_welcome = is_welcome;
    connection->is_greeted = connection->wants_room = false;
    connection->begun_ns = clock_monotonic_ns();
    connection->head_bytes = connection->incoming_bytes = connection->sent_bytes = 0;
    connection->incoming = NULL;
    connection->unsent = NULL;
    connection->unsent_end = &connection->unsent;
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET,
                                .data.u64 = number_of(place, serial)};
    // The socket is new: there is room for a hello.
    bool is_fine = send(file, HELLO_REP, HELLO_BYTES, MSG_NOSIGNAL) == HELLO_BYTES &&
                   epoll_ctl(connections->poller, EPOLL_CTL_ADD, file, &event) == 0;
    SpRequest *unsent = is_fine ? NULL : connection_end(connections, connection);
    pthread_mutex_unlock(&connection->mutex);
    replies_drop(unsent);
    keep_greeting(connections);
}

// Under its mutex, when the other side's hello is whole.
static bool greet(Connections *connections, Connection *connection)
{
    if (memcmp(connection->head, HELLO_REQ, HELLO_BYTES) != 0 || !connection->is_welcome ||
        atomic_load(&connections->is_refusing) ||
        !clients_add(connections->clients, connection->serial, /* needs_token= */ false)) {
        return false;
    }
    connection->is_greeted = true;
    connection->head_bytes = 0;
    return true;
}

// Under its mutex, when a frame's head is whole: makes the request that its payload goes to.
static bool frame_begin(Connections *connections, Connection *connection)
{
    uint64_t size = 0;
    for (size_t i = 1; i < FRAME_HEAD_BYTES; i++)
        size = size << 8 | connection->head[i];
    if (connection->head[0] != 1 || size == 0 || size > FRAME_BYTES_MAX) return false;
    SpRequest *request = request_take(connections->requests, (size_t)size);
    if (!request) return false;
    request->place = (uint32_t)(connection - connections->places);
    request->serial = connection->serial;
    connection->incoming = request;
    connection->head_bytes = connection->incoming_bytes = 0;
    return true;
}

static void frame_end(Connection *connection, Batch *batch)
{
    if (connection->incoming_bytes < connection->incoming->size) return;
    *batch->end = connection->incoming;
    batch->end = &connection->incoming->next;
    connection->incoming = NULL;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

// Under its mutex. False: these are no frames, or none for us.
static bool take_bytes(Connections *connections, Connection *connection, Slice bytes, Batch *batch)
{
    while (bytes.size > 0) {
        size_t size;
        if (connection->incoming) {
            size = smaller(bytes.size, connection->incoming->size - connection->incoming_bytes);
            memcpy(connection->incoming->bytes + connection->incoming_bytes, bytes.bytes, size);
            connection->incoming_bytes += size;
            frame_end(connection, batch);
        } else {
            size_t wanted = connection->is_greeted ? FRAME_HEAD_BYTES : HELLO_BYTES;
            size = smaller(bytes.size, wanted - connection->head_bytes);
            memcpy(connection->head + connection->head_bytes, bytes.bytes, size);
            connection->head_bytes += size;
            bool is_whole = connection->head_bytes == wanted;
            if (is_whole && !(connection->is_greeted ? frame_begin(connections, connection)
                                                     : greet(connections, connection))) {
                return false;
            }
        }
        bytes = slice_skip(bytes, size);
    }
    return true;
}

typedef enum ReceiveResult { RECEIVED_ALL, RECEIVED_SOME, RECEIVED_END } ReceiveResult;

// Receives once: a long payload into its request, all else through the inbox.
static ReceiveResult receive_once(Connections *connections, Connection *connection, uint8_t *inbox,
                                  Batch *batch)
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
        frame_end(connection, batch);
    } else if (!take_bytes(connections, connection, slice(inbox, (size_t)size), batch)) {
        return RECEIVED_END;
    }
    return (size_t)size < wanted ? RECEIVED_ALL : RECEIVED_SOME;
}

// Under its mutex. Asks epoll anew, which tells at once of what is there already.
static bool rearm(Connections *connections, Connection *connection)
{
    uint32_t place = (uint32_t)(connection - connections->places);
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET |
                                          (connection->wants_room ? (uint32_t)EPOLLOUT : 0),
                                .data.u64 = number_of(place, connection->serial)};
    return epoll_ctl(connections->poller, EPOLL_CTL_MOD, connection->file, &event) == 0;
}

// Under its mutex. False: the connection is to end.
static bool receive(Connections *connections, Connection *connection, bool is_ending,
                    uint8_t *inbox, Batch *batch)
{
    for (int i = 0; i < RECEIVES_MAX; i++) {
        switch (receive_once(connections, connection, inbox, batch)) {
        case RECEIVED_END: return false;
        case RECEIVED_ALL:
            if (!is_ending) return true;
            break; // behind the last bytes stands the end
        case RECEIVED_SOME: break;
        }
    }
    return rearm(connections, connection);
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
    return FRAME_HEAD_BYTES + request->way_bytes + buffer_size(&request->call.reply);
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

// Under its mutex. Sends what waits; what was sent whole is added to `done`. False: the connection
// is to end.
static bool send_unsent(Connections *connections, Connection *connection, Batch *done)
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
    return rearm(connections, connection);
}

static SendResult send_reply(void *context, SpRequest *request)
{
    Connections *connections = context;
    Connection *connection = &connections->places[request->place];
    SendResult result = SEND_GONE;
    SpRequest *dropped = NULL;
    pthread_mutex_lock(&connection->mutex);
    if (connection->serial == request->serial) {
        size_t sent = 0;
        bool is_fine = connection->unsent != NULL || send_some(connection, request, &sent);
        if (is_fine && sent == frame_bytes(request)) {
            result = SEND_DONE;
        } else if (is_fine) {
            if (!connection->unsent) connection->sent_bytes = sent;
            request->next = NULL;
            *connection->unsent_end = request;
            connection->unsent_end = &request->next;
            result = SEND_LATER;
            if (!connection->wants_room) {
                connection->wants_room = true;
                is_fine = rearm(connections, connection);
            }
        }
        if (!is_fine) dropped = connection_end(connections, connection);
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
    if (connection->serial == serial) dropped = connection_end(connections, connection);
    pthread_mutex_unlock(&connection->mutex);
    replies_drop(dropped);
}

static void connection_ready(Connections *connections, uint64_t number, uint32_t events,
                             uint8_t *inbox)
{
    uint32_t place = (uint32_t)number - NUMBER_FIRST, serial = (uint32_t)(number >> 32);
    Connection *connection = &connections->places[place];
    Batch batch = {NULL, &batch.first}, done = {NULL, &done.first};
    SpRequest *dropped = NULL;
    bool is_ending = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);
    pthread_mutex_lock(&connection->mutex);
    if (connection->serial == serial) {
        bool is_fine = !(events & EPOLLOUT) || send_unsent(connections, connection, &done);
        if (is_fine) is_fine = receive(connections, connection, is_ending, inbox, &batch);
        if (!is_fine) dropped = connection_end(connections, connection);
    }
    pthread_mutex_unlock(&connection->mutex);
    while (batch.first) {
        SpRequest *request = batch.first;
        batch.first = request->next;
        request_begin(request);
    }
    while (done.first) {
        SpRequest *request = done.first;
        done.first = request->next;
        request_sent(request, /* is_taken= */ true);
    }
    replies_drop(dropped);
}

void connections_refuse(Connections *connections)
{
    atomic_store(&connections->is_refusing, true);
    requests_refuse(connections->requests);
}

bool connections_drain(Connections *connections, int64_t until_ns)
{
    return requests_drain(connections->requests, until_ns);
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
            dropped = connection_end(connections, connection);
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
    requests_stop(connections->requests);
}

// What is handed over while this says that nothing is unsent begins to look itself.
static void look(Connections *connections)
{
    atomic_store(&connections->is_looking, false);
    if (clients_look(connections->clients)) keep_looking(connections);
    for (uint32_t serial; (serial = clients_overdue(connections->clients)) != 0;) {
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
    return clients_count(connections->clients);
}

uint64_t connections_request_count(Connections *connections)
{
    return requests_count(connections->requests);
}

void connections_trim(Connections *connections)
{
    requests_trim(connections->requests);
}
