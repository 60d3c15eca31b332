// Maps one entry of a file of pi to an entry of the store, as docs/systems/pi.md says.

#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "names.h"

// The source in the external IDs of sessions and entries.
#define PI_SOURCE "pi"

// The subtype of the SETTING that holds the thinking level.
#define PI_SETTING_THINKING "thinking_level"

typedef struct PiEntrySource {
    Slice json;        // one well-formed object
    char *external_id; // of the entry
    int64_t time_ms;   // for an entry without a time
    unsigned version;  // of the file
    uint32_t position; // in the file, if the entry is stored ahead of its turn; else UINT32_MAX
} PiEntrySource;

// The references of an entry, as the file has them. The import replaces them by IDs of the store.
// An empty one is not there.
typedef struct PiReferences {
    char *target_id;          // of a label, or where a branch summary comes from
    bool has_first_kept;      // a compaction names its first kept entry:
    char *first_kept_id;      // by this ID …
    int64_t first_kept_place; // … or, in version 1, by its place among the lines of JSON; else -1
} PiReferences;

// Fills `out` and `out_references`, which live in the arena. ERROR_TOO_LONG: the arena's budget is
// used up. ERROR_OUT_OF_MEMORY.
MUST_USE Error pi_entry_map(Arena *arena, const PiEntrySource *source, NewMessage **out,
                            PiReferences *out_references);
