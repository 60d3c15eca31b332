// One connection on the Unix socket, which speaks the wire of an SP REP socket (wire/sp.h): the
// hello, frames in, replies out.
//
// The caller must hold `mutex` when it calls any function of this header. The mutex is held while
// bytes go in or out and never while a request runs, so the requests of one connection run in
// parallel. What a function leaves to do without the mutex it adds to an SpFollowUp.

#pragma once

#include <pthread.h>

#include "os/spin.h"
#include "transport/request.h"
#include "wire/sp.h"

enum { RECEIVE_BYTES = 64 * 1024 };

// What all connections have in common. Borrowed.
typedef struct SpShared {
    Listener *listener;
    int poller; // the epoll that waits for them
} SpShared;

typedef struct SpConnection {
    pthread_mutex_t mutex; // guards all below
    SpShared *shared;
    uint32_t place;
    uint32_t serial; // of the connection that has this place; 0: none
    uint64_t number; // of its events
    int file;        // owned
    bool is_welcome, is_greeted;
    bool wants_room; // epoll reports when there is room for what is unsent
    bool is_kept;    // a thread stays with it: epoll does not report what arrives
    Spin spin;
    int64_t begun_ns;

    uint8_t header[SP_FRAME_HEADER_BYTES]; // of a frame, or the hello, as far as it has arrived
    size_t header_bytes;
    PeerRequest *incoming; // owned; NULL: a header comes next
    size_t incoming_bytes;
    size_t running; // requests that are not answered

    PeerRequest *unsent, **unsent_end; // answered, oldest first; owned
    size_t sent_bytes;                 // of the frame of the oldest
    uint32_t next_free;
} SpConnection;

// Requests, oldest first. Begins with `end` at `first`.
typedef struct SpRequestList {
    PeerRequest *first, **end;
} SpRequestList;

// What is to be done when the mutex is released.
typedef struct SpFollowUp {
    SpRequestList received; // to begin
    SpRequestList sent;     // to end: the reply was sent
    SpRequestList dropped;  // to end: the reply was not sent
} SpFollowUp;

// Sends our hello and lets epoll wait for the peer's. `shared`, `place`, `serial`, `number`, `file`
// and `is_welcome` are set. Returns false if the connection must end.
MUST_USE bool sp_connection_begin(SpConnection *connection);

// Receives what has arrived, up to a bound, and adds the complete requests to `follow_up`.
// `is_ending`: epoll reports that the peer is gone. `inbox` has room for RECEIVE_BYTES. Returns
// false if the connection must end.
MUST_USE bool sp_connection_receive(SpConnection *connection, bool is_ending, uint8_t *inbox,
                                    SpFollowUp *follow_up);

// Lets the calling thread stay with the connection: until sp_connection_let_go, epoll does not
// report what arrives. sp_connection_keep returns false if something is under way;
// sp_connection_let_go returns false if the connection must end.
MUST_USE bool sp_connection_keep(SpConnection *connection);
MUST_USE bool sp_connection_let_go(SpConnection *connection);

// Sends the reply of a request, behind those that wait already. SEND_LATER: the request belongs to
// the connection now. `*out_ends`: the connection must end.
MUST_USE SendResult sp_connection_send(SpConnection *connection, PeerRequest *request,
                                       bool *out_ends);

// Sends the replies that wait and adds those that are complete to `follow_up`. Returns false if the
// connection must end.
MUST_USE bool sp_connection_send_unsent(SpConnection *connection, SpFollowUp *follow_up);

// Closes the connection and adds its unsent requests to `follow_up`.
void sp_connection_end(SpConnection *connection, SpFollowUp *follow_up);
