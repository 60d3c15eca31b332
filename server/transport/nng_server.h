// The transport's listener on tcp: a REP socket of NNG's. The functions are those of transport.h,
// for this listener alone.

#pragma once

#include "report/error_detail.h"
#include "rpc/engine.h"

typedef struct NngServer NngServer;

typedef struct NngServerOptions {
    Engine *engine;  // borrowed until nng_server_free
    const char *url; // tcp://127.0.0.1:PORT
    Slice token;     // what requests must carry; borrowed until nng_server_free
    size_t clients_max;
} NngServerOptions;

MUST_USE Error nng_server_start(const NngServerOptions *options, ErrorDetail *detail,
                                NngServer **out);
void nng_server_stop_intake(NngServer *server);
MUST_USE bool nng_server_drain(NngServer *server, int64_t until_ns);
void nng_server_close(NngServer *server);
void nng_server_free(NngServer *server);
size_t nng_server_clients(NngServer *server);
uint64_t nng_server_requests(NngServer *server);
void nng_server_trim(NngServer *server);
