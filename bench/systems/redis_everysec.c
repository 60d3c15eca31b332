// Redis with its append-only file, appendfsync everysec.

#include "redis_store.h"

static void start_everysec(Place *place)
{
    redis_store_start(place, "everysec");
}

SYSTEM(redis_everysec) = {
    .name = "redis",
    .about = "Redis streams over a Unix socket by hiredis, appendonly, appendfsync everysec",
    .order = 40,
    .durability = DURABILITY_PROCESS,
    .start = start_everysec,
    REDIS_CALLS,
};
