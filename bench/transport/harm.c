// Peers that mean harm, or do it. Each goes on until it is killed.

#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "calls.h"
#include "os/clock.h"
#include "sp_dial.h"
#include "sp_frame.h"

enum { HARM_SECONDS_MAX = 120, PIPELINE_DEPTH = 64, NON_READERS = 50 };

static int plain_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

// Connects and hangs up: at once, after its hello, after the server's.
static void storm(const char *path)
{
    for (size_t i = 0;; i++) {
        int fd = plain_connect(path);
        if (fd < 0) continue;
        uint8_t hello[SP_HELLO_BYTES];
        sp_hello_write(SP_PROTOCOL_REQ, hello);
        if (i % 3 == 1) (void)send(fd, hello, sizeof(hello), MSG_NOSIGNAL);
        if (i % 3 == 2) (void)recv(fd, hello, sizeof(hello), 0);
        close(fd);
    }
}

// Says what is no hello, and waits to be hung up on.
static void bad_hellos(const char *path)
{
    for (;;) {
        int fd = plain_connect(path);
        if (fd < 0) continue;
        uint8_t bytes[64];
        (void)send(fd, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
        while (recv(fd, bytes, sizeof(bytes), 0) > 0)
            continue;
        close(fd);
    }
}

static int pipeline_open(const char *path, const Buffer *request)
{
    char why[SP_WHY_BYTES];
    int fd = sp_dial(path, clock_monotonic_ns() + 1000000000, why);
    for (uint32_t i = 0; fd >= 0 && i < PIPELINE_DEPTH; i++) {
        SpFrame frame;
        sp_frame_begin(&frame, SP_ID_LAST | i, buffer_slice(request));
        if (sp_frame_send(&frame, fd) != SP_DONE) break;
    }
    return fd;
}

// Sends 64 requests and dies, its replies unread.
static void dying_pipelines(const char *path, const Buffer *small, const Buffer *large)
{
    for (size_t i = 0;; i++) {
        int fd = pipeline_open(path, i % 8 == 0 ? large : small);
        if (fd < 0) continue;
        struct pollfd wanted = {.fd = fd, .events = POLLIN};
        if (i % 2 == 1) (void)poll(&wanted, 1, 1000); // until the first reply is there
        close(fd);
    }
}

// Many that ask and never read; who is thrown out comes again.
static void non_readers(const char *path, const Buffer *large)
{
    struct pollfd wanted[NON_READERS];
    for (size_t i = 0; i < NON_READERS; i++)
        wanted[i] = (struct pollfd){.fd = pipeline_open(path, large), .events = 0};
    for (;;) {
        (void)poll(wanted, NON_READERS, 100);
        for (size_t i = 0; i < NON_READERS; i++) {
            if (wanted[i].fd >= 0 && !wanted[i].revents) continue;
            if (wanted[i].fd >= 0) close(wanted[i].fd);
            wanted[i].fd = pipeline_open(path, large);
        }
    }
}

void serve_harm(const char *kind, const char *path, const char *session)
{
    alarm(HARM_SECONDS_MAX);
    GetSessionRequest get = GET_SESSION_REQUEST__INIT;
    get.session_id = (char *)(uintptr_t)session;
    Buffer small = request_make(METHOD_GET_SESSION, &get.base);
    MessagesForSessionRequest history = MESSAGES_FOR_SESSION_REQUEST__INIT;
    history.session_id = (char *)(uintptr_t)session;
    Buffer large = request_make(METHOD_MESSAGES_FOR_SESSION, &history.base);
    if (strcmp(kind, "storm") == 0) storm(path);
    if (strcmp(kind, "bad-hellos") == 0) bad_hellos(path);
    if (strcmp(kind, "dying-pipelines") == 0) dying_pipelines(path, &small, &large);
    if (strcmp(kind, "non-readers") == 0) non_readers(path, &large);
    require(false, "'%s' is nothing to serve", kind);
}
