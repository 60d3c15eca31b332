// The peer of an append: the same rows and bytes put and committed by lmdb.h alone, on a copy of
// the engine's file.

#pragma once

#include "bench.h"
#include "os/random.h"

enum { BARE_SESSIONS_MAX = 64 };

typedef struct Bare {
    MDB_env *env;
    MDB_dbi tree;
    Ulid last_id;
    uint64_t sequence;
    size_t message_bytes, event_bytes; // of one row's value, as the engine's are
    size_t operation_bytes;            // likewise; 0: the file has no operations
    Random random;
    Ulid ids[BARE_SESSIONS_MAX];
    uint8_t active_keys[BARE_SESSIONS_MAX][24];
} Bare;

// Opens the copied file and takes the sizes of its newest rows.
void bare_open(Bare *bare, const char *path, const IdText *sessions, size_t session_count);
void bare_close(Bare *bare);

// One transaction with one set of puts for each of `count` sessions, and the state row.
// `moves_active` also re-keys by_active, as an append to a session that was not last does. In a
// file with operations the set has the two rows of an operation_id too.
void bare_append(Bare *bare, size_t count, bool moves_active);
