// The file's own order of its entries. The log has each entry after its parent, but a file may have
// a parent behind its child. The import marks the entries that it stores ahead of their turn with
// their position in the file; the export holds these back until their turn comes.

#pragma once

#include "importers/importer.h"

// The member of data_json with the position of a marked entry among the file's entries, from 0. It
// is the first member.
#define PI_POSITION_NAME "tine.position"

// Returns the position of a marked entry; UINT32_MAX if it is not marked.
uint32_t pi_position_of(const Message *message);

typedef struct PiHeld {
    uint32_t position;
    Message *message;   // owned
    Original *original; // owned; NULL: it has none
} PiHeld;

// Begins zeroed.
typedef struct PiOwnOrder {
    uint32_t next; // the position of the entry that is written next
    PiHeld *held;  // sorted by position, the greatest first; owned
    size_t count, capacity;
    size_t bytes; // of what is held
} PiOwnOrder;

void pi_own_order_free(PiOwnOrder *order);

// Holds an entry back. Takes both. ERROR_OUT_OF_MEMORY.
MUST_USE Error pi_own_order_hold(PiOwnOrder *order, uint32_t position, Message *message,
                                 Original *original);

// Returns true and the entry that was held and is next in the file. With `is_end` set, nothing else
// will come, or too much is held: returns the one with the least position. The caller frees both.
bool pi_own_order_take(PiOwnOrder *order, bool is_end, PiHeld *out);
