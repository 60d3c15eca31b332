// A run: cases, each of them done by all systems in turns.
//
// compare() opens a lane for every system that can do the case: its store is made and filled, its
// server started, a client connected. Then come the rounds. In each every lane has one turn, the
// first of which does not count, and the order moves on by one from round to round, so that what
// disturbs the machine disturbs all alike. A turn is a number of calls or a time, what ends first.

#pragma once

#include "clients.h"
#include "results.h"
#include "workload.h"

enum { LANE_IDS_MAX = 64 };

typedef struct Lane Lane;

typedef struct Case {
    Parameter parameters[PARAMETERS_MAX];
    bool (*can)(const System *system); // besides having a way to be filled
    // Makes the store by the lane's client, which is there only for that; leaves what the calls
    // need in lane->ids, and counts what it appended in lane->messages.
    void (*fill)(Lane *lane);
    void (*prepare)(Lane *lane); // before the first turn, by the client that will call. May be NULL
    void (*call)(Lane *lane);    // what is timed; one sample
    void (*before)(Lane *lane);  // before each call, not timed. May be NULL

    size_t processes; // > 0: so many clients, each a process; they call at once
    size_t threads;   // > 0: the same with threads of one process
    double rate;      // > 0, with threads: calls a second, begun when they are due (load.h)
    void (*beside)(Lane *lane); // another process does this over and over during the turns
    bool has_no_client;         // the call makes its own: nothing is connected beside it
    bool is_slow;               // a call takes milliseconds: longer turns
    size_t calls;              // > 0: of a turn, whatever the time; so all lanes' stores grow alike
    size_t forks_max;          // of the chains
    size_t sessions;           // if they are many
    bool is_reading;           // only reads: who reads as another does has no part in it
    size_t number, text_bytes; // the case's own
    const char *query;
} Case;

struct Lane {
    const System *system;
    const Case *the_case;
    Place place;
    void *client;
    Id ids[LANE_IDS_MAX];
    size_t index;      // of this client among all
    size_t messages;   // appended so far
    size_t filled;     // of those, by fill
    double disk_bytes; // after it
    Tally tally;       // of the last read
    size_t calls;
    Samples samples, beside_samples;
    Samples rates; // calls a second of each turn, times 1000
    double client_cpu_ms, server_cpu_ms;
    double written_bytes; // by both
    double client_rss_kib;
    ClientGroup *clients;
};

typedef struct RunOptions {
    const char *directory; // stores are made in it
    const char *only;      // cases whose "workload/case" contains it; NULL: all
    const char *systems;   // names, with commas; NULL: all
    bool is_quick;
    size_t rounds; // of turns that count; 0: as many as are usual
} RunOptions;

struct Run {
    RunOptions options;
    const Workload *workload; // the one that runs
    Results results;
};

// What a workload calls for each of its cases.
void compare(Run *run, const Case *what);

// Removes a directory with all that is in it, if it is there.
void tree_remove(const char *path);

// Whether a list of names with commas has this one. NULL has all.
bool names_have(const char *names, const char *name);

// Appends an entry as fill does: `kinds` in turn.
void lane_append(Lane *lane, const Id *session, size_t number, size_t text_bytes, Id *out_last);

// The order of kinds in a conversation: user, then assistant and tool in turn, a user again after
// ten of those.
EntryKind kind_at(size_t number);

bool can_append(const System *system); // and keeps what it appends
