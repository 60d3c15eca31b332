// The listener and its threads. As many threads as there are processors, two at least, wait for the
// same epoll; each takes one event at a time, so that one long request keeps nobody waiting whom
// another thread could serve. Reads run on them; writes are handed to the writer, whose thread
// sends their replies.

#include "transport/sp_server.h"

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
#include "transport/sp_connection.h"
#include "transport/sp_connections.h"

enum {
    SOCKET_MODE = 0600,
    LISTEN_BACKLOG = 1024,
    DESCRIPTORS_WAIT_MS = 10,
    NUMBER_LISTENER = 0, // of the events of our own
    NUMBER_STOP = 1,
};

struct SpServer {
    char path[SOCKET_PATH_BYTES_MAX + 1];
    int listener, stop; // -1: not open
    dev_t device;       // of the socket's file, once it is there
    ino_t inode;
    bool is_bound;
    Connections *connections; // owned
    pthread_t threads[TASK_THREADS_MAX];
    size_t thread_count;
    atomic_bool is_stopping;
    size_t lingering_max; // threads that stay with a connection …
    atomic_size_t lingering_count;
    atomic_int spare; // a descriptor, to turn somebody away with when there is none left
};

static Error listen_at(SpServer *server, const char *path, ErrorDetail *detail);
static Error threads_start(SpServer *server, ErrorDetail *detail);
static void *serve(void *context);

Error sp_server_start(const SpServerOptions *options, ErrorDetail *detail, SpServer **out)
{
    SpServer *server = calloc(1, sizeof(SpServer));
    if (!server) return ERROR_OUT_OF_MEMORY;
    server->listener = server->stop = -1;
    atomic_init(&server->spare, -1);
    ConnectionsOptions connections_options = {options->engine, options->clients_max};
    Error error = connections_open(&connections_options, detail, &server->connections);
    if (!error) error = listen_at(server, options->path, detail);
    if (!error) error = threads_start(server, detail);
    if (error) {
        sp_server_close(server);
        sp_server_free(server);
        return error;
    }
    *out = server;
    return ERROR_NONE;
}

static Error fail(ErrorDetail *detail, const char *what)
{
    return error_say(detail, errno == EADDRINUSE ? ERROR_UNAVAILABLE : ERROR_IO, "%s: %s", what,
                     strerror(errno));
}

static bool watch(SpServer *server, int file, uint64_t number, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.u64 = number};
    return epoll_ctl(connections_poller(server->connections), EPOLL_CTL_ADD, file, &event) == 0;
}

// Nobody can connect before the mode is set: that is when it begins to listen.
static Error listen_at(SpServer *server, const char *path, ErrorDetail *detail)
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
    server->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct stat found;
    if (server->listener < 0 ||
        bind(server->listener, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        stat(path, &found) != 0) {
        return fail(detail, path);
    }
    server->device = found.st_dev;
    server->inode = found.st_ino;
    server->is_bound = true;
    if (chmod(path, SOCKET_MODE) != 0 || listen(server->listener, LISTEN_BACKLOG) != 0 ||
        !watch(server, server->listener, NUMBER_LISTENER, EPOLLIN)) {
        return fail(detail, path);
    }
    return ERROR_NONE;
}

static Error threads_start(SpServer *server, ErrorDetail *detail)
{
    long wanted = sysconf(_SC_NPROCESSORS_ONLN);
    server->lingering_max = wanted > 1 ? (size_t)wanted / 2 : 0; // the clients need processors too
    if (wanted < TASK_THREADS_MIN) wanted = TASK_THREADS_MIN;
    if (wanted > TASK_THREADS_MAX) wanted = TASK_THREADS_MAX;
    atomic_store(&server->spare, fcntl(server->listener, F_DUPFD_CLOEXEC, 0));
    server->stop = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (atomic_load(&server->spare) < 0 || server->stop < 0 ||
        !watch(server, server->stop, NUMBER_STOP, EPOLLIN)) {
        return fail(detail, "cannot watch connections");
    }
    while (server->thread_count < (size_t)wanted) {
        Error error = thread_start(&server->threads[server->thread_count], serve, server,
                                   "serve connections", detail);
        if (error) return error;
        server->thread_count++;
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

// There is no descriptor left: the spare one is given for whoever waits, who is told by the end of
// the connection, and is then taken again. If others were faster it is waited for descriptors.
static void turn_away(SpServer *server)
{
    static LogLimit limit;
    uint64_t left_out;
    int spare = atomic_exchange(&server->spare, -1);
    if (spare >= 0) close(spare);
    int file = accept4(server->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (file >= 0) close(file);
    spare = fcntl(server->listener, F_DUPFD_CLOEXEC, 0);
    if (spare >= 0) spare = atomic_exchange(&server->spare, spare);
    if (spare >= 0) close(spare);
    if (file < 0) (void)poll(NULL, 0, DESCRIPTORS_WAIT_MS);
    if (!log_limit_take(&limit, clock_monotonic_ns(), &left_out)) return;
    log_write(LOG_WARNING, "connection refused: no descriptor is left; raise RLIMIT_NOFILE",
              "left_out=%llu", (unsigned long long)left_out);
}

static void accept_some(SpServer *server)
{
    int file = accept4(server->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (file >= 0) {
        connections_add(server->connections, file, is_welcome(file));
    } else if (errno == EMFILE || errno == ENFILE) {
        turn_away(server);
    }
}

// Stays with a connection that was just answered for as long as it asks on. It keeps no other's
// event waiting: true if `*out_event` has come meanwhile.
static bool linger(SpServer *server, uint64_t number, uint8_t *inbox, struct epoll_event *out_event)
{
    int poller = connections_poller(server->connections);
    bool has_event = false;
    size_t count = atomic_fetch_add(&server->lingering_count, 1);
    if (count < server->lingering_max && connections_keep(server->connections, number)) {
        while (!has_event && connections_look(server->connections, number, inbox)) {
            has_event = epoll_wait(poller, out_event, 1, 0) == 1;
        }
        connections_let_go(server->connections, number);
    }
    atomic_fetch_sub(&server->lingering_count, 1);
    return has_event;
}

static void *serve(void *context)
{
    SpServer *server = context;
    int poller = connections_poller(server->connections);
    uint8_t inbox[RECEIVE_BYTES];
    struct epoll_event event;
    bool has_event = false;
    while (!atomic_load(&server->is_stopping)) {
        if (!has_event && epoll_wait(poller, &event, 1, -1) != 1) continue;
        uint64_t number = event.data.u64;
        has_event = false;
        switch (number) {
        case NUMBER_STOP: break;
        case NUMBER_LISTENER: accept_some(server); break;
        default:
            connections_ready(server->connections, number, event.events, inbox);
            has_event = linger(server, number, inbox, &event);
        }
    }
    return NULL;
}

void sp_server_stop_intake(SpServer *server)
{
    connections_refuse(server->connections);
}

bool sp_server_drain(SpServer *server, int64_t until_ns)
{
    return connections_drain(server->connections, until_ns);
}

// The path is left to whoever has made another socket there meanwhile.
static void unlink_socket(SpServer *server)
{
    struct stat found;
    if (!server->is_bound || stat(server->path, &found) != 0) return;
    if (found.st_dev == server->device && found.st_ino == server->inode) unlink(server->path);
    server->is_bound = false;
}

void sp_server_close(SpServer *server)
{
    atomic_store(&server->is_stopping, true);
    uint64_t one = 1;
    if (server->stop >= 0) (void)!write(server->stop, &one, sizeof(one));
    for (size_t i = 0; i < server->thread_count; i++)
        pthread_join(server->threads[i], NULL);
    server->thread_count = 0;
    unlink_socket(server);
    if (server->listener >= 0) close(server->listener);
    if (atomic_load(&server->spare) >= 0) close(atomic_exchange(&server->spare, -1));
    if (server->stop >= 0) close(server->stop);
    server->listener = server->stop = -1;
    if (server->connections) connections_close(server->connections);
}

void sp_server_free(SpServer *server)
{
    if (!server) return;
    connections_free(server->connections);
    free(server);
}

size_t sp_server_clients(SpServer *server)
{
    return connections_count(server->connections);
}

uint64_t sp_server_requests(SpServer *server)
{
    return connections_request_count(server->connections);
}

void sp_server_trim(SpServer *server)
{
    connections_trim(server->connections);
}
