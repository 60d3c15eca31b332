// Redis with its append-only file, appendfsync always.

#include "redis_store.h"

static void start_always(Place *place)
{
    redis_store_start(place, "always");
}

SYSTEM(redis_always) = {
    .name = "redis-always",
    .about = "Redis streams over a Unix socket by hiredis, appendonly, appendfsync always",
    .order = 41,
    .durability = DURABILITY_POWER,
    .reads_as = "redis",
    .start = start_always,
    REDIS_CALLS,
};
