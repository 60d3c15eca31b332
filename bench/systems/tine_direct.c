// tine's direct reads: the same daemon, its store mapped into the caller's process.

#include "tine.h"
#include "tine_store.h"

static void *direct_connect(const Place *place)
{
    return tine_store_connect_ipc(place, TINE_DIRECT_READS);
}

// Figures of reads that went to the server after all would be of another system.
static void direct_disconnect(void *client)
{
    tine_store_require_direct(client);
    tine_store_disconnect(client);
}

SYSTEM(tine_direct) = {
    .name = "tine-direct",
    .about = "tined and libtine with TINE_DIRECT_READS: reads in the caller's process",
    .order = 11,
    .durability = DURABILITY_POWER,
    .start = tine_store_start,
    .stop = tine_store_stop,
    .connect = direct_connect,
    .disconnect = direct_disconnect,
    TINE_STORE_CALLS,
};
