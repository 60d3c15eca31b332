// The transport: where requests come in and replies go out.
//
// It receives a Request, runs it as a call on the engine, and sends the Response when the call's
// on_done says so. This header is all that the daemon knows of it, so that a listener of another
// make can serve the same wire: sp_server.c on the Unix socket, NNG on tcp (nng_server.c).

#pragma once

#include "report/error_detail.h"
#include "rpc/engine.h"

typedef struct Transport Transport;

typedef struct TransportOptions {
    Engine *engine;          // borrowed until transport_free
    const char *socket_path; // created with mode 0600; what lies there is replaced
    const char *tcp_url;     // tcp://127.0.0.1:PORT; NULL: none
    Slice tcp_token;         // what requests over tcp must carry; borrowed until transport_free
    size_t clients_max;      // 0: CLIENTS_MAX
} TransportOptions;

// Listens. On the socket only processes of this user, and root's, are served. One transport a
// process. ERROR_UNAVAILABLE: the address is in use; ERROR_IO; ERROR_OUT_OF_MEMORY.
MUST_USE Error transport_start(const TransportOptions *options, ErrorDetail *detail,
                               Transport **out);

// Stops intake: connections are refused, requests that come are answered UNAVAILABLE.
void transport_stop_intake(Transport *transport);

// Waits until every request accepted before is answered and its reply is sent, the whole of it, or
// until the deadline. False: some are left.
MUST_USE bool transport_drain(Transport *transport, int64_t until_ns);

// Closes all connections. Calls that still run may end later.
void transport_close(Transport *transport);

// The engine must be closed: no call may be left. NULL is allowed.
void transport_free(Transport *transport);

typedef struct TransportStats {
    size_t clients;
    uint64_t requests; // since the start
} TransportStats;

void transport_stats(Transport *transport, TransportStats *out);

// Gives back the memory that is kept for the next calls.
void transport_trim(Transport *transport);
