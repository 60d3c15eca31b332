// The store that the last tined at a socket kept: a note beside the socket, SOCKET.store, there
// while a tined runs and after one that was killed. Without it, a tined that is started at the
// socket of a killed one, by a client that knows no more than the socket, would open the default
// store there: all sessions would seem to be lost, and new ones would go to another place.

#pragma once

#include "base/error.h"
#include "report/error_detail.h"

// Whether the store at `data`, which nobody has asked for by name, may be opened at `socket`. True
// if the note names it, or one that is gone, or if there is none. ERROR_INVALID_ARGUMENT: it names
// another; `detail` says which, and what to do.
MUST_USE Error last_store_check(const char *socket, const char *data, ErrorDetail *detail);

// Writes the note, in the place of the one before. A failure is no reason not to start.
void last_store_note(const char *socket, const char *data);

// This tined has ended as it was told to: the next one is free.
void last_store_forget(const char *socket);
