// Ways.

#include "ways.h"

#include "os/clock.h"

size_t ways_add(Ways *ways, const char *name, void (*call)(void *context), void *context)
{
    require(ways->count < WAYS_MAX, "too many ways");
    ways->ways[ways->count] = (Way){.name = name, .call = call, .context = context};
    return ways->count++;
}

static void take_turn(Way *way, size_t calls, bool counts)
{
    for (size_t i = 0; i < calls; i++) {
        int64_t t0 = clock_monotonic_ns();
        way->call(way->context);
        if (counts) samples_add(&way->samples, clock_monotonic_ns() - t0);
    }
}

void ways_run(Ways *ways, size_t rounds, size_t calls)
{
    for (size_t round = 0; round <= rounds; round++) {
        for (size_t i = 0; i < ways->count; i++)
            take_turn(&ways->ways[i], calls, /* counts= */ round > 0);
    }
    for (size_t i = 0; i < ways->count; i++) {
        Way *way = &ways->ways[i];
        way->median_us = samples_median_us(&way->samples);
        way->p99_us = samples_quantile_us(&way->samples, 0.99);
    }
}

void ways_report(const Ways *ways)
{
    for (size_t i = 0; i < ways->count; i++) {
        report_note("%-44s %8.1f us, p99 %8.1f us", ways->ways[i].name, ways->ways[i].median_us,
                    ways->ways[i].p99_us);
    }
}

void ways_free(Ways *ways)
{
    for (size_t i = 0; i < ways->count; i++)
        samples_free(&ways->ways[i].samples);
}
