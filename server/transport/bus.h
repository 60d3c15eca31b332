// The bus: sends events to the subscribers of a socket.
//
// It sends the events of each commit after the commit is visible, and broadcast events, in order. A
// heartbeat with the newest sequence follows from time to time, so that a subscriber notices the
// loss of the last events too. docs/wire.md has the bytes. bus_nng.c serves it by a PUB socket of
// NNG's.

#pragma once

#include "report/error_detail.h"
#include "rpc/engine.h"

typedef struct Bus Bus;

typedef struct BusOptions {
    Engine *engine;          // borrowed until bus_close
    const char *socket_path; // of the requests; that of the events is beside it (os/socket_path.h)
    size_t subscribers_max;  // 0: SUBSCRIBERS_MAX
    int64_t heartbeat_ms;    // 0: HEARTBEAT_MS
} BusOptions;

// Listens on a socket of mode 0600 for processes of this user and of root. The caller must hold the
// lock of the request socket's path: a socket at the path of the events is replaced. Returns
// ERROR_INVALID_ARGUMENT: that path is too long; ERROR_UNAVAILABLE, ERROR_IO, ERROR_OUT_OF_MEMORY.
// `detail` says why.
MUST_USE Error bus_start(const BusOptions *options, ErrorDetail *detail, Bus **out);

// Sends the events that are queued, gives subscribers BUS_DRAIN_MS to read them, and closes all
// connections; what a subscriber has not read by then it may not get. Call engine_end first, so
// that the events of the last commit are queued. NULL is allowed.
void bus_close(Bus *bus);

size_t bus_subscriber_count(Bus *bus);
