// The request machine: runs the requests that listeners receive and gives the replies back.
//
// A listener takes a request (request_take), fills in what it received, and begins it
// (request_begin). The machine counts it, refuses it or lets it wait for its turn, and submits it
// to the engine. When the engine has answered, the machine gives the reply to the listener
// (ListenerOps send). The request ends when the socket has taken the reply (request_sent).
//
// Whoever hands a request on must not touch it afterwards: it may have ended on another thread.

#pragma once

#include "rpc/rpc.h"
#include "transport/listener.h"

// A request of a peer, from its first byte until its reply is sent.
struct PeerRequest {
    AccountEntry entry; // the first member: what accounts_next returns is its request
    Requests *requests;
    Rpc *rpc;           // owned; NULL before request_begin and after request_reply_copied
    bool is_accepted;   // requests_drain waits for it
    bool has_late_loan; // the reply waits for its peer and borrows from a snapshot meanwhile

    // The listener's.
    void *context;
    PeerRequest *next;  // in a list of the listener
    size_t route_bytes; // of the frame: the IDs before the request
    size_t frame_bytes;
    uint8_t frame[];
};

// Returns ERROR_OUT_OF_MEMORY, or ERROR_IO: no descriptor, which `detail` tells.
MUST_USE Error requests_open(Engine *engine, ErrorDetail *detail, Requests **out);

// No request may be left. NULL is allowed.
void requests_close(Requests *requests);

// A peer connects, over `connection`. Returns false if it must be turned away: the listener has too
// many, there is no memory, or the server stops. requests_disconnect may be called either way.
MUST_USE bool requests_connect(Listener *listener, uint32_t connection_id, void *connection);
void requests_disconnect(Listener *listener, uint32_t connection_id);

// Makes a request of a connected peer with room for a frame of `frame_bytes`. Returns NULL if the
// connection is gone or there is no memory.
PeerRequest *request_take(Listener *listener, uint32_t connection_id, size_t frame_bytes);

// Ends a request that was not begun.
void request_abandon(PeerRequest *request);

// Runs the request, lets it wait for its turn, or refuses it. `bytes` is the encoded Request,
// borrowed until the listener is given the reply.
void request_begin(PeerRequest *request, Slice bytes);

// Returns the encoded Response, borrowed until request_sent or request_reply_copied. Only for a
// listener that does not take loans.
static inline Slice request_reply(const PeerRequest *request)
{
    return buffer_slice(&request->rpc->reply);
}

// The same for a listener that takes loans: the size of the encoded Response, and its parts
// (rpc/loan.h).
static inline size_t request_reply_bytes(const PeerRequest *request)
{
    return loan_reply_bytes(&request->rpc->loan, &request->rpc->reply);
}

static inline size_t request_reply_parts(const PeerRequest *request, size_t from, size_t count_max,
                                         struct iovec *out)
{
    return loan_parts(&request->rpc->loan, &request->rpc->reply, from, count_max, out);
}

// The reply must wait for its peer; all before byte `sent` has been sent. Lets it keep its loan for
// now, or settles it if too many replies do so. Returns false if there is no memory for that: the
// connection must end.
MUST_USE bool request_wait(PeerRequest *request, size_t sent);

// Settles the loan of a reply that waits. A listener calls this for all its replies when
// requests_look returns true, so that no peer keeps a snapshot for longer than UNSENT_LOOK_MS.
// Returns false as request_wait.
MUST_USE bool request_settle(PeerRequest *request, size_t sent);

// The listener has copied the reply: gives back the memory that the request does not need any more.
void request_reply_copied(PeerRequest *request);

// The socket has taken the reply, or never will. Ends the request, and runs those whose turn this
// makes it.
void request_sent(PeerRequest *request, bool is_taken);

// A timer that the machine starts when replies wait to be read. A listener polls it and calls
// requests_look when it ends: this cuts off the peers that do not read their replies. Returns true
// if replies wait that have a loan.
int requests_timer(const Requests *requests);
MUST_USE bool requests_look(Requests *requests);

// From now on connections are turned away and requests answered UNAVAILABLE.
void requests_refuse(Requests *requests);

// Waits until every request accepted before requests_refuse is answered and its reply is sent, or
// until the deadline. Returns false if some are left.
MUST_USE bool requests_drain(Requests *requests, int64_t until_ns);

// From now on no request that waits for its turn gets it: the sockets are about to close.
void requests_stop(Requests *requests);

// Returns how many of the replies to a connected peer the socket has taken; else 0.
uint64_t requests_taken(Listener *listener, uint32_t connection_id);

size_t requests_connections(const Listener *listener);
uint64_t requests_count(Requests *requests); // since the start

// Frees the memory that is kept for the next requests. Returns false if there was none.
bool requests_trim(Requests *requests);
