// wire_proxy: stands between a client and tined on Unix sockets, and loses what it is told to lose.
//
//     wire_proxy --socket PATH --to PATH --mode MODE --count N
//
// Of all frames that pass, N are lost, then all pass:
//
//     drop-reply     a reply is swallowed, the connection lives
//     cut-reply      a reply is swallowed, and the connection ends
//     cut-request    a request is swallowed, and the connection ends
//
// It prints "ready" when it listens, and ends with SIGTERM, or when its standard input, if that is
// a pipe, ends. A thread for each direction of a connection.

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { HELLO_BYTES = 8, HEADER_BYTES = 9, FRAME_BYTES_MAX = 17 * 1024 * 1024 };

static const char *to_path, *mode;
static atomic_int left_to_lose;

// One direction. The two of a connection end each other by shutdown; the last one closes.
typedef struct Pipe {
    int from, to;
    bool is_reply;
    atomic_int *users; // of both descriptors, owned by the last
} Pipe;

static void fail(const char *what)
{
    fprintf(stderr, "wire_proxy: %s: %s\n", what, strerror(errno));
    exit(1);
}

static struct sockaddr_un address_of(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        fail(path);
    }
    memcpy(address.sun_path, path, strlen(path));
    return address;
}

static bool read_whole(int fd, uint8_t *bytes, size_t size)
{
    while (size > 0) {
        ssize_t got = recv(fd, bytes, size, 0);
        if (got <= 0) return false;
        bytes += got;
        size -= (size_t)got;
    }
    return true;
}

static bool write_whole(int fd, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        bytes += sent;
        size -= (size_t)sent;
    }
    return true;
}

static bool takes_one(void)
{
    int left = atomic_load(&left_to_lose);
    while (left > 0) {
        if (atomic_compare_exchange_weak(&left_to_lose, &left, left - 1)) return true;
    }
    return false;
}

// False: the connection is over.
static bool pass_frame(const Pipe *pipe)
{
    uint8_t header[HEADER_BYTES];
    if (!read_whole(pipe->from, header, HEADER_BYTES)) return false;
    uint64_t length = 0;
    for (int i = 1; i < HEADER_BYTES; i++)
        length = length << 8 | header[i];
    if (length > FRAME_BYTES_MAX) return false;
    uint8_t *payload = malloc(length + 1);
    if (!payload) return false;
    bool lives = read_whole(pipe->from, payload, length);
    bool is_it = strstr(mode, pipe->is_reply ? "reply" : "request") != NULL;
    if (lives && is_it && takes_one()) {
        lives = strncmp(mode, "drop", 4) == 0;
    } else if (lives) {
        lives =
            write_whole(pipe->to, header, HEADER_BYTES) && write_whole(pipe->to, payload, length);
    }
    free(payload);
    return lives;
}

static void *pass(void *argument)
{
    Pipe *pipe = argument;
    uint8_t hello[HELLO_BYTES];
    bool lives =
        read_whole(pipe->from, hello, HELLO_BYTES) && write_whole(pipe->to, hello, HELLO_BYTES);
    while (lives)
        lives = pass_frame(pipe);
    shutdown(pipe->from, SHUT_RDWR);
    shutdown(pipe->to, SHUT_RDWR);
    if (atomic_fetch_sub(pipe->users, 1) == 1) {
        close(pipe->from);
        close(pipe->to);
        free(pipe->users);
    }
    free(pipe);
    return NULL;
}

static void pass_on(int from, int to, bool is_reply, atomic_int *users)
{
    Pipe *pipe = malloc(sizeof(Pipe));
    pthread_t thread;
    if (!pipe) fail("memory");
    *pipe = (Pipe){.from = from, .to = to, .is_reply = is_reply, .users = users};
    if (pthread_create(&thread, NULL, pass, pipe) != 0) fail("pthread_create");
    pthread_detach(thread);
}

static void connect_through(int client)
{
    struct sockaddr_un address = address_of(to_path);
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server < 0) fail("socket");
    if (connect(server, (struct sockaddr *)&address, sizeof(address)) != 0) {
        close(server);
        close(client);
        return;
    }
    atomic_int *users = malloc(sizeof(atomic_int));
    if (!users) fail("memory");
    atomic_init(users, 2);
    pass_on(client, server, /* is_reply= */ false, users);
    pass_on(server, client, /* is_reply= */ true, users);
}

static int listen_at(const char *path)
{
    struct sockaddr_un address = address_of(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(fd, 64) != 0) {
        fail(path);
    }
    return fd;
}

int main(int argument_count, char **arguments)
{
    const char *path = NULL, *count = NULL;
    for (int i = 1; i + 1 < argument_count; i += 2) {
        if (strcmp(arguments[i], "--socket") == 0) path = arguments[i + 1];
        if (strcmp(arguments[i], "--to") == 0) to_path = arguments[i + 1];
        if (strcmp(arguments[i], "--mode") == 0) mode = arguments[i + 1];
        if (strcmp(arguments[i], "--count") == 0) count = arguments[i + 1];
    }
    if (!path || !to_path || !mode || !count) {
        fprintf(stderr, "usage: wire_proxy --socket PATH --to PATH --mode MODE --count N\n");
        return 2;
    }
    atomic_init(&left_to_lose, atoi(count));
    int listening = listen_at(path);
    puts("ready");
    fflush(stdout);
    struct stat about;
    bool is_pipe = fstat(STDIN_FILENO, &about) == 0 && !S_ISCHR(about.st_mode);
    struct pollfd wanted[] = {{.fd = listening, .events = POLLIN},
                              {.fd = is_pipe ? STDIN_FILENO : -1, .events = POLLIN}};
    while (poll(wanted, 2, -1) > 0 && !wanted[1].revents) {
        int client = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0) connect_through(client);
    }
    return 0;
}
