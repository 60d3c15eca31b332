// Direct stores: the stores of servers that this process has mapped. All clients of a process share
// one mapping of a store, because closing a second one would drop the first one's locks.

#pragma once

#include "store/store.h"
#include "tine.h"

typedef struct DirectStore DirectStore;

// Where a server says that its store is.
typedef struct DirectPlace {
    const Tine__V1__DirectReads *said; // borrowed
    int64_t peer_user;                 // the user who says so; -1: not known
    const char *instance_id;           // borrowed
    uint32_t format;
    Clock clock;      // .now_ms NULL: the system's; for tests
    size_t map_bytes; // 0: as large as the server's; for tests
} DirectPlace;

// Why a store cannot be read here.
typedef struct Doubt {
    TineFallback fallback;
    char why[256];
} Doubt;

// Opens a store, or finds the one that is open. Returns false and why if it must not be read here
// or cannot be opened. Otherwise the caller holds it until direct_store_close.
bool direct_store_open(const DirectPlace *place, DirectStore **out_store, Doubt *out_doubt);

// Ends a hold. The caller must not read any more. Does nothing in a child of fork.
void direct_store_close(DirectStore *store);

// Every read of a holder is between enter and leave. enter returns false if the store was retired:
// then the caller must close it. The map stays until the last read has left, even if nobody holds
// the store any more. leave does nothing in a child of fork.
bool direct_store_enter(DirectStore *store);
void direct_store_leave(DirectStore *store);

// Returns whether the opened files still have their names. Usually this costs one fstat of their
// directory. Names further up in the path are checked only if `looks`.
bool direct_store_is_current(DirectStore *store, bool looks);

// Retires the store while the caller reads it: nobody can enter it any more. The map is closed
// after the last read, however many clients hold the store; then the file can be opened again.
void direct_store_retire(DirectStore *store);

// Returns the store, borrowed while the caller reads.
Store *direct_store_of(DirectStore *store);
