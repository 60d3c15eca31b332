// Contexts: what receives one request, holds it while it runs, and sends its reply.
//
// Some are receiving at any time. A request keeps its context until its reply is sent, be it
// because it waits for news, for the writer, or for a client that does not read; another one is
// opened in its place, up to CONTEXTS_MAX over all clients, and goes when it is needed no longer.

#pragma once

#include <nng/nng.h>

#include "rpc/rpc.h"
#include "transport/client.h"

typedef struct Contexts Contexts;

typedef struct ContextsOptions {
    nng_socket socket; // a REP socket
    Engine *engine;
    Clients *clients;
    Slice token; // of the clients that need one
} ContextsOptions;

// Receives from now on. ERROR_OUT_OF_MEMORY.
MUST_USE Error contexts_start(const ContextsOptions *options, Contexts **out);

// Requests that come are answered UNAVAILABLE.
void contexts_refuse(Contexts *contexts);

// Waits until every request accepted before is answered and its reply is sent. False: some are not,
// and it is `until_ns`.
MUST_USE bool contexts_drain(Contexts *contexts, int64_t until_ns);

// From now on no context calls NNG; returns when none does: then the socket may be closed.
void contexts_stop(Contexts *contexts);

// Stopped, the socket must be closed and no call running. NULL is allowed.
void contexts_free(Contexts *contexts);

uint64_t contexts_request_count(Contexts *contexts);

// Frees the memory that is kept for the next calls.
void contexts_trim(Contexts *contexts);
