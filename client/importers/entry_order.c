// The order of entries. From each entry the walk goes up to the first ancestor that has its place,
// and gives the entries on the way their places. Each entry is visited once or twice, however deep
// the tree is.

#include "importers/entry_order.h"

#include <stdbool.h>
#include <stdlib.h>

typedef struct Placing {
    uint32_t *parents;
    bool *is_placed;
} Placing;

// Returns the number of steps from an entry to one that is placed, or past a root. Returns
// ENTRY_NONE in a ring, where a second walker at half the speed is met.
static uint32_t climb(const Placing *placing, uint32_t entry)
{
    uint32_t steps = 0, slow = entry;
    while (entry != ENTRY_NONE && !placing->is_placed[entry]) {
        entry = placing->parents[entry];
        steps++;
        if (steps % 2 == 0) slow = placing->parents[slow];
        if (entry == slow) return ENTRY_NONE;
    }
    return steps;
}

// Returns the entry that comes first in the file of the ring that `entry` leads into.
static uint32_t ring_first(const uint32_t *parents, uint32_t entry)
{
    uint32_t slow = entry, fast = entry;
    do {
        slow = parents[slow];
        fast = parents[parents[fast]];
    } while (slow != fast);
    uint32_t first = slow;
    for (uint32_t at = parents[slow]; at != slow; at = parents[at]) {
        if (at < first) first = at;
    }
    return first;
}

Error entry_order(uint32_t *parents, uint32_t count, uint32_t *order, uint32_t *out_cut)
{
    Placing placing = {parents, calloc(count > 0 ? count : 1, sizeof(bool))};
    if (!placing.is_placed) return ERROR_OUT_OF_MEMORY;
    uint32_t placed = 0;
    *out_cut = ENTRY_NONE;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t steps = climb(&placing, i);
        if (steps == ENTRY_NONE) {
            uint32_t first = ring_first(parents, i);
            parents[first] = ENTRY_NONE;
            if (*out_cut == ENTRY_NONE) *out_cut = first;
            steps = climb(&placing, i);
        }
        uint32_t at = i;
        for (uint32_t step = steps; step > 0; step--) {
            order[placed + step - 1] = at;
            placing.is_placed[at] = true;
            at = parents[at];
        }
        placed += steps;
    }
    free(placing.is_placed);
    return ERROR_NONE;
}
