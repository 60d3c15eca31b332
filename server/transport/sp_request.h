// Requests of the Unix socket: each holds its frame, its call, and later its reply.
//
// A request comes complete from its connection (request_begin), waits for its turn if its
// connection leaves replies unread, runs as a call, and is handed back to its connection with the
// reply. Whoever hands it on touches it no more.

#pragma once

#include "rpc/rpc.h"
#include "transport/client.h"

typedef struct Requests Requests;

typedef struct SpRequest {
    ClientTurn turn; // the first: what comes from clients_next is its request
    Requests *requests;
    Rpc rpc;

    // Of the connection that it came from.
    uint32_t place, serial;
    Client *client;
    bool may_run;
    bool is_accepted; // a drain waits for it

    uint8_t *bytes; // the frame's payload: the way that the reply goes back, then the Request
    size_t size, capacity;
    size_t way_bytes;
    ClientReply reply;
    bool is_late;           // the reply had to wait for its client
    struct SpRequest *next; // in a list of whoever holds it
} SpRequest;

// What becomes of a reply.
typedef enum SendResult {
    SEND_DONE,  // the kernel has it
    SEND_LATER, // the connection keeps the request, and calls request_sent
    SEND_GONE,  // the connection is gone
} SendResult;

// What requests need of the connections.
typedef struct RequestsHooks {
    SendResult (*send)(void *context, SpRequest *request);
    void (*cut_off)(void *context, uint32_t place, uint32_t serial); // closes the connection
    void *context;
} RequestsHooks;

typedef struct RequestsOptions {
    Engine *engine;
    Clients *clients;
    RequestsHooks hooks;
} RequestsOptions;

// ERROR_OUT_OF_MEMORY.
MUST_USE Error requests_open(const RequestsOptions *options, Requests **out);
void requests_close(Requests *requests); // no call may be left; NULL is allowed

// One with room for a payload of `size` bytes. NULL: no memory.
SpRequest *request_take(Requests *requests, size_t size);
void request_give(SpRequest *request); // one that was never begun

// It has come: runs it, or has it wait for its turn, or refuses it.
void request_begin(SpRequest *request);

// Its reply is out, or never will be. Then it may be the turn of those that waited for it.
void request_sent(SpRequest *request, bool is_taken);

// The reply in two parts, way and Response.
void request_reply(const SpRequest *request, Slice out[2]);

// Requests that come are answered UNAVAILABLE.
void requests_refuse(Requests *requests);

// Those that wait for their turn never get it: the server closes.
void requests_stop(Requests *requests);

// Waits until every request accepted before is answered and its reply is sent. False: some are not,
// and it is `until_ns`.
MUST_USE bool requests_drain(Requests *requests, int64_t until_ns);

uint64_t requests_count(Requests *requests); // since the start
void requests_trim(Requests *requests);
