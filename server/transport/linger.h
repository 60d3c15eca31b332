// Lingering: waiting until what was handed to the sockets has left this process.
//
// NNG says that a reply is sent when its connection has taken it. Of a long one the rest may still
// wait here for a client that reads slowly, and closing the socket would cut it off.

#pragma once

#include "base/error.h"

typedef struct LingerPlaces {
    const char *socket_path; // where the listener on ipc is
    uint16_t tcp_port;       // in network order; 0: none
} LingerPlaces;

// Waits until each connection that came in at these places could take more, which it can only when
// nothing waits for it here, or until the deadline. False: some cannot.
MUST_USE bool linger(const LingerPlaces *places, int64_t until_ns);
