// All connections on the Unix socket (sp_connection.h): where each is kept, and what ends it.
//
// A connection has a place, which is used again, and a serial, which is not: an event or a reply
// for a connection that is gone finds another serial in its place.

#pragma once

#include "report/error_detail.h"
#include "transport/listener.h"

typedef struct SpConnections SpConnections;

// Returns ERROR_OUT_OF_MEMORY, or ERROR_IO: no descriptor, which `detail` tells. `listener` is
// borrowed, and need not be complete yet.
MUST_USE Error sp_connections_open(Listener *listener, ErrorDetail *detail, SpConnections **out);

// No thread may wait for connections and no request may be left. NULL is allowed.
void sp_connections_free(SpConnections *connections);

// The epoll that waits for the connections. Events whose number is below EVENTS_OWN belong to
// descriptors that the caller has added; all others are for sp_connections_ready.
int sp_connections_poller(const SpConnections *connections);
enum { EVENTS_OWN = 8 };

// Takes a descriptor that was just accepted, and closes it when the connection ends. `is_welcome`
// false: the peer is turned away after the hellos.
void sp_connections_add(SpConnections *connections, int file, bool is_welcome);

// Handles one event of epoll. `inbox` has room for RECEIVE_BYTES.
void sp_connections_ready(SpConnections *connections, uint64_t number, uint32_t events,
                          uint8_t *inbox);

// Lets the calling thread stay with the connection whose event it has just handled, if that may be
// worth it (os/spin.h): no other thread is told what arrives there. Until sp_connections_let_go the
// thread calls sp_connections_look, which handles what has arrived and returns false when the
// thread must go.
MUST_USE bool sp_connections_keep(SpConnections *connections, uint64_t number);
MUST_USE bool sp_connections_look(SpConnections *connections, uint64_t number, uint8_t *inbox);
void sp_connections_let_go(SpConnections *connections, uint64_t number);

// Closes all of them. No thread may wait for them any more.
void sp_connections_close(SpConnections *connections);

// ListenerOps send and cut_off.
SendResult sp_connections_send(PeerRequest *request);
void sp_connections_cut_off(Account *account);
