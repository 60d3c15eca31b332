// One long session: its record, one of its messages, and what came after its last compaction.

#include "run.h"

static void fill(Lane *lane)
{
    const Case *what = lane->the_case;
    lane->system->create_session(lane->client, &(SessionSpec){.slug = "long"}, &lane->ids[0]);
    for (size_t i = 0; i < what->number; i++)
        lane_append(lane, &lane->ids[0], i, what->text_bytes, &lane->ids[1]);
}

static void fill_with_marker(Lane *lane)
{
    const Case *what = lane->the_case;
    size_t compacted = what->number * 9 / 10;
    lane->system->create_session(lane->client, &(SessionSpec){.slug = "long"}, &lane->ids[0]);
    for (size_t i = 0; i < what->number; i++) {
        lane_append(lane, &lane->ids[0], i, what->text_bytes, &lane->ids[1]);
        if (i + 1 == compacted) lane->ids[2] = lane->ids[1];
    }
    lane->system->mark(lane->client, &lane->ids[0], &lane->ids[2]);
}

static bool can_get_session(const System *system)
{
    return system->get_session && system->append;
}

static bool can_get_message(const System *system)
{
    return system->get_message && system->append;
}

static bool can_read_window(const System *system)
{
    return system->window && system->mark;
}

static void get_session(Lane *lane)
{
    lane->system->get_session(lane->client, &lane->ids[0]);
}

static void get_message(Lane *lane)
{
    lane->system->get_message(lane->client, &lane->ids[1]);
}

static void read_window(Lane *lane)
{
    lane->system->window(lane->client, &lane->ids[0], &lane->tally);
}

static void compare_at(Run *run, Case what, size_t messages, size_t bytes)
{
    what.is_reading = true;
    what.number = messages;
    what.text_bytes = bytes;
    what.parameters[0] = (Parameter){"messages", (double)messages};
    what.parameters[1] = (Parameter){"bytes", (double)bytes};
    compare(run, &what);
}

static void run_get_session(Run *run)
{
    const Case what = {.can = can_get_session, .fill = fill, .call = get_session};
    compare_at(run, what, 10, 512);
    compare_at(run, what, 2000, 512);
    if (run->options.is_quick) return;
    compare_at(run, what, 2000, 20480);
    compare_at(run, what, 20000, 512);
}

static void run_get_message(Run *run)
{
    const Case what = {.can = can_get_message, .fill = fill, .call = get_message};
    compare_at(run, what, 500, 4096);
    if (!run->options.is_quick) compare_at(run, what, 2000, 20480);
}

static void run_window(Run *run)
{
    const Case what = {.can = can_read_window, .fill = fill_with_marker, .call = read_window};
    compare_at(run, what, 500, 1024);
    if (run->options.is_quick) return;
    compare_at(run, what, 2000, 512);
    compare_at(run, what, 2000, 4096);
    compare_at(run, what, 2000, 20480);
}

WORKLOAD(get_session) = {
    .name = "get-session",
    .about = "one session's record, however long the session is",
    .order = 10,
    .run = run_get_session,
};

WORKLOAD(get_message) = {
    .name = "get-message",
    .about = "one message by its id, decoded",
    .order = 11,
    .run = run_get_message,
};

WORKLOAD(marker_read) = {
    .name = "marker-read",
    .about = "what came after the last compaction, a tenth of the session, decoded",
    .order = 22,
    .run = run_window,
};
