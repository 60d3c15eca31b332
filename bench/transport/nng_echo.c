// Echo by libnng.

#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <stdio.h>
#include <stdlib.h>

#include "echo.h"
#include "peers.h"

enum { NNG_ECHO_BYTES_MAX = 32 << 20 };

struct NngEcho {
    nng_socket socket;
};

static void require_nng(int failed, const char *what)
{
    require(failed == 0, "%s: %s", what, nng_strerror(failed));
}

static void url_of(const char *path, char *out, size_t out_bytes_max)
{
    snprintf(out, out_bytes_max, "ipc://%s", path);
}

void serve_nng_echo(const char *path)
{
    char url[SOCKET_BYTES_MAX + 8];
    url_of(path, url, sizeof(url));
    uint8_t *bytes = malloc(NNG_ECHO_BYTES_MAX);
    require(bytes != NULL, "out of memory");
    memset(bytes, 'r', NNG_ECHO_BYTES_MAX);
    nng_socket socket;
    require_nng(nng_rep0_open(&socket), "nng_rep0_open");
    require_nng(nng_listen(socket, url, NULL, 0), url);
    for (;;) {
        nng_msg *request, *reply;
        uint32_t reply_bytes;
        if (nng_recvmsg(socket, &request, 0) != 0) continue;
        require(nng_msg_len(request) >= sizeof(reply_bytes), "a request that says no size");
        memcpy(&reply_bytes, nng_msg_body(request), sizeof(reply_bytes));
        require(reply_bytes <= NNG_ECHO_BYTES_MAX, "a reply of that size is not possible");
        nng_msg_free(request);
        require_nng(nng_msg_alloc(&reply, 0), "nng_msg_alloc");
        require_nng(nng_msg_append(reply, bytes, reply_bytes), "nng_msg_append");
        if (nng_sendmsg(socket, reply, 0) != 0) nng_msg_free(reply);
    }
}

NngEcho *nng_echo_open(const char *path)
{
    char url[SOCKET_BYTES_MAX + 8];
    url_of(path, url, sizeof(url));
    NngEcho *echo = calloc(1, sizeof(NngEcho));
    require(echo != NULL, "out of memory");
    require_nng(nng_req0_open(&echo->socket), "nng_req0_open");
    require_nng(nng_dial(echo->socket, url, NULL, 0), url);
    return echo;
}

void nng_echo_call(NngEcho *echo, size_t request_bytes, size_t reply_bytes)
{
    nng_msg *request, *reply;
    require_nng(nng_msg_alloc(&request, request_bytes), "nng_msg_alloc");
    echo_request(nng_msg_body(request), request_bytes, reply_bytes);
    require_nng(nng_sendmsg(echo->socket, request, 0), "nng_sendmsg");
    require_nng(nng_recvmsg(echo->socket, &reply, 0), "nng_recvmsg");
    require(nng_msg_len(reply) == reply_bytes, "an echo of another size");
    nng_msg_free(reply);
}

void nng_echo_close(NngEcho *echo)
{
    nng_close(echo->socket);
    free(echo);
}
