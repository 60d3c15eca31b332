// An entry's original: the line that the entry was made from, and what stands around it.

#pragma once

#include "base/arena.h"
#include "base/slice.h"

typedef struct PiOriginal {
    Slice before, line, after; // of the same bytes; the line is one object, without its end
    char *id, *parent_id;      // as the line has them; "": it says none
} PiOriginal;

// What is no entry (no JSON, no object, a further header) may stand before and behind it. False:
// there is no entry in it, or the arena is used up. `out` borrows from `bytes` and lives in the
// arena.
bool pi_original_read(Arena *arena, Slice bytes, PiOriginal *out);
