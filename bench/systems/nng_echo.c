// libnng on both ends: what tine would cost if it did nothing.

#include <stdlib.h>

#include "echo.h"
#include "echo_sizes.h"

static void nng_start(Place *place)
{
    peer_start(&place->server, "nng", "");
}

static void nng_stop(Place *place)
{
    peer_stop(&place->server);
}

static void *nng_connect(const Place *place)
{
    return nng_echo_open(place->server.socket);
}

static void nng_disconnect(void *client)
{
    nng_echo_close(client);
}

static void nng_call(void *client, EchoSizes sizes)
{
    nng_echo_call(client, sizes.request_bytes, sizes.reply_bytes);
}

static void nng_get_session(void *client, const Id *session)
{
    (void)session;
    nng_call(client, echo_of_get());
}

static void nng_history_bytes(void *client, const Id *session, Tally *out)
{
    nng_call(client, echo_of_history(session, out));
}

static size_t nng_list(void *client, size_t limit, const char *query)
{
    (void)query;
    nng_call(client, echo_of_list(limit));
    return limit;
}

SYSTEM(nng_echo) = {
    .name = "nng-echo",
    .about = "libnng REQ and REP, replies of the size of tine's",
    .order = 22,
    .is_limit = true,
    .is_one_client = true,
    .start = nng_start,
    .stop = nng_stop,
    .connect = nng_connect,
    .disconnect = nng_disconnect,
    .fill_open = echo_fill_open,
    .fill_close = echo_fill_close,
    .create_session = echo_create,
    .fork_session = echo_fork,
    .append = echo_count,
    .get_session = nng_get_session,
    .history_bytes = nng_history_bytes,
    .list = nng_list,
};
