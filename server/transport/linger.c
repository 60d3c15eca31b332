// Lingering. NNG's statistics count, for each connection, what was written to its end.

#include "transport/linger.h"

#include <nng/nng.h>
#include <poll.h>
#include <string.h>

#include "os/clock.h"

enum { LOOK_EVERY_MS = 2 };

static uint64_t value_of(nng_stat *pipe, const char *name)
{
    nng_stat *found = nng_stat_find(pipe, name);
    return found ? nng_stat_value(found) : 0;
}

static bool is_all_written(Clients *clients)
{
    nng_stat *root;
    if (nng_stats_get(&root) != 0) return true;
    bool is_all = true;
    nng_stat *stat = nng_stat_child(root);
    for (; is_all && stat; stat = nng_stat_next(stat)) {
        if (strcmp(nng_stat_name(stat), "pipe") != 0) continue;
        uint64_t taken = clients_taken(clients, (uint32_t)value_of(stat, "id"));
        is_all = value_of(stat, "tx_msgs") >= taken;
    }
    nng_stats_free(root);
    return is_all;
}

bool linger(Clients *clients, int64_t until_ns)
{
    while (!is_all_written(clients)) {
        if (clock_monotonic_ns() >= until_ns) return false;
        (void)poll(NULL, 0, LOOK_EVERY_MS);
    }
    return true;
}
