// The listener on the Unix socket. It speaks the wire of an SP REP socket by itself: NNG's own
// listener costs three to five times as much per request (docs/rationale.md).

#pragma once

#include "report/error_detail.h"
#include "transport/listener.h"

typedef struct ListenerSpOptions {
    Requests *requests; // borrowed until the listener is freed
    const char *path;   // of the socket
    size_t clients_max;
} ListenerSpOptions;

// Listens. Returns ERROR_UNAVAILABLE: the path is in use; ERROR_INVALID_ARGUMENT, ERROR_IO,
// ERROR_OUT_OF_MEMORY. `detail` says why.
MUST_USE Error listener_sp_start(const ListenerSpOptions *options, ErrorDetail *detail,
                                 Listener **out);
