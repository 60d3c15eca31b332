// SQLite as the reference has it, with synchronous=FULL.

#include "sqlite_json.h"

static void *connect_full(const Place *place)
{
    return sqlite_json_connect(place, /* is_full= */ true);
}

SYSTEM(sqlite_full) = {
    .name = "sqlite-full",
    .about = "SQLite in the caller's process, WAL, synchronous=FULL, the reference's schema",
    .order = 31,
    .durability = DURABILITY_POWER,
    .reads_as = "sqlite-normal",
    .connect = connect_full,
    SQLITE_JSON_CALLS,
};
