// The transport: receives requests on the sockets, runs them on the engine and sends the replies.
//
// This header is all that the daemon knows of it.

#pragma once

#include "report/error_detail.h"
#include "rpc/engine.h"

typedef struct Transport Transport;

typedef struct TransportOptions {
    Engine *engine;          // borrowed until transport_free
    const char *socket_path; // created with mode 0600; replaces a socket that is there
    const char *tcp_url;     // tcp://127.0.0.1:PORT; NULL: none
    Slice tcp_token;         // what requests over tcp must carry; borrowed until transport_free
    size_t clients_max;      // 0: CLIENTS_MAX
} TransportOptions;

// Listens. Serves only processes of this user and of root on the socket. A process may have one
// transport. Returns ERROR_UNAVAILABLE: an address is in use; ERROR_INVALID_ARGUMENT, ERROR_IO,
// ERROR_OUT_OF_MEMORY. `detail` says why.
MUST_USE Error transport_start(const TransportOptions *options, ErrorDetail *detail,
                               Transport **out);

// From now on connections are turned away and requests answered UNAVAILABLE.
void transport_stop_intake(Transport *transport);

// Waits until every request accepted before transport_stop_intake is answered and its reply has
// left the process, or until the deadline. Returns false if some are left.
MUST_USE bool transport_drain(Transport *transport, int64_t until_ns);

// Closes all connections. Requests that still run may end later.
void transport_close(Transport *transport);

// Must be called after the engine is closed, so that no request is left. NULL is allowed.
void transport_free(Transport *transport);

typedef struct TransportStats {
    size_t clients;
    uint64_t requests; // since the start
} TransportStats;

void transport_stats(Transport *transport, TransportStats *out);

// Frees the memory that is kept for the next requests. Returns false if there was none.
bool transport_trim(Transport *transport);
