// One entry of a pi file as an entry of ours. docs/systems/pi.md has the table.

#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "names.h"

// The source of a pi session's external id and of its entries'.
#define PI_SOURCE "pi"

// What pi calls our SETTING of its thinking level.
#define PI_SETTING_THINKING "thinking_level"

typedef struct PiEntrySource {
    Slice json;        // one well-formed object
    char *external_id; // what the entry is to be found by
    int64_t time_ms;   // for an entry that says none
    unsigned version;  // of the file
} PiEntrySource;

// What an entry says of others, in the file's words: the import puts ids of the store in their
// place. Empty: nothing.
typedef struct PiReferences {
    char *target_id;          // of a label, or where a branch summary comes from
    bool has_first_kept;      // a compaction says where what it keeps begins:
    char *first_kept_id;      // with this entry …
    int64_t first_kept_place; // … or, in version 1, at this place among the parsed lines; else -1
} PiReferences;

// `out` lives in the arena. ERROR_TOO_LONG: the arena's budget is used up. ERROR_OUT_OF_MEMORY.
MUST_USE Error pi_entry_map(Arena *arena, const PiEntrySource *source, NewMessage **out,
                            PiReferences *out_references);

// A name as our strings hold it: one that is too long is cut, and ends in its hash, so that two
// places that name the same thing still do.
char *pi_name(Arena *arena, char *text);

// The content of a message as parts (pi_parts.c). `content` is a string, a list of blocks, or
// something else, which gives none.
MUST_USE Error pi_parts(Arena *arena, Slice content, NewMessage *out);

// The one part of a tool's result.
typedef struct PiToolResult {
    Slice tool_call_id, tool_name, content, details, is_error;
} PiToolResult;

MUST_USE Error pi_tool_result(Arena *arena, const PiToolResult *result, NewMessage *out);
