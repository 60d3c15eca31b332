// Cursors: where a listing goes on, opaque to the caller.
//
// A cursor is bound to its listing by a hash of the request without cursor and page bounds, so that
// one of another listing is refused instead of read as nonsense.

#pragma once

#include "rpc/rpc.h"

typedef struct Cursor {
    Ulid pin;      // the history as it was at the first page
    Ulid position; // the last entry looked at
    Ulid bound;    // of a marker's window
    int64_t number;
} Cursor;

// The cursor that the request brought; `*out_found` false if it brought none.
// ERROR_INVALID_ARGUMENT: it is not one of ours, or of another listing.
MUST_USE Error cursor_read(Rpc *rpc, const char *text, bool *out_found, Cursor *out);

// The text of a cursor, in the call's arena.
MUST_USE Error cursor_write(Rpc *rpc, const Cursor *cursor, char **out_text);
