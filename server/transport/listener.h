// A listener: receives requests from the peers of one kind of socket and sends their replies.
//
// A listener knows sockets and frames. It gives each request to the request machine (request.h),
// which calls the functions below. transport.c starts and stops listeners by them.

#pragma once

#include "base/slice.h"
#include "transport/account.h"

typedef struct Listener Listener;
typedef struct PeerRequest PeerRequest;
typedef struct Requests Requests;

typedef enum SendResult {
    SEND_DONE,  // the socket has taken the reply
    SEND_LATER, // the listener keeps the request, and calls request_sent
    SEND_GONE,  // the connection is gone
} SendResult;

// All may be called on any thread.
typedef struct ListenerOps {
    // Sends the reply of a request.
    SendResult (*send)(PeerRequest *request);
    bool takes_loans; // `send` can send a reply that borrows from a snapshot (rpc/loan.h)

    // The request gets no reply: the connection is being cut off. NULL: nothing is to be done.
    void (*drop)(PeerRequest *request);

    // Closes the connection of an account, which the caller holds.
    void (*cut_off)(Account *account);

    // Waits until all replies that sockets have taken have left the process, or until the deadline.
    // Returns false if some have not. NULL: there is nothing to wait for.
    bool (*drain)(Listener *listener, int64_t until_ns);

    // Closes all connections. Requests that still run may end later.
    void (*close)(Listener *listener);

    // Called once, after close, when no request is left.
    void (*free)(Listener *listener);
} ListenerOps;

// The first member of each listener. The listener sets all of it before its first connection.
struct Listener {
    AccountGroup group; // the first member: the group of an account is its listener
    const ListenerOps *ops;
    Requests *requests; // borrowed
    Slice token_wanted; // what requests must carry; empty: nothing. Borrowed
};
