// tine's direct reads without a copy: each message is lent as it lies in the store.

#include "tine.h"
#include "tine_store.h"

static void *lent_connect(const Place *place)
{
    return tine_store_connect_ipc(place, TINE_DIRECT_READS);
}

static void lent_disconnect(void *client)
{
    tine_store_require_direct(client);
    tine_store_disconnect(client);
}

SYSTEM(tine_lent) = {
    .name = "tine-lent",
    .about = "tine_read_messages with TINE_DIRECT_READS: lends messages instead of copying them",
    .order = 15,
    .durability = DURABILITY_NONE, // it only reads
    .start = tine_store_start,
    .stop = tine_store_stop,
    .connect = lent_connect,
    .disconnect = lent_disconnect,
    .fill_open = tine_store_fill_open,
    .fill_close = tine_store_fill_close,
    .create_session = tine_create_session_of,
    .fork_session = tine_fork_of,
    .append = tine_append_of,
    .history_bytes = tine_history_lent_of,
};
