// Cold start: what a short program pays for one call. Connect, one GetSession, close.

#include "run.h"

static void fill(Lane *lane)
{
    lane->system->create_session(lane->client, &(SessionSpec){.slug = "cold"}, &lane->ids[0]);
    for (size_t i = 0; i < lane->the_case->number; i++)
        lane_append(lane, &lane->ids[0], i, 1024, NULL);
}

static bool can_get(const System *system)
{
    return system->get_session != NULL;
}

static void connect_and_get(Lane *lane)
{
    void *client = lane->system->connect(&lane->place);
    lane->system->get_session(client, &lane->ids[0]);
    lane->system->disconnect(client);
}

static void run_cold(Run *run)
{
    compare(run, &(Case){.parameters = {{"messages", 100}},
                         .can = can_get,
                         .fill = fill,
                         .call = connect_and_get,
                         .has_no_client = true,
                         .is_reading = true,
                         .number = 100});
}

WORKLOAD(cold_start) = {
    .name = "cold-start",
    .about = "connect, one read of a session, close",
    .order = 12,
    .run = run_cold,
};
