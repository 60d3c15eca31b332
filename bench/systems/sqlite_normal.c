// SQLite as the reference has it, with synchronous=NORMAL.

#include "sqlite_json.h"

static void *connect_normal(const Place *place)
{
    return sqlite_json_connect(place, /* is_full= */ false);
}

SYSTEM(sqlite_normal) = {
    .name = "sqlite-normal",
    .about = "SQLite in the caller's process, WAL, synchronous=NORMAL, the reference's schema",
    .order = 30,
    .durability = DURABILITY_PROCESS,
    .connect = connect_normal,
    SQLITE_JSON_CALLS,
};
