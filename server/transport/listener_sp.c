// The listening socket and the threads. There are as many threads as processors, at least two. All
// wait for the same epoll and each takes one event at a time, so one long request delays nobody
// whom another thread can serve. Reads run on these threads; a write usually runs on the writer's
// thread, which then sends its reply.

#include "transport/listener_sp.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/limits.h"
#include "os/clock.h"
#include "os/socket_path.h"
#include "os/thread.h"
#include "report/log.h"
#include "report/log_limit.h"
#include "transport/peer.h"
#include "transport/request.h"
#include "transport/sp_connections.h"

enum {
    SOCKET_MODE = 0600,
    LISTEN_BACKLOG = 1024,
    DESCRIPTORS_WAIT_MS = 10,
};

// The numbers of the events that are not connections'.
enum { NUMBER_LISTENER, NUMBER_STOP, NUMBER_LOOK, NUMBER_HELLO };

typedef struct ListenerSp {
    Listener listener; // the first
    char path[SOCKET_PATH_BYTES_MAX + 1];
    int socket, stop, poller; // -1: not open
    dev_t device;             // of the socket's file, once it is there
    ino_t inode;
    bool is_bound;
    SpConnections *connections; // owned
    pthread_t threads[TASK_THREADS_MAX];
    size_t thread_count;
    atomic_bool is_stopping;
    size_t awake_max; // threads that may stay with a connection at the same time
    atomic_size_t awake_count;
    atomic_int spare; // a descriptor, to turn a peer away when there is no other left
} ListenerSp;

static Error open_poller(ListenerSp *server, ErrorDetail *detail);
static Error bind_to(ListenerSp *server, const char *path, ErrorDetail *detail);
static Error threads_start(ListenerSp *server, ErrorDetail *detail);
static Error start_listening(ListenerSp *server, ErrorDetail *detail);
static void *serve(void *context);
static void close_listener(Listener *listener);
static void free_listener(Listener *listener);

static const ListenerOps OPS = {
    .send = sp_connection_send,
    .takes_loans = true,
    .cut_off = sp_connection_cut_off,
    .close = close_listener,
    .free = free_listener,
};

Error listener_sp_start(const ListenerSpOptions *options, ErrorDetail *detail, Listener **out)
{
    ListenerSp *server = calloc(1, sizeof(ListenerSp));
    if (!server) return ERROR_OUT_OF_MEMORY;
    server->listener = (Listener){
        .group = {.count_max = options->clients_max},
        .ops = &OPS,
        .requests = options->requests,
    };
    server->socket = server->stop = server->poller = -1;
    atomic_init(&server->spare, -1);
    Error error = open_poller(server, detail);
    if (!error) error = bind_to(server, options->path, detail);
    if (!error) error = threads_start(server, detail);
    if (!error) error = start_listening(server, detail);
    if (error) {
        close_listener(&server->listener);
        free_listener(&server->listener);
        return error;
    }
    *out = &server->listener;
    return ERROR_NONE;
}

static Error fail(ErrorDetail *detail, const char *what)
{
    return error_say(detail, errno == EADDRINUSE ? ERROR_UNAVAILABLE : ERROR_IO, "%s: %s", what,
                     strerror(errno));
}

static bool watch(ListenerSp *server, int file, uint64_t number, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.u64 = number};
    return epoll_ctl(server->poller, EPOLL_CTL_ADD, file, &event) == 0;
}

static Error open_poller(ListenerSp *server, ErrorDetail *detail)
{
    server->poller = epoll_create1(EPOLL_CLOEXEC);
    server->stop = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (server->poller < 0 || server->stop < 0) return fail(detail, "cannot watch connections");
    Error error =
        sp_connections_open(&server->listener, server->poller, detail, &server->connections);
    if (error) return error;
    if (!watch(server, server->stop, NUMBER_STOP, EPOLLIN) ||
        !watch(server, requests_timer(server->listener.requests), NUMBER_LOOK, EPOLLIN | EPOLLET) ||
        !watch(server, sp_connections_timer(server->connections), NUMBER_HELLO,
               EPOLLIN | EPOLLET)) {
        return fail(detail, "cannot watch connections");
    }
    return ERROR_NONE;
}

static Error bind_to(ListenerSp *server, const char *path, ErrorDetail *detail)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) > SOCKET_PATH_BYTES_MAX) {
        return error_say(detail, ERROR_INVALID_ARGUMENT, "%s: a socket's path has at most %d bytes",
                         path, SOCKET_PATH_BYTES_MAX);
    }
    snprintf(server->path, sizeof(server->path), "%s", path);
    memcpy(address.sun_path, server->path, sizeof(server->path));
    Error error = socket_path_clear(path, detail);
    if (error) return error;
    server->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct stat found;
    if (server->socket < 0 ||
        bind(server->socket, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        stat(path, &found) != 0) {
        return fail(detail, path);
    }
    server->device = found.st_dev;
    server->inode = found.st_ino;
    server->is_bound = true;
    atomic_store(&server->spare, fcntl(server->socket, F_DUPFD_CLOEXEC, 0));
    bool is_fine = chmod(path, SOCKET_MODE) == 0 && atomic_load(&server->spare) >= 0;
    return is_fine ? ERROR_NONE : fail(detail, path);
}

static Error threads_start(ListenerSp *server, ErrorDetail *detail)
{
    long wanted = sysconf(_SC_NPROCESSORS_ONLN);
    server->awake_max = wanted > 1 ? (size_t)wanted / 2 : 0; // the clients need processors too
    if (wanted < TASK_THREADS_MIN) wanted = TASK_THREADS_MIN;
    if (wanted > TASK_THREADS_MAX) wanted = TASK_THREADS_MAX;
    while (server->thread_count < (size_t)wanted) {
        Error error = thread_start(&server->threads[server->thread_count], serve, server,
                                   "serve connections", detail);
        if (error) return error;
        server->thread_count++;
    }
    return ERROR_NONE;
}

// The last step: nobody can connect before the mode is set, or before all is there to serve him.
static Error start_listening(ListenerSp *server, ErrorDetail *detail)
{
    if (listen(server->socket, LISTEN_BACKLOG) != 0 ||
        !watch(server, server->socket, NUMBER_LISTENER, EPOLLIN)) {
        return fail(detail, server->path);
    }
    return ERROR_NONE;
}

static bool is_welcome(int file)
{
    struct ucred peer = {.pid = 0};
    socklen_t size = sizeof(peer);
    bool is_known = getsockopt(file, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
    return peer_is_allowed(is_known ? (int64_t)peer.uid : -1, peer.pid);
}

// No descriptor is left: closes the spare one to accept a peer, closes the peer's, so that it hears
// the end of its connection, and takes the spare one again. If other threads are faster, waits a
// moment for descriptors.
static void turn_away(ListenerSp *server)
{
    static LogLimit limit;
    uint64_t left_out;
    int spare = atomic_exchange(&server->spare, -1);
    if (spare >= 0) close(spare);
    int file = accept4(server->socket, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (file >= 0) close(file);
    spare = fcntl(server->socket, F_DUPFD_CLOEXEC, 0);
    if (spare >= 0) spare = atomic_exchange(&server->spare, spare);
    if (spare >= 0) close(spare);
    if (file < 0) (void)poll(NULL, 0, DESCRIPTORS_WAIT_MS);
    if (!log_limit_take(&limit, clock_monotonic_ns(), &left_out)) return;
    log_write(LOG_WARNING, "connection refused: no descriptor is left; raise RLIMIT_NOFILE",
              "left_out=%llu", (unsigned long long)left_out);
}

static void accept_one(ListenerSp *server)
{
    int file = accept4(server->socket, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (file >= 0) {
        sp_connections_add(server->connections, file, is_welcome(file));
    } else if (errno == EMFILE || errno == ENFILE) {
        turn_away(server);
    }
}

// Stays awake with a connection that was just served for as long as it keeps sending. No other
// connection waits for it: returns true as soon as epoll has another event, `*out_event`.
static bool stay_awake(ListenerSp *server, uint64_t number, uint8_t *inbox,
                       struct epoll_event *out_event)
{
    SpConnection *connection = sp_connections_at(server->connections, number);
    bool has_event = false;
    size_t count = atomic_fetch_add(&server->awake_count, 1);
    if (count < server->awake_max && sp_connection_keep(connection, number)) {
        while (!has_event && sp_connection_look(connection, number, inbox)) {
            has_event = epoll_wait(server->poller, out_event, 1, 0) == 1;
        }
        sp_connection_let_go(connection, number);
    }
    atomic_fetch_sub(&server->awake_count, 1);
    return has_event;
}

static void look(ListenerSp *server)
{
    if (requests_look(server->listener.requests)) sp_connections_settle(server->connections);
}

static void *serve(void *context)
{
    ListenerSp *server = context;
    uint8_t inbox[RECEIVE_BYTES];
    struct epoll_event event;
    bool has_event = false;
    while (!atomic_load(&server->is_stopping)) {
        if (!has_event && epoll_wait(server->poller, &event, 1, -1) != 1) continue;
        uint64_t number = event.data.u64;
        has_event = false;
        switch (number) {
        case NUMBER_STOP: break;
        case NUMBER_LISTENER: accept_one(server); break;
        case NUMBER_LOOK: look(server); break;
        case NUMBER_HELLO: sp_connections_end_silent(server->connections); break;
        default:
            sp_connection_ready(sp_connections_at(server->connections, number), number,
                                event.events, inbox);
            has_event = stay_awake(server, number, inbox, &event);
        }
    }
    return NULL;
}

// Leaves the path alone if another process has made its socket there meanwhile.
static void unlink_socket(ListenerSp *server)
{
    struct stat found;
    if (!server->is_bound || stat(server->path, &found) != 0) return;
    if (found.st_dev == server->device && found.st_ino == server->inode) unlink(server->path);
    server->is_bound = false;
}

static void close_listener(Listener *listener)
{
    ListenerSp *server = (ListenerSp *)listener;
    atomic_store(&server->is_stopping, true);
    uint64_t one = 1;
    if (server->stop >= 0) (void)!write(server->stop, &one, sizeof(one));
    for (size_t i = 0; i < server->thread_count; i++)
        pthread_join(server->threads[i], NULL);
    server->thread_count = 0;
    unlink_socket(server);
    if (server->socket >= 0) close(server->socket);
    if (atomic_load(&server->spare) >= 0) close(atomic_exchange(&server->spare, -1));
    if (server->stop >= 0) close(server->stop);
    server->socket = server->stop = -1;
    if (server->connections) sp_connections_end(server->connections);
}

static void free_listener(Listener *listener)
{
    ListenerSp *server = (ListenerSp *)listener;
    sp_connections_free(server->connections);
    if (server->poller >= 0) close(server->poller);
    free(server);
}
