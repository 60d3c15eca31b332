// Latency under load: calls that are due at a fixed rate, whether or not the ones before are over.
// Of ten, eight read the session, one reads a message, one appends.

#include "run.h"

enum { THREADS = 4, FILLED = 100, TEXT_BYTES = 1024 };

static void fill(Lane *lane)
{
    for (size_t i = 0; i < THREADS; i++)
        lane->system->create_session(lane->client, &(SessionSpec){.slug = "load"}, &lane->ids[i]);
    for (size_t i = 0; i < FILLED; i++)
        lane_append(lane, &lane->ids[i % THREADS], i, TEXT_BYTES, &lane->ids[THREADS]);
}

static bool can_mix(const System *system)
{
    return can_append(system) && system->get_session && system->get_message;
}

static void mix(Lane *lane)
{
    size_t number = lane->calls++ % 10;
    const Id *session = &lane->ids[lane->index];
    if (number == 0) {
        lane_append(lane, session, 1, TEXT_BYTES, NULL);
    } else if (number == 5) {
        lane->system->get_message(lane->client, &lane->ids[THREADS]);
    } else {
        lane->system->get_session(lane->client, session);
    }
}

static void run_load(Run *run)
{
    static const size_t rates[] = {500, 2000, 5000, 10000};
    for (size_t i = 0; i < 4; i++) {
        if (run->options.is_quick && rates[i] != 2000) continue;
        compare(run, &(Case){.parameters = {{"rate", (double)rates[i]}},
                             .can = can_mix,
                             .fill = fill,
                             .call = mix,
                             .threads = THREADS,
                             .rate = (double)rates[i]});
    }
}

WORKLOAD(load) = {
    .name = "load",
    .about = "a mix of reads and appends due at a fixed rate; a latency is from when it was due",
    .order = 50,
    .run = run_load,
};
