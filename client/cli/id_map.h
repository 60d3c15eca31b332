// A map from IDs in a file to IDs in the store.

#pragma once

#include "cli.h"
#include "text/ulid.h"

typedef struct IdMap {
    struct IdPair *pairs; // owned
    size_t count, capacity;
} IdMap;

void id_map_free(IdMap *map);

// ERROR_OUT_OF_MEMORY. ERROR_INVALID_ARGUMENT: `from` is not an ID.
MUST_USE Error id_map_put(IdMap *map, const char *from, const char *to);

// Returns false if the ID is not in the map. `out` needs room for the text of an ID.
bool id_map_get(const IdMap *map, const char *from, char out[ID_BYTES]);
