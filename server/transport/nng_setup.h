// NNG's settings and errors, for the sockets of the transport and of the bus.

#pragma once

#include <nng/nng.h>

#include "base/error.h"
#include "report/error_detail.h"

// Limits the number of NNG's threads. Must be called before any other function of NNG; does nothing
// the second time.
void nng_setup(void);

// Translates an error code of NNG. `detail` says what failed and why. Returns ERROR_UNAVAILABLE for
// an address in use, else ERROR_IO or ERROR_OUT_OF_MEMORY (no memory or no thread).
MUST_USE Error nng_say(ErrorDetail *detail, const char *what, int failed);

// Listens on a path whose lock the caller holds. A socket that is there is stale and is removed.
// Returns ERROR_IO, ERROR_UNAVAILABLE, ERROR_OUT_OF_MEMORY.
MUST_USE Error nng_listen_ipc(nng_socket socket, const char *path, size_t frame_bytes_max,
                              ErrorDetail *detail, nng_listener *out);

// Returns whether the peer is a process of this user or of root. Logs if it is not.
MUST_USE bool nng_peer_is_allowed(nng_pipe pipe);
