// Listing the newest sessions, alone, with a query that every second one matches, and while another
// process appends.

#include <stdio.h>

#include "run.h"

enum { LIMIT = 50 };

static void fill(Lane *lane)
{
    const Case *what = lane->the_case;
    size_t messages = (size_t)what->parameters[1].value;
    for (size_t i = 0; i < what->number; i++) {
        char slug[64];
        Id *session = &lane->ids[i % LANE_IDS_MAX];
        snprintf(slug, sizeof(slug), "%s-%zu", i % 2 ? "needle" : "session", i);
        lane->system->create_session(lane->client, &(SessionSpec){.slug = slug}, session);
        for (size_t j = 0; j < messages; j++)
            lane_append(lane, session, j, what->text_bytes, NULL);
    }
}

static bool can_list(const System *system)
{
    return system->list && system->append;
}

static bool can_list_and_append(const System *system)
{
    return system->list && can_append(system);
}

static void list(Lane *lane)
{
    size_t count = lane->system->list(lane->client, LIMIT, lane->the_case->query);
    require(count == LIMIT, "%s listed %zu sessions", lane->system->name, count);
}

static void append(Lane *lane)
{
    lane_append(lane, &lane->ids[0], lane->messages, lane->the_case->text_bytes, NULL);
}

static void compare_at(Run *run, Case what, size_t sessions, size_t messages)
{
    what.fill = fill;
    what.call = list;
    what.number = what.sessions = sessions;
    what.text_bytes = 1024;
    what.is_slow = true;
    what.parameters[0] = (Parameter){"sessions", (double)sessions};
    what.parameters[1] = (Parameter){"messages", (double)messages};
    if (!what.beside) what.parameters[2] = (Parameter){"query", what.query ? 1 : 0};
    compare(run, &what);
}

static void run_list(Run *run)
{
    const char *const queries[] = {NULL, "needle"};
    for (size_t i = 0; i < 2; i++) {
        const Case what = {.can = can_list, .query = queries[i], .is_reading = true};
        compare_at(run, what, 200, run->options.is_quick ? 20 : 200);
        if (run->options.is_quick) continue;
        compare_at(run, what, 10000, 2);
        compare_at(run, what, 100000, 1);
    }
}

static void run_list_while_appending(Run *run)
{
    const Case what = {.can = can_list_and_append, .beside = append};
    compare_at(run, what, 200, run->options.is_quick ? 20 : 200);
}

WORKLOAD(list) = {
    .name = "list",
    .about = "the newest 50 sessions with their previews and totals, with and without a query",
    .order = 30,
    .run = run_list,
};

WORKLOAD(list_while_appending) = {
    .name = "list-while-appending",
    .about = "the same while another process appends without a pause (beside=1: its appends)",
    .order = 31,
    .run = run_list_while_appending,
};
