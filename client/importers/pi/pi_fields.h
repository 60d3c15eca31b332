// The members of one JSON object that the mapping knows, and which of them have become fields of
// ours. What is not used is kept as JSON.

#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/slice.h"

enum { PI_FIELD_COUNT_MAX = 32 };

typedef struct PiFields {
    const char *const *names; // borrowed
    size_t count;
    Slice values[PI_FIELD_COUNT_MAX]; // of no bytes: the object does not have it
    bool is_used[PI_FIELD_COUNT_MAX];
    Buffer rest; // members that are not in `names`, with commas between
} PiFields;

// Reads the members of `object`, which is borrowed. The caller frees `fields` in any case.
// ERROR_OUT_OF_MEMORY.
MUST_USE Error pi_fields_read(PiFields *fields, const char *const *names, size_t count,
                              Slice object);
void pi_fields_free(PiFields *fields);

// Each returns the text of a field and marks it as used; "" if it is not a string. In the arena;
// NULL if the arena is used up. pi_fields_text cuts to the longest text that we keep,
// pi_fields_name to a name (pi_name).
char *pi_fields_text(PiFields *fields, size_t field, Arena *arena);
char *pi_fields_name(PiFields *fields, size_t field, Arena *arena);

// Returns the JSON of a field and marks it as used; "" if the object does not have it, it is longer
// than `bytes_max` or nested too deep for our JSON fields. NULL if the arena is used up.
char *pi_fields_json(PiFields *fields, size_t field, size_t bytes_max, Arena *arena);

// Appends the known members that are not used to `rest`. ERROR_OUT_OF_MEMORY.
MUST_USE Error pi_fields_keep_unused(PiFields *fields);

// Returns a name as our strings hold it: one that is too long is cut and ends in its hash, so two
// places that name the same thing still do. NULL if `text` is, or if the arena is used up.
char *pi_name(Arena *arena, char *text);
