// Connecting to a socket of tined's.

#include "sp_dial.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "wait.h"
#include "wire/sp.h"

enum { POLL_MS_MAX = 60 * 1000 };

static bool connect_until(int fd, const char *path, int64_t deadline_ns);
static bool connect_to(int fd, const char *path);
static bool swap_hellos(int fd, int64_t deadline_ns, char why[SP_WHY_BYTES]);

int sp_dial(const char *path, int64_t deadline_ns, char why[SP_WHY_BYTES])
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        int error = errno;
        snprintf(why, SP_WHY_BYTES, "no socket: %s", strerror(error));
        return -error;
    }
    int error = EPROTO;
    bool is_connected = connect_until(fd, path, deadline_ns);
    if (!is_connected) {
        error = errno;
        snprintf(why, SP_WHY_BYTES, "%s", error == EAGAIN ? "nobody accepts" : strerror(error));
    }
    if (is_connected && swap_hellos(fd, deadline_ns, why)) return fd;
    close(fd);
    return -error;
}

// connect(2) waits while the backlog of the Unix socket is full; SO_SNDTIMEO bounds that.
static bool connect_until(int fd, const char *path, int64_t deadline_ns)
{
    int ms = poll_ms_until(deadline_ns, POLL_MS_MAX);
    struct timeval limit = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 + 1};
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) != 0) return false;
    return connect_to(fd, path);
}

static bool connect_to(int fd, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(address.sun_path, path, strlen(path));
    int code;
    do {
        code = connect(fd, (const struct sockaddr *)&address, sizeof(address));
    } while (code != 0 && errno == EINTR);
    return code == 0;
}

static bool swap_hellos(int fd, int64_t deadline_ns, char why[SP_WHY_BYTES])
{
    uint8_t hello[SP_HELLO_BYTES];
    size_t got = 0;
    sp_hello_write(SP_PROTOCOL_REQ, hello);
    ssize_t count = send(fd, hello, SP_HELLO_BYTES, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (count > 0 && got < SP_HELLO_BYTES) {
        struct pollfd wanted = {.fd = fd, .events = POLLIN};
        int ready = poll(&wanted, 1, poll_ms_until(deadline_ns, POLL_MS_MAX));
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) {
            snprintf(why, SP_WHY_BYTES, "it accepted, but did not say hello");
            return false;
        }
        count = recv(fd, hello + got, SP_HELLO_BYTES - got, MSG_DONTWAIT);
        if (count < 0 && (errno == EINTR || errno == EAGAIN))
            count = 1; // try again
        else if (count > 0)
            got += (size_t)count;
    }
    if (count <= 0) {
        snprintf(why, SP_WHY_BYTES, "it hung up before it said hello");
        return false;
    }
    if (!sp_hello_is(hello, SP_PROTOCOL_REP)) {
        snprintf(why, SP_WHY_BYTES, "what listens there is no REP socket");
        return false;
    }
    return true;
}

int sp_subscribe(const char *path)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    uint8_t hello[SP_HELLO_BYTES];
    sp_hello_write(SP_PROTOCOL_SUB, hello);
    if (connect_to(fd, path) && send(fd, hello, SP_HELLO_BYTES, MSG_NOSIGNAL) == SP_HELLO_BYTES) {
        return fd;
    }
    close(fd);
    return -1;
}
