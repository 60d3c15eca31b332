// Order. From each entry up to the first ancestor that is placed already: those are placed on the
// way back. Each entry is walked over once or twice, however deep the tree is.

#include "pi/pi_order.h"

#include <stdlib.h>

// How many steps lead from an entry to one that is placed or to a beginning; PI_NONE if it walks in
// a ring: then a second walker at half the speed is met.
static uint32_t climb(const PiFile *pi, uint32_t entry)
{
    uint32_t steps = 0, slow = entry;
    while (entry != PI_NONE && !pi->entries[entry].is_placed) {
        entry = pi->entries[entry].parent;
        steps++;
        if (steps % 2 == 0) slow = pi->entries[slow].parent;
        if (entry == slow) return PI_NONE;
    }
    return steps;
}

// The first in the file of those on the ring that `entry` leads into.
static uint32_t ring_first(const PiFile *pi, uint32_t entry)
{
    uint32_t slow = entry, fast = entry;
    do {
        slow = pi->entries[slow].parent;
        fast = pi->entries[pi->entries[fast].parent].parent;
    } while (slow != fast);
    uint32_t first = slow;
    for (uint32_t at = pi->entries[slow].parent; at != slow; at = pi->entries[at].parent) {
        if (at < first) first = at;
    }
    return first;
}

Error pi_order(PiFile *pi, uint32_t *out_cut)
{
    pi->order = calloc(pi->count > 0 ? pi->count : 1, sizeof(*pi->order));
    if (!pi->order) return ERROR_OUT_OF_MEMORY;
    uint32_t placed = 0;
    for (uint32_t i = 0; i < pi->count; i++) {
        uint32_t steps = climb(pi, i);
        if (steps == PI_NONE) {
            uint32_t first = ring_first(pi, i);
            pi->entries[first].parent = PI_NONE;
            if (*out_cut == PI_NONE) *out_cut = first;
            steps = climb(pi, i);
        }
        uint32_t at = i;
        for (uint32_t step = steps; step > 0; step--) {
            pi->order[placed + step - 1] = at;
            pi->entries[at].is_placed = true;
            at = pi->entries[at].parent;
        }
        placed += steps;
    }
    return ERROR_NONE;
}
