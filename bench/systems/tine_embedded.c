// tine in the caller's process: embedded:PATH.

#include <stdio.h>

#include "tine_store.h"

static void *embedded_connect(const Place *place)
{
    char url[PLACE_BYTES_MAX + 16];
    snprintf(url, sizeof(url), "embedded:%s", place->directory);
    return tine_store_connect(url, 0);
}

SYSTEM(tine_embedded) = {
    .name = "tine-embedded",
    .about = "libtine on a private store in the caller's process",
    .order = 12,
    .durability = DURABILITY_POWER,
    .is_private = true,
    .connect = embedded_connect,
    TINE_STORE_CALLS,
};
