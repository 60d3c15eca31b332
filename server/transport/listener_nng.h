// The listener on tcp: a REP socket of NNG's.

#pragma once

#include "report/error_detail.h"
#include "transport/listener.h"

typedef struct ListenerNngOptions {
    Requests *requests; // borrowed until the listener is freed
    const char *url;    // tcp://127.0.0.1:PORT
    Slice token;        // what requests must carry; borrowed until the listener is freed
    size_t clients_max;
} ListenerNngOptions;

// Listens. Returns ERROR_UNAVAILABLE: the address is in use; ERROR_IO, ERROR_OUT_OF_MEMORY.
// `detail` says why.
MUST_USE Error listener_nng_start(const ListenerNngOptions *options, ErrorDetail *detail,
                                  Listener **out);
