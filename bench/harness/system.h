// A system under test: one store of conversations, and how its users would call it.
//
// Each is one file in bench/systems that defines its calls and says SYSTEM(name); that is all there
// is to adding one. A call that a system does not have is NULL: the cells that need it stay empty.
// A call that fails ends the program (require): there are no figures of work that was not done.
//
// What an entry holds is the same for all of them, so that what they read can be compared: a user's
// entry has one text part, an assistant's a text part, a tool use and its usage, a tool's one
// tool_result.

#pragma once

#include "peers.h"

enum { PLACE_BYTES_MAX = 400, ID_TEXT_BYTES = 80, FORKS_READABLE = 8 };

typedef struct Id {
    char text[ID_TEXT_BYTES];
} Id;

typedef enum EntryKind { ENTRY_USER, ENTRY_ASSISTANT, ENTRY_TOOL } EntryKind;

typedef struct Entry {
    EntryKind kind;
    const char *text; // ends with a NUL
    size_t text_bytes;
} Entry;

#define TOOL_USE_ID "toolu_01A09q90qw90lq917835lq9"
#define TOOL_NAME "read"
#define TOOL_INPUT "{\"path\":\"/home/user/project/src/main.c\",\"limit\":200}"
#define MODEL_PROVIDER "anthropic"
#define MODEL_NAME "model-1"
#define PROJECT_DIR "/home/user/project"

enum { // of each assistant's entry, and what PropagateTotals adds
    USAGE_INPUT = 900,
    USAGE_OUTPUT = 100,
    USAGE_CACHE_READ = 12000,
    USAGE_CACHE_WRITE = 300,
    USAGE_COST_NANO_USD = 12300000,
};

// What a reader has seen: the texts of entries, not the names around them.
typedef struct Tally {
    size_t messages;
    size_t text_bytes;
} Tally;

// Where one store lives for as long as it is measured.
typedef struct Place {
    char directory[PLACE_BYTES_MAX]; // of its own, empty at first
    Peer server;                     // pid 0: there is none
    size_t forks_max;                // how deep the chains are that will be read
} Place;

typedef struct SessionSpec {
    const char *slug;
    const Id *parent; // of a subagent; NULL: a primary session
} SessionSpec;

// What an acknowledged write survives.
typedef enum Durability {
    DURABILITY_NONE,    // nothing is kept, or nothing is promised
    DURABILITY_PROCESS, // the end of the process; a power cut may take the last ones
    DURABILITY_POWER,   // a power cut: it was flushed to the disk
} Durability;

typedef struct System {
    const char *name;
    const char *about; // one sentence: what it is, and how it is set up
    unsigned order;    // of its row
    Durability durability;
    bool is_limit;        // not a store: what any store of its kind must pay at least
    bool is_one_client;   // one connection at a time
    bool is_private;      // one process at a time; threads share what connect returns
    bool copies_forks;    // a deep chain of them is not made: it would fill the disk
    bool is_files;        // a file a session: a great many are not made, it would take minutes
    const char *reads_as; // the system whose reads are the same, only the writes differ; NULL: none

    // The server, if there is one, on the store in place->directory. May be NULL.
    void (*start)(Place *place);
    void (*stop)(Place *place);
    // A client, for one thread (or for all of a process, see is_private).
    void *(*connect)(const Place *place);
    void (*disconnect)(void *client);
    // A client that fills the store before start is called, as fast as it goes: what it has written
    // is there, and nothing more. NULL: filled by a client of the server.
    void *(*fill_open)(const Place *place);
    void (*fill_close)(void *client);

    void (*create_session)(void *client, const SessionSpec *spec, Id *out);
    // At the parent's last entry, `message`.
    void (*fork_session)(void *client, const Id *session, const Id *message, Id *out);
    void (*append)(void *client, const Id *session, const Entry *entry, Id *out);
    void (*propagate)(void *client, const Id *session); // one usage, up the chain of parents
    void (*get_session)(void *client, const Id *session);
    void (*get_message)(void *client, const Id *message);
    void (*list_memories)(void *client, const Id *session);
    void (*mark)(void *client, const Id *session, const Id *before); // a compaction
    // The whole history through all forks: as bytes in the caller's memory, not decoded (messages
    // may stay 0), and decoded with every text looked at.
    void (*history_bytes)(void *client, const Id *session, Tally *out);
    void (*history)(void *client, const Id *session, Tally *out);
    void (*window)(void *client, const Id *session, Tally *out); // since the marker; decoded
    // The newest `limit` sessions, decoded; `query` (NULL: none) is part of their slug. Returns how
    // many.
    size_t (*list)(void *client, size_t limit, const char *query);
} System;

// Registers the system that follows: SYSTEM(lmdb) = {.name = "lmdb", …};
#define SYSTEM(symbol)                                                                             \
    static const System system_##symbol;                                                           \
    __attribute__((constructor)) static void register_system_##symbol(void)                        \
    {                                                                                              \
        system_register(&system_##symbol);                                                         \
    }                                                                                              \
    static const System system_##symbol

enum { SYSTEMS_MAX = 32 };

void system_register(const System *system);
size_t system_count(void);
const System *system_at(size_t index); // by order, then name
const char *durability_text(Durability durability);
