// One connection on the Unix socket, as an SP REP socket has it: the hello, frames in, replies out.
//
//     hello   00 'S' 'P' 00 | u16 protocol | 00 00     each side sends one
//     frame   01 | u64 length | payload                big-endian
//
// Its mutex guards it, and is held while bytes go in or out, never while a request runs: so the
// requests of one connection run at the same time. All functions here want it held.

#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "os/spin.h"
#include "transport/sp_request.h"

enum {
    FRAME_HEAD_BYTES = 9,
    RECEIVE_BYTES = 64 * 1024,
};

// What all connections have in common. Borrowed.
typedef struct ConnectionShared {
    int poller; // the epoll that waits for them
    Clients *clients;
    Requests *requests;
    atomic_bool is_refusing;
} ConnectionShared;

typedef struct Connection {
    pthread_mutex_t mutex; // guards all below
    ConnectionShared *shared;
    uint32_t place;
    uint32_t serial; // of who is here; 0: nobody
    uint64_t number; // of its events
    int file;        // owned
    bool is_welcome, is_greeted;
    bool wants_room; // epoll tells when there is room for what is unsent
    bool is_kept;    // a thread stays with it: epoll does not tell what comes
    Spin spin;
    int64_t begun_ns;

    uint8_t head[FRAME_HEAD_BYTES]; // of the hello or of a frame, so far
    size_t head_bytes;
    SpRequest *incoming; // owned; NULL: a head comes next
    size_t incoming_bytes;
    size_t running; // requests that are not answered

    SpRequest *unsent, **unsent_end; // answered, oldest first; owned
    size_t sent_bytes;               // of the oldest one's frame
    uint32_t next_free;
} Connection;

// A list of requests, oldest first. Begins with `end` at `first`.
typedef struct RequestList {
    SpRequest *first, **end;
} RequestList;

// Says our hello and has epoll wait for it; `serial`, `number`, `file` and `is_welcome` are set.
// False: it is to end.
MUST_USE bool connection_begin(Connection *connection);

// Receives what is there, up to a bound; the requests that came whole are added to `whole`.
// `is_ending`: epoll says that the other side is gone. `inbox` has room for RECEIVE_BYTES. False:
// it is to end.
MUST_USE bool connection_receive(Connection *connection, bool is_ending, uint8_t *inbox,
                                 RequestList *whole);

// Has a thread stay with it to receive what comes, if nothing of it is under way; until
// connection_let_go no other is told of it.
MUST_USE bool connection_keep(Connection *connection);
MUST_USE bool connection_let_go(Connection *connection); // false: it is to end

// Sends a request's reply, behind those that wait already. SEND_LATER: it is the connection's now.
// `*out_ends`: it is to end.
MUST_USE SendResult connection_send(Connection *connection, SpRequest *request, bool *out_ends);

// Sends what waits; what was sent whole is added to `done`. False: it is to end.
MUST_USE bool connection_send_unsent(Connection *connection, RequestList *done);

// Closes it. Returns the requests whose replies were not sent.
MUST_USE SpRequest *connection_end(Connection *connection);
