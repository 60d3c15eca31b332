// The table of all connections on the Unix socket (sp_connection.h).

#pragma once

#include "report/error_detail.h"
#include "transport/sp_connection.h"

typedef struct SpConnections SpConnections;

// `listener` and `poller`, the epoll that waits for the connections, are borrowed; the listener
// need not be complete yet. The connections' events have numbers above UINT32_MAX. Returns
// ERROR_OUT_OF_MEMORY, or ERROR_IO: no descriptor, which `detail` tells.
MUST_USE Error sp_connections_open(Listener *listener, int poller, ErrorDetail *detail,
                                   SpConnections **out);

// No thread may wait for connections and no request may be left. NULL is allowed.
void sp_connections_free(SpConnections *connections);

// Takes a descriptor that was just accepted, and begins its connection.
void sp_connections_add(SpConnections *connections, int file, bool is_welcome);

// Returns the place of the connection with this number. It is valid even if the connection is gone.
SpConnection *sp_connections_at(SpConnections *connections, uint64_t number);

// A timer that runs while some peer has not said hello. The caller polls it and calls
// sp_connections_end_silent when it ends: this ends the connections that have had HELLO_WAIT_MS.
int sp_connections_timer(const SpConnections *connections);
void sp_connections_end_silent(SpConnections *connections);

// Settles the loans of all replies that wait.
void sp_connections_settle(SpConnections *connections);

// Ends all connections. No thread may wait for them any more.
void sp_connections_end(SpConnections *connections);
