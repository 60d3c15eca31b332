// Splits the original of an entry into the line that the entry was made from and what is around it.

#pragma once

#include "base/arena.h"
#include "base/slice.h"

typedef struct PiOriginal {
    Slice before, line, after; // together the original; the line is one object, without its end
    char *id, *parent_id;      // as the line has them; "": it has none
} PiOriginal;

// Lines that are not entries (not JSON, not an object, another header) may come before and after
// the line. Returns false if no line is an entry, or if the arena is used up. `out` borrows from
// `bytes` and lives in the arena.
bool pi_original_read(Arena *arena, Slice bytes, PiOriginal *out);
