// A plain Unix socket: what no RPC over one can be faster than.

#include <stdlib.h>

#include "echo.h"
#include "echo_sizes.h"

enum { REPLY_BYTES_MAX = 32 << 20 };

static void raw_start(Place *place)
{
    peer_start(&place->server, "raw", "");
}

static void raw_stop(Place *place)
{
    peer_stop(&place->server);
}

static void *raw_connect(const Place *place)
{
    RawEcho *echo = calloc(1, sizeof(RawEcho));
    require(echo != NULL, "out of memory");
    raw_echo_open(echo, place->server.socket, REPLY_BYTES_MAX);
    return echo;
}

static void raw_disconnect(void *client)
{
    raw_echo_close(client);
    free(client);
}

static void raw_call(void *client, EchoSizes sizes)
{
    raw_echo_call(client, sizes.request_bytes, sizes.reply_bytes);
}

static void raw_get_session(void *client, const Id *session)
{
    (void)session;
    raw_call(client, echo_of_get());
}

static void raw_history_bytes(void *client, const Id *session, Tally *out)
{
    raw_call(client, echo_of_history(session, out));
}

static size_t raw_list(void *client, size_t limit, const char *query)
{
    (void)query;
    raw_call(client, echo_of_list(limit));
    return limit;
}

SYSTEM(raw_echo) = {
    .name = "socket-echo",
    .about = "an echo on a plain Unix socket whose replies have the size of tine's",
    .order = 21,
    .is_limit = true,
    .is_one_client = true,
    .start = raw_start,
    .stop = raw_stop,
    .connect = raw_connect,
    .disconnect = raw_disconnect,
    .fill_open = echo_fill_open,
    .fill_close = echo_fill_close,
    .create_session = echo_create,
    .fork_session = echo_fork,
    .append = echo_count,
    .get_session = raw_get_session,
    .history_bytes = raw_history_bytes,
    .list = raw_list,
};
