// The bus: where events go out to whoever subscribes.
//
// It sends each event of each commit, once it can be read, and broadcast ones, in their order, and
// from time to time the newest sequence, so that the last loss is noticed too. docs/wire.md has the
// bytes. NNG's PUB serves it now (bus_nng.c); another make would be behind this header too.

#pragma once

#include "report/error_detail.h"
#include "rpc/engine.h"

typedef struct Bus Bus;

typedef struct BusOptions {
    Engine *engine;          // borrowed until bus_close
    const char *socket_path; // of the requests; events go out beside it (os/socket_path.h)
    size_t subscribers_max;  // 0: SUBSCRIBERS_MAX
    int64_t heartbeat_ms;    // 0: HEARTBEAT_MS
} BusOptions;

// Listens, on a socket of mode 0600, for processes of this user and of root. The caller holds the
// lock of the request socket's path: what lies at the path of the events is replaced.
// ERROR_INVALID_ARGUMENT: that path is too long; ERROR_UNAVAILABLE, ERROR_IO, ERROR_OUT_OF_MEMORY.
MUST_USE Error bus_start(const BusOptions *options, ErrorDetail *detail, Bus **out);

// Sends what was committed before, leaves subscribers BUS_DRAIN_MS to read it, then closes all
// connections: what a subscriber has not read by then may not reach it. For the events of the very
// last commit, call engine_end before. NULL is allowed.
void bus_close(Bus *bus);

size_t bus_subscriber_count(Bus *bus);
