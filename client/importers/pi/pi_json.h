// JSON as pi wrote it, looked at in place: values are slices of the line, and nothing is built.
//
// The text must have passed json_is_well_formed (text/json.h). Members are found as JavaScript has
// them: of several with one name the last counts.

#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/slice.h"

// The members of an object or the elements of a list, one by one.
typedef struct PiWalk {
    Slice text;
    size_t at;
    bool is_object;
} PiWalk;

// Of a value that is neither, a walk that has ended.
PiWalk pi_walk(Slice value);

// False: the end. `out_key` still has its quotes; in a list it is empty.
bool pi_walk_next(PiWalk *walk, Slice *out_key, Slice *out_value);

// Whether a key, quotes and escapes and all, is this name.
bool pi_key_is(Slice key, const char *name);

bool pi_is_text(Slice value);
bool pi_is_object(Slice value);
bool pi_is_list(Slice value);
bool pi_is_true(Slice value);
bool pi_is_false(Slice value);

// The values of `count` named members of an object, in one pass; those that are not there are
// empty. All other members go to `rest` (may be NULL) as they stand, with commas between.
// ERROR_OUT_OF_MEMORY.
MUST_USE Error pi_members(Slice object, const char *const *names, size_t count, Slice *out,
                          Buffer *rest);

// A string, decoded. What our strings cannot hold (NUL, half a surrogate pair, bytes that are no
// UTF-8) becomes U+FFFD. NULL past the arena's budget; "" for a value that is no string.
char *pi_text(Arena *arena, Slice value);

// The same text with U+FFFD for each byte that belongs to no character. NULL past the arena's
// budget.
char *pi_mended(Arena *arena, Slice text);

// A value's own JSON as our fields hold JSON: in UTF-8, and "" if it is nested too deep for them.
// NULL past the arena's budget.
char *pi_raw(Arena *arena, Slice value);

// 0 for what is no number or has no place in an int64.
double pi_number(Slice value);
int64_t pi_integer(Slice value);
int64_t pi_round(double number);

// Milliseconds since the epoch of an ISO 8601 time; 0 if it is none, or outside what we store.
int64_t pi_time_ms(Slice value);

// Writes them as pi writes them.
enum { PI_TIME_BYTES = 32 };
void pi_time_write(int64_t time_ms, char out[PI_TIME_BYTES]);
