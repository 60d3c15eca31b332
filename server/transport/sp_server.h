// The transport's listener on its Unix socket. It speaks the wire of an SP REP socket by itself:
// NNG's own listener costs three to five times as much per request (docs/rationale.md).
//
// The functions are those of transport.h, for this socket alone.

#pragma once

#include "report/error_detail.h"
#include "rpc/engine.h"

typedef struct SpServer SpServer;

typedef struct SpServerOptions {
    Engine *engine;   // borrowed until sp_server_free
    const char *path; // of the socket
    size_t clients_max;
} SpServerOptions;

MUST_USE Error sp_server_start(const SpServerOptions *options, ErrorDetail *detail, SpServer **out);
void sp_server_stop_intake(SpServer *server);
MUST_USE bool sp_server_drain(SpServer *server, int64_t until_ns);
void sp_server_close(SpServer *server); // may be called twice
void sp_server_free(SpServer *server);
size_t sp_server_clients(SpServer *server);
uint64_t sp_server_requests(SpServer *server);
void sp_server_trim(SpServer *server);
