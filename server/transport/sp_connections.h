// The connections on the Unix socket (sp_connection.h), and the timers that watch over them.
//
// A connection has a place, which is used again, and a serial, which is not: who comes late with
// the serial of one that is gone touches nothing.

#pragma once

#include "report/error_detail.h"
#include "rpc/engine.h"

typedef struct Connections Connections;

typedef struct ConnectionsOptions {
    Engine *engine;
    size_t clients_max;
} ConnectionsOptions;

// ERROR_OUT_OF_MEMORY; ERROR_IO: no descriptor for it.
MUST_USE Error connections_open(const ConnectionsOptions *options, ErrorDetail *detail,
                                Connections **out);

// Nobody may wait for connections any more, and no call may be left. NULL is allowed.
void connections_free(Connections *connections);

// The epoll of the connections and their timers. Events whose number is below EVENTS_OWN are of
// descriptors that the caller has added itself, all others are for connections_ready.
int connections_poller(const Connections *connections);
enum { EVENTS_OWN = 8 };

// Takes a descriptor that was just accepted, and closes it when the connection ends. `is_welcome`
// false: it is turned away after the hellos.
void connections_add(Connections *connections, int file, bool is_welcome);

// Something happened, as epoll says. `inbox` has room for RECEIVE_BYTES.
void connections_ready(Connections *connections, uint64_t number, uint32_t events, uint8_t *inbox);

// A thread stays with the connection whose event it has just seen to, if that was answered and it
// may be worth it (spin.h): no other is told of what comes there. Between connections_keep and
// connections_let_go it calls connections_look, which sees to what has come; false: it is to go.
MUST_USE bool connections_keep(Connections *connections, uint64_t number);
MUST_USE bool connections_look(Connections *connections, uint64_t number, uint8_t *inbox);
void connections_let_go(Connections *connections, uint64_t number);

// Newcomers are turned away, requests refused.
void connections_refuse(Connections *connections);

// As requests_drain.
MUST_USE bool connections_drain(Connections *connections, int64_t until_ns);

// Closes all of them. Nobody may wait for them any more.
void connections_close(Connections *connections);

size_t connections_count(Connections *connections);
uint64_t connections_request_count(Connections *connections);
void connections_trim(Connections *connections);
