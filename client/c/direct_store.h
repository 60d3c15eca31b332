// Mapped stores of servers: one for each store in a process, whoever reads it, for a second mapping
// of the same file would drop the first one's locks.

#pragma once

#include "store/store.h"
#include "tine.h"

typedef struct DirectStore DirectStore;

// Where a server says that its store is.
typedef struct DirectPlace {
    const Tine__V1__DirectReads *said; // borrowed
    int64_t peer_user;                 // who says so; -1: not known
    const char *instance_id;           // likewise
    uint32_t format;
    Clock clock;      // .now_ms NULL: the system's; for tests
    size_t map_bytes; // 0: as large as the server's; for tests
} DirectPlace;

// Why a store cannot be read here.
typedef struct Doubt {
    TineFallback fallback;
    char why[256];
} Doubt;

// False, and why: it must not be read here, or cannot be opened. Else the caller holds it, until
// direct_store_close.
bool direct_store_open(const DirectPlace *place, DirectStore **out_store, Doubt *out_doubt);

// Who holds it reads no more. In a child of fork it is left alone.
void direct_store_close(DirectStore *store);

// Around each read of one who holds it. False: it was retired, and is to be closed. The map stays
// until the last read has left, also where nobody holds it any more.
bool direct_store_enter(DirectStore *store);
void direct_store_leave(DirectStore *store); // likewise

// Whether the files that were opened still have their names: one fstat of their directory, mostly.
// The names above it are looked at with `looks` only.
bool direct_store_is_current(DirectStore *store, bool looks);

// While the caller reads: nobody gets it any more. The map goes with the last read, however many
// hold it, for only then can the file be opened anew.
void direct_store_retire(DirectStore *store);

Store *direct_store_of(DirectStore *store); // borrowed while the caller reads
