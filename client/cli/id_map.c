// A hash map with open addressing, at most half full. IDs begin with their time, so the hash is
// taken from their end.

#include "id_map.h"

#include <stdlib.h>
#include <string.h>

typedef struct IdPair {
    Ulid from, to; // free if `from` is zero
} IdPair;

enum { CAPACITY_MIN = 256 };

void id_map_free(IdMap *map)
{
    free(map->pairs);
    *map = (IdMap){0};
}

static IdPair *pair_of(const IdMap *map, Ulid from)
{
    uint64_t low, high;
    memcpy(&high, from.bytes, sizeof(high));
    memcpy(&low, from.bytes + sizeof(high), sizeof(low));
    uint64_t hash = (low ^ high) * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(hash >> 20) & (map->capacity - 1);
    while (!ulid_is_zero(map->pairs[at].from) && !ulid_equal(map->pairs[at].from, from)) {
        at = (at + 1) & (map->capacity - 1);
    }
    return &map->pairs[at];
}

static Error grow(IdMap *map)
{
    IdMap larger = {.count = map->count, .capacity = 2 * map->capacity};
    if (larger.capacity == 0) larger.capacity = CAPACITY_MIN;
    larger.pairs = calloc(larger.capacity, sizeof(IdPair));
    if (!larger.pairs) return ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < map->capacity; i++) {
        if (!ulid_is_zero(map->pairs[i].from)) {
            *pair_of(&larger, map->pairs[i].from) = map->pairs[i];
        }
    }
    free(map->pairs);
    *map = larger;
    return ERROR_NONE;
}

Error id_map_put(IdMap *map, const char *from, const char *to)
{
    Ulid from_id, to_id;
    if (!ulid_parse(slice_of(from), &from_id) || !ulid_parse(slice_of(to), &to_id) ||
        ulid_is_zero(from_id)) {
        return ERROR_INVALID_ARGUMENT;
    }
    if (2 * map->count >= map->capacity) {
        Error error = grow(map);
        if (error) return error;
    }
    IdPair *pair = pair_of(map, from_id);
    if (ulid_is_zero(pair->from)) map->count++;
    *pair = (IdPair){from_id, to_id};
    return ERROR_NONE;
}

bool id_map_get(const IdMap *map, const char *from, char out[ID_BYTES])
{
    Ulid id;
    if (map->count == 0 || !ulid_parse(slice_of(from), &id) || ulid_is_zero(id)) return false;
    const IdPair *pair = pair_of(map, id);
    if (ulid_is_zero(pair->from)) return false;
    ulid_format(pair->to, out);
    return true;
}
