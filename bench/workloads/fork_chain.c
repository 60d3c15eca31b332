// Reading a history through a chain of forks: what every agent does when it resumes.

#include "run.h"

enum { HISTORY_BYTES_MAX = 48 << 20 };

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
    static const size_t forks[] = {0, 1, 8, 64, 1000}, messages[] = {25, 1000},
                        sizes[] = {512, 1024, 4096, 20480};
    for (size_t i = 0; i < 5; i++) {
        for (size_t j = 0; j < 2; j++) {
            for (size_t k = 0; k < 4; k++) {
                size_t bytes = (forks[i] + 1) * messages[j] * sizes[k];
                bool is_line = messages[j] == 25 && sizes[k] == 1024; // of the plot by depth
                bool is_quick = is_line && forks[i] > 0 && forks[i] <= 64;
                if (bytes > HISTORY_BYTES_MAX || (!is_quick && run->options.is_quick)) continue;
                if (!is_line && (sizes[k] == 1024 || forks[i] == 0)) continue;
                compare(run, &(Case){.parameters = {{"forks", (double)forks[i]},
                                                    {"messages", (double)messages[j]},
                                                    {"bytes", (double)sizes[k]}},
                                     .can = can,
                                     .fill = fill,
                                     .call = call,
                                     .is_slow = bytes > 1 << 20,
                                     .forks_max = forks[i],
                                     .number = messages[j],
                                     .text_bytes = sizes[k]});
            }
        }
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
