// Reading a history through a chain of forks: what every agent does when it resumes.

#include "run.h"

typedef struct Chain {
    size_t forks, messages, bytes; // messages of a session; bytes of a message
} Chain;

// Depth by number of messages by size, without what is larger than 16 MiB: four million tokens are
// more than a model reads. The first ones are the line of the plot by depth.
static const Chain CHAINS[] = {
    {0, 25, 1024},  {1, 25, 1024},   {8, 25, 1024},  {64, 25, 1024},  {1000, 25, 1024},
    {1, 25, 512},   {8, 25, 512},    {64, 25, 512},  {1000, 25, 512}, //
    {1, 25, 4096},  {8, 25, 4096},   {64, 25, 4096},                  //
    {1, 25, 20480}, {8, 25, 20480},                                   //
    {1, 200, 4096}, {8, 200, 4096},  {64, 200, 512},                  //
    {1, 1000, 512}, {1, 1000, 4096}, {8, 1000, 512},
};
enum { CHAIN_COUNT = sizeof(CHAINS) / sizeof(*CHAINS), QUICK_FROM = 1, QUICK_TO = 3 };

static void fill(Lane *lane)
{
    const Case *what = lane->the_case;
    Id *session = &lane->ids[0], message;
    lane->system->create_session(lane->client, &(SessionSpec){.slug = "chain"}, session);
    for (size_t fork = 0;; fork++) {
        for (size_t i = 0; i < what->number; i++)
            lane_append(lane, session, i, what->text_bytes, &message);
        if (fork == what->forks_max) return;
        Id child;
        lane->system->fork_session(lane->client, session, &message, &child);
        *session = child;
    }
}

static bool can_bytes(const System *system)
{
    return system->fork_session && system->history_bytes;
}

static bool can_decoded(const System *system)
{
    return system->fork_session && system->history;
}

static void call_bytes(Lane *lane)
{
    lane->system->history_bytes(lane->client, &lane->ids[0], &lane->tally);
}

static void call_decoded(Lane *lane)
{
    lane->system->history(lane->client, &lane->ids[0], &lane->tally);
}

static void read_chains(Run *run, bool (*can)(const System *), void (*call)(Lane *))
{
    for (size_t i = 0; i < CHAIN_COUNT; i++) {
        if (run->options.is_quick && (i < QUICK_FROM || i > QUICK_TO)) continue;
        const Chain *chain = &CHAINS[i];
        size_t bytes = (chain->forks + 1) * chain->messages * chain->bytes;
        compare(run, &(Case){.parameters = {{"forks", (double)chain->forks},
                                            {"messages", (double)chain->messages},
                                            {"bytes", (double)chain->bytes}},
                             .can = can,
                             .fill = fill,
                             .call = call,
                             .is_reading = true,
                             .is_slow = bytes > 1 << 20,
                             .forks_max = chain->forks,
                             .number = chain->messages,
                             .text_bytes = chain->bytes});
    }
}

static void run_bytes(Run *run)
{
    read_chains(run, can_bytes, call_bytes);
}

static void run_decoded(Run *run)
{
    read_chains(run, can_decoded, call_decoded);
}

WORKLOAD(fork_chain_bytes) = {
    .name = "fork-chain-bytes",
    .about = "a history through forks, its bytes in the caller's memory, not decoded",
    .order = 20,
    .run = run_bytes,
};

WORKLOAD(fork_chain_decoded) = {
    .name = "fork-chain-decoded",
    .about = "the same, decoded, every text looked at",
    .order = 21,
    .run = run_decoded,
};
