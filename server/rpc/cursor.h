// Cursors: say where the next page of a listing begins. Opaque to the client.
//
// A cursor contains a hash of the request without its cursor and page bounds, so a cursor of
// another listing is refused.

#pragma once

#include "rpc/rpc.h"

typedef struct Cursor {
    Ulid pin;      // the history as it was at the first page
    Ulid position; // the last entry that was looked at
    Ulid bound;    // of a marker's window
    int64_t number;
} Cursor;

// Reads the cursor of the request; `*out_found` is false if it has none. Returns
// ERROR_INVALID_ARGUMENT if it is no cursor, or the cursor of another listing.
MUST_USE Error cursor_read(Rpc *rpc, const char *text, bool *out_found, Cursor *out);

// Writes a cursor as text, in the Rpc's arena.
MUST_USE Error cursor_write(Rpc *rpc, const Cursor *cursor, char **out_text);
