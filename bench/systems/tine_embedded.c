// tine in the caller's process: embedded:PATH.

#include "tine_store.h"

static void *embedded_connect(const Place *place)
{
    return tine_store_connect_embedded(place, "");
}

SYSTEM(tine_embedded) = {
    .name = "tine-embedded",
    .about = "libtine on a private store in the caller's process",
    .order = 12,
    .durability = DURABILITY_POWER,
    .is_private = true,
    .connect = embedded_connect,
    .disconnect = tine_store_disconnect,
    TINE_STORE_CALLS,
};
