// A whole turn of an agent with its user interface, call by call as the reference makes them: 26
// appends, 10 propagations, 32 reads of the session, 11 of a message, 3 of the history.

#include "run.h"

enum { STEPS = 10, TOOLS = 15, TEXT_BYTES = 4096, SESSION_READS_AT_END = 2 };

static void fill(Lane *lane)
{
    lane->system->create_session(lane->client, &(SessionSpec){.slug = "turns"}, &lane->ids[0]);
    for (size_t i = 0; i < lane->the_case->number; i++)
        lane_append(lane, &lane->ids[0], i, TEXT_BYTES, NULL);
}

static bool can_turn(const System *system)
{
    return can_append(system) && system->propagate && system->get_session && system->get_message &&
           system->window && system->history && system->list_memories;
}

// An entry, and what the interface reads when it hears of it.
static void append_and_show(Lane *lane, size_t kind)
{
    const System *system = lane->system;
    Id message;
    lane_append(lane, &lane->ids[0], kind, TEXT_BYTES, &message);
    if (kind_at(kind) == ENTRY_ASSISTANT) system->propagate(lane->client, &lane->ids[0]);
    system->get_session(lane->client, &lane->ids[0]);
    if (kind_at(kind) != ENTRY_TOOL) system->get_message(lane->client, &message);
}

// Its head line, and the title that it makes of the whole history.
static void refresh(Lane *lane)
{
    for (size_t i = 0; i < SESSION_READS_AT_END; i++)
        lane->system->get_session(lane->client, &lane->ids[0]);
    lane->system->history(lane->client, &lane->ids[0], &lane->tally);
}

static void turn(Lane *lane)
{
    const System *system = lane->system;
    enum { USER = 0, ASSISTANT = 1, TOOL = 2 }; // as kind_at has them
    append_and_show(lane, USER);
    refresh(lane);
    system->get_session(lane->client, &lane->ids[0]);
    system->get_session(lane->client, &lane->ids[0]);
    system->window(lane->client, &lane->ids[0], &lane->tally);
    system->list_memories(lane->client, &lane->ids[0]);
    for (size_t step = 0, tools = 0; step < STEPS; step++) {
        append_and_show(lane, ASSISTANT);
        for (; tools < TOOLS * (step + 1) / (STEPS - 1) && step + 1 < STEPS; tools++)
            append_and_show(lane, TOOL);
    }
    refresh(lane);
}

static void run_turn(Run *run)
{
    static const size_t sizes[] = {100, 2000, 10000};
    for (size_t i = 0; i < (run->options.is_quick ? 1 : 3); i++) {
        compare(run, &(Case){.parameters = {{"messages", (double)sizes[i]}, {"bytes", TEXT_BYTES}},
                             .can = can_turn,
                             .fill = fill,
                             .call = turn,
                             .calls = 2,
                             .number = sizes[i]});
    }
}

WORKLOAD(turn) = {
    .name = "turn",
    .about = "a whole agent turn with its interface: 36 writes, 46 reads; one sample is a turn",
    .order = 1,
    .run = run_turn,
};
