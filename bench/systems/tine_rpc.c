// tine by RPC: tined in a process of its own, libtine on its Unix socket.

#include <stdio.h>

#include "tine_store.h"

static void *rpc_connect(const Place *place)
{
    char url[SOCKET_BYTES_MAX + 8];
    snprintf(url, sizeof(url), "ipc://%s", place->server.socket);
    return tine_store_connect(url);
}

SYSTEM(tine_rpc) = {
    .name = "tine",
    .about = "tined and libtine over a Unix socket",
    .order = 10,
    .durability = DURABILITY_POWER,
    .start = tine_store_start,
    .stop = tine_store_stop,
    .connect = rpc_connect,
    TINE_STORE_CALLS,
};
