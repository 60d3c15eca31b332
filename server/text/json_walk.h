// Reads JSON in place: values are slices of the text, and nothing is built.
//
// The text must have passed json_is_well_formed (text/json.h). As in JavaScript, the last of
// several members with one name counts.

#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/slice.h"

// The members of an object or the elements of a list, one by one.
typedef struct JsonWalk {
    Slice text;
    size_t at;
    bool is_object;
} JsonWalk;

// Begins a walk over `value`. It ends at once if `value` is neither an object nor a list.
JsonWalk json_walk(Slice value);

// Moves to the next member. Returns false at the end. `out_key` still has its quotes; in a list it
// is empty.
bool json_walk_next(JsonWalk *walk, Slice *out_key, Slice *out_value);

// Returns whether a key, with its quotes and escapes, is this name.
bool json_key_is(Slice key, const char *name);

bool json_is_text(Slice value);
bool json_is_object(Slice value);
bool json_is_list(Slice value);
bool json_is_true(Slice value);
bool json_is_false(Slice value);

// Finds `count` named members of an object in one pass; those that are missing are empty slices.
// All other members are appended to `rest` (may be NULL) as they stand, with commas between.
// ERROR_OUT_OF_MEMORY.
MUST_USE Error json_members(Slice object, const char *const *names, size_t count, Slice *out,
                            Buffer *rest);

// Returns a string, decoded and NUL-terminated, in the arena. What our strings cannot hold (NUL,
// half a surrogate pair, bytes that are not UTF-8) becomes U+FFFD. "" for a value that is not a
// string. NULL past the arena's budget.
char *json_text(Arena *arena, Slice value);

// Returns a number; 0 for a value that is not one. json_integer also returns 0 for a number that
// does not fit.
double json_number(Slice value);
int64_t json_integer(Slice value);

// Rounds to the nearest integer; 0 if it does not fit.
int64_t json_round(double number);
