// tine in the caller's process, in relaxed durability.

#include "tine_store.h"

static void *embedded_relaxed_connect(const Place *place)
{
    return tine_store_connect_embedded(place, "?durability=relaxed");
}

SYSTEM(tine_embedded_relaxed) = {
    .name = "tine-embedded-relaxed",
    .about = "the same with durability=relaxed: on the disk within 100 ms",
    .order = 14,
    .durability = DURABILITY_PROCESS,
    .reads_as = "tine-embedded",
    .is_private = true,
    .connect = embedded_relaxed_connect,
    .disconnect = tine_store_disconnect,
    TINE_STORE_CALLS,
};
