// Echo on plain sockets.

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "echo.h"
#include "peers.h"

enum { RAW_HEAD_BYTES = 8, RAW_BYTES_MAX = 32 << 20 };

static int unix_socket(const char *path, struct sockaddr_un *out)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    require(strlen(path) < sizeof(out->sun_path), "%s is too long", path);
    memcpy(out->sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(fd >= 0, "no socket");
    return fd;
}

static bool receive_all(int fd, uint8_t *bytes, size_t size)
{
    while (size > 0) {
        ssize_t count = recv(fd, bytes, size, 0);
        if (count <= 0) return false;
        bytes += count;
        size -= (size_t)count;
    }
    return true;
}

static bool send_all(int fd, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        ssize_t count = send(fd, bytes, size, MSG_NOSIGNAL);
        if (count <= 0) return false;
        bytes += count;
        size -= (size_t)count;
    }
    return true;
}

// A message is read with one recv(2) as long as it comes whole.
static void serve_one(int fd, uint8_t *bytes)
{
    for (;;) {
        ssize_t count = recv(fd, bytes, RAW_BYTES_MAX, 0);
        if (count < RAW_HEAD_BYTES) return;
        uint32_t reply_bytes, request_bytes;
        memcpy(&reply_bytes, bytes, sizeof(reply_bytes));
        memcpy(&request_bytes, bytes + sizeof(reply_bytes), sizeof(request_bytes));
        size_t left = request_bytes - (size_t)count;
        if (request_bytes > RAW_BYTES_MAX || reply_bytes > RAW_BYTES_MAX) return;
        if ((size_t)count < request_bytes && !receive_all(fd, bytes + count, left)) return;
        if (!send_all(fd, bytes, reply_bytes)) return;
    }
}

void serve_raw_echo(const char *path)
{
    struct sockaddr_un address;
    int listener = unix_socket(path, &address);
    uint8_t *bytes = malloc(RAW_BYTES_MAX);
    require(bytes != NULL, "out of memory");
    memset(bytes, 'r', RAW_BYTES_MAX); // pages that nobody wrote are all the same one, in the cache
    require(bind(listener, (const struct sockaddr *)&address, sizeof(address)) == 0, "bind");
    require(listen(listener, 8) == 0, "listen");
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) continue;
        serve_one(fd, bytes);
        close(fd);
    }
}

void raw_echo_open(RawEcho *echo, const char *path, size_t reply_bytes_max)
{
    struct sockaddr_un address;
    echo->fd = unix_socket(path, &address);
    echo->reply_bytes_max = reply_bytes_max;
    echo->reply = malloc(reply_bytes_max);
    require(echo->reply != NULL, "out of memory");
    require(connect(echo->fd, (const struct sockaddr *)&address, sizeof(address)) == 0,
            "cannot connect to %s", path);
}

void echo_request(uint8_t *out, size_t request_bytes, size_t reply_bytes)
{
    uint32_t sizes[2] = {(uint32_t)reply_bytes, (uint32_t)request_bytes};
    memset(out, 'q', request_bytes);
    memcpy(out, sizes, sizeof(sizes));
}

void raw_echo_call(RawEcho *echo, size_t request_bytes, size_t reply_bytes)
{
    uint8_t request[4096];
    require(request_bytes <= sizeof(request) && request_bytes >= RAW_HEAD_BYTES &&
                reply_bytes <= echo->reply_bytes_max,
            "an echo of these sizes is not possible");
    echo_request(request, request_bytes, reply_bytes);
    require(send_all(echo->fd, request, request_bytes) &&
                receive_all(echo->fd, echo->reply, reply_bytes),
            "the raw echo hung up");
}

void raw_echo_close(RawEcho *echo)
{
    close(echo->fd);
    free(echo->reply);
}
