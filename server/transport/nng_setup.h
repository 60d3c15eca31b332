// What the sockets of the transport and of the bus share.

#pragma once

#include <nng/nng.h>

#include "base/error.h"
#include "report/error_detail.h"

// Limits NNG's threads. Before any other call of NNG; the second time it does nothing.
void nng_setup(void);

// Says what failed. ERROR_UNAVAILABLE for an address in use, else ERROR_IO, ERROR_OUT_OF_MEMORY.
MUST_USE Error nng_say(ErrorDetail *detail, const char *what, int failed);

// Listens on a path, of which the caller holds the lock: what lies there is stale and is removed,
// unless it is not a socket. ERROR_IO, ERROR_UNAVAILABLE.
MUST_USE Error nng_listen_ipc(nng_socket socket, const char *path, size_t frame_bytes_max,
                              ErrorDetail *detail, nng_listener *out);

// Whether the process at the other end is this user's, or root's. Logs if not.
MUST_USE bool nng_peer_is_allowed(nng_pipe pipe);
