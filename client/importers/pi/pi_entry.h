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
    uint32_t position; // in the file, if the entry is stored ahead of its turn; else UINT32_MAX
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
