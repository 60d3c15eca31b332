// tine by RPC: tined in a process of its own, libtine on its Unix socket.

#include "tine_store.h"

static void *rpc_connect(const Place *place)
{
    return tine_store_connect_ipc(place, 0);
}

SYSTEM(tine_rpc) = {
    .name = "tine",
    .about = "tined and libtine over a Unix socket",
    .order = 10,
    .durability = DURABILITY_POWER,
    .start = tine_store_start,
    .stop = tine_store_stop,
    .connect = rpc_connect,
    .disconnect = tine_store_disconnect,
    TINE_STORE_CALLS,
};
