// Text, JSON and names of other programs as the fields of our records can hold them.

#pragma once

#include "base/arena.h"
#include "base/slice.h"

// Each result lives in the arena; NULL if the arena is used up.

// Returns the text with U+FFFD for each byte that is not UTF-8.
char *field_text(Arena *arena, Slice text);

// Returns a well-formed JSON value in UTF-8; "" if it is nested deeper than our JSON fields allow.
char *field_json(Arena *arena, Slice value);

// Returns a name that is no longer than STRING_BYTES_MAX: one that is too long is cut and ends in
// its hash, so two places that name the same thing still do. `text` may be NULL, and then so is the
// result; a short one is returned as it is.
char *field_name(Arena *arena, char *text);
