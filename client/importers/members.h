// The members of one JSON object that an importer knows, and which of them have become fields of
// ours. The others are kept as JSON.

#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/slice.h"

enum { MEMBER_COUNT_MAX = 32, MEMBER_KEPT_BYTES_MAX = 8 * 1024 * 1024 };

typedef struct Members {
    const char *const *names; // borrowed
    size_t count;
    Slice values[MEMBER_COUNT_MAX]; // an empty slice: the object does not have it
    bool is_used[MEMBER_COUNT_MAX];
    Buffer rest; // members that are not in `names`, with commas between
} Members;

// Reads the members of `object`, which is borrowed. The caller frees `members` in any case.
// ERROR_OUT_OF_MEMORY.
MUST_USE Error members_read(Members *members, const char *const *names, size_t count, Slice object);
void members_free(Members *members);

// Returns the text of a member, cut to `bytes_max`; "" if it is not a string. A text that fits is
// marked as used; one that was cut is not, so its JSON is kept with the rest (up to
// MEMBER_KEPT_BYTES_MAX). In the arena; NULL if the arena is used up.
char *members_text(Members *members, size_t member, size_t bytes_max, Arena *arena);

// The same for a name, which is cut as field_name does it and marked as used.
char *members_name(Members *members, size_t member, Arena *arena);

// Returns the JSON of a member and marks it as used; "" if the object does not have it, it is
// longer than `bytes_max` or nested too deep for our JSON fields. NULL if the arena is used up.
char *members_json(Members *members, size_t member, size_t bytes_max, Arena *arena);

// Appends the known members that are not used to `rest`. ERROR_OUT_OF_MEMORY.
MUST_USE Error members_keep_unused(Members *members);
