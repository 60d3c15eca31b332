// tine in relaxed durability: a commit is acknowledged at once and on the disk a little later.

#include "tine_store.h"

static void relaxed_start(Place *place)
{
    const char *arguments[] = {"--durability", "relaxed", NULL};
    tined_start_with(&place->server, NULL, place->directory, arguments);
}

static void *relaxed_connect(const Place *place)
{
    return tine_store_connect_ipc(place, 0);
}

SYSTEM(tine_relaxed) = {
    .name = "tine-relaxed",
    .about = "tined --durability relaxed, libtine over a Unix socket",
    .order = 13,
    .durability = DURABILITY_PROCESS,
    .reads_as = "tine",
    .start = relaxed_start,
    .stop = tine_store_stop,
    .connect = relaxed_connect,
    .disconnect = tine_store_disconnect,
    TINE_STORE_CALLS,
};
