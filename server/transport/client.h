// Clients: the open connections, and what each of them has in flight.
//
// A request is *running* from its arrival until its reply is handed to the socket: at most
// CLIENT_REQUESTS_MAX of a connection at once, one more is refused. A reply is *unsent* from then
// on until the socket has taken it: a client that lets too many of them wait is cut off. The two
// are counted apart because a client may have read its reply, and sent its next request, before
// the socket tells us so.
//
// Time passes by looks (clients_look): a reply that has been unsent over UNSENT_LOOKS_MAX of them
// is overdue, and its connection cut off. Not by a clock: while the process stands still no client
// does anything wrong.
//
// While CLIENT_UNSENT_BYTES_READY are unsent the connection's further requests wait for their turn:
// who does not read costs no more work and memory than that, however much it asks for.

#pragma once

#include "base/error.h"

typedef struct Client Client;
typedef struct Clients Clients;

// ERROR_OUT_OF_MEMORY.
MUST_USE Error clients_open(size_t count_max, Clients **out);

// No request may be left. NULL is allowed.
void clients_close(Clients *clients);

// A connection comes. False: there are too many, or no memory.
MUST_USE bool clients_add(Clients *clients, uint32_t pipe_id, bool needs_token);

// It goes. A connection that was never added is ignored.
void clients_remove(Clients *clients, uint32_t pipe_id);

size_t clients_count(Clients *clients);

// A request has come; what is returned is for the functions below and goes with client_sent. NULL:
// the connection is gone. `*out_may_run` false: too many of its requests are running already.
Client *clients_request(Clients *clients, uint32_t pipe_id, bool *out_may_run);

// A reply on its way: a part of what the caller keeps of its request.
typedef struct ClientReply {
    Client *client;
    size_t bytes; // the caller's to set; the rest is not
    struct ClientReply *next, *previous;
    uint64_t look;
} ClientReply;

// A request that waits for its turn: a part of what the caller keeps of it.
typedef struct ClientTurn {
    struct ClientTurn *next;
    size_t bytes; // of the request; the caller's to set
} ClientTurn;

typedef enum TurnResult {
    TURN_NOW,   // it may run
    TURN_LATER, // when clients_next gives `turn` back; its client stays until then
    TURN_NEVER, // WAITING_BYTES_MAX are waiting already: it is to be refused
} TurnResult;

MUST_USE TurnResult client_turn(Clients *clients, Client *client, ClientTurn *turn);

// A request, of any connection, whose turn has come; NULL: none. `*out_is_connected` false: its
// connection is gone.
ClientTurn *clients_next(Clients *clients, bool *out_is_connected);

bool client_needs_token(const Client *client);

// The reply is about to be handed to the socket. `was_running` is what `*out_may_run` said. False:
// too much is unsent, of this connection or of all, and it is to be closed.
MUST_USE bool client_answered(Clients *clients, Client *client, bool was_running,
                              ClientReply *reply);

// The socket has taken the reply, or failed to. True: clients_next has something to give.
MUST_USE bool client_sent(Clients *clients, ClientReply *reply, bool is_taken);

// Looks once more. True: there are unsent replies, and it is to be looked again.
MUST_USE bool clients_look(Clients *clients);

// A connection with a reply that is overdue: it counts as gone from now on, and is to be closed. 0:
// there is none.
uint32_t clients_overdue(Clients *clients);

// How many replies it has taken for a connection; 0 for one that is none, or gone.
uint64_t clients_taken(Clients *clients, uint32_t pipe_id);

// The connection is about to be closed for what it leaves unread. True the first time.
bool client_cut_off(Clients *clients, Client *client);
