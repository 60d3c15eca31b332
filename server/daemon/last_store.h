// Remembers which store the last tined at a socket had, in a note beside the socket, SOCKET.store.
// The note is there while a tined runs and after it was killed.
//
// Without the note, a client that knows only the socket of a killed tined would start one there
// with the default store: all sessions would seem to be lost, and new ones would go elsewhere.

#pragma once

#include "base/error.h"
#include "report/error_detail.h"

// Checks whether the store at `data`, which nobody has asked for by name, may be opened at
// `socket`: if there is no note, or it names this store or one that is gone. Returns
// ERROR_INVALID_ARGUMENT if it names another store; `detail` says which, and what to do.
MUST_USE Error last_store_check(const char *socket, const char *data, ErrorDetail *detail);

// Replaces the note. Ignores a failure, which is no reason not to start.
void last_store_note(const char *socket, const char *data);

// Removes the note: this tined was told to end, so the next one may open any store.
void last_store_forget(const char *socket);
