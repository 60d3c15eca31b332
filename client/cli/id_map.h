// A map from ids to ids: what a record is called in a file, and in the store.

#pragma once

#include "cli.h"
#include "text/ulid.h"

typedef struct IdMap {
    struct IdPair *pairs; // owned
    size_t count, capacity;
} IdMap;

void id_map_free(IdMap *map);

// ERROR_OUT_OF_MEMORY; ERROR_INVALID_ARGUMENT: `from` is no id.
MUST_USE Error id_map_put(IdMap *map, const char *from, const char *to);

// False: it is not there. `out` has room for an id's text.
bool id_map_get(const IdMap *map, const char *from, char out[ID_BYTES]);
