// Appends: by one client and of several sizes, by many processes at once, and by subagents that all
// add to the totals of one parent.

#include "run.h"

enum { SUBAGENTS = 4, FILLED = 500 };

static void fill(Lane *lane)
{
    const Case *what = lane->the_case;
    size_t messages = what->number;
    for (size_t i = 0; i < LANE_IDS_MAX; i++)
        lane->system->create_session(lane->client, &(SessionSpec){.slug = "a"}, &lane->ids[i]);
    for (size_t i = 0; i < messages; i++)
        lane_append(lane, &lane->ids[i % LANE_IDS_MAX], i / LANE_IDS_MAX, what->text_bytes, NULL);
}

static void fill_family(Lane *lane)
{
    Id parent;
    lane->system->create_session(lane->client, &(SessionSpec){.slug = "parent"}, &parent);
    for (size_t i = 0; i < SUBAGENTS; i++) {
        lane->system->create_session(lane->client, &(SessionSpec){"subagent", &parent},
                                     &lane->ids[i]);
    }
}

static void append(Lane *lane)
{
    lane_append(lane, &lane->ids[lane->index % LANE_IDS_MAX], lane->messages,
                lane->the_case->text_bytes, NULL);
}

// A step of an agent: its message, and what it cost up to the root.
static void append_and_propagate(Lane *lane)
{
    const Id *session = &lane->ids[lane->index % SUBAGENTS];
    lane_append(lane, session, 1, lane->the_case->text_bytes, NULL);
    lane->system->propagate(lane->client, session);
}

static bool can_propagate(const System *system)
{
    return can_append(system) && system->propagate;
}

static void run_append(Run *run)
{
    static const size_t sizes[] = {512, 4096, 20480, 262144};
    for (size_t i = 0; i < 4; i++) {
        if (run->options.is_quick && i % 2) continue;
        compare(run, &(Case){.parameters = {{"bytes", (double)sizes[i]}},
                             .can = can_append,
                             .fill = fill,
                             .call = append,
                             .is_slow = true,
                             .number = FILLED,
                             .text_bytes = sizes[i]});
    }
}

static void run_processes(Run *run)
{
    static const size_t counts[] = {1, 2, 4, 8, 16, 32, 64};
    for (size_t i = 0; i < 7; i++) {
        bool is_quick = counts[i] == 1 || counts[i] == 8 || counts[i] == 64;
        if (run->options.is_quick && !is_quick) continue;
        compare(run, &(Case){.parameters = {{"clients", (double)counts[i]}, {"bytes", 1024}},
                             .can = can_append,
                             .fill = fill,
                             .call = append,
                             .processes = counts[i],
                             .number = FILLED,
                             .text_bytes = 1024});
    }
}

static void run_subagents(Run *run)
{
    compare(run, &(Case){.parameters = {{"subagents", SUBAGENTS}, {"bytes", 1024}},
                         .can = can_propagate,
                         .fill = fill_family,
                         .call = append_and_propagate,
                         .threads = SUBAGENTS,
                         .is_slow = true,
                         .text_bytes = 1024});
}

WORKLOAD(append) = {
    .name = "append",
    .about = "one client appends messages of one size",
    .order = 40,
    .run = run_append,
};

WORKLOAD(append_processes) = {
    .name = "append-processes",
    .about = "so many processes append, each to a session of its own",
    .order = 41,
    .run = run_processes,
};

WORKLOAD(subagents) = {
    .name = "subagents",
    .about = "four threads append and propagate their usage to one parent; one sample is both",
    .order = 42,
    .run = run_subagents,
};
