// One connection on the Unix socket, which speaks the wire of an SP REP socket (wire/sp.h): the
// hello, frames in, replies out.
//
// A connection lives in a place, which is used again. Its number is not: the serial of the
// connection, which is never 0, and the place. An event or a reply for a connection that is gone
// finds another number in its place and does nothing.
//
// Each function may be called on any thread, and locks the connection itself.

#pragma once

#include <pthread.h>

#include "os/spin.h"
#include "transport/request.h"
#include "wire/sp.h"

enum { RECEIVE_BYTES = 64 * 1024 };

typedef struct SpConnection SpConnection;

// What all connections of a listener have in common.
typedef struct SpShared {
    Listener *listener;    // borrowed
    int poller;            // the epoll that waits for them; borrowed
    pthread_mutex_t mutex; // guards `free`
    SpConnection *free;    // places that no connection has
} SpShared;

// The table of connections (sp_connections.h) sets `mutex` and `shared`. All else is private to
// sp_connection.c.
struct SpConnection {
    pthread_mutex_t mutex; // guards all below but `shared` and `next_free`
    SpShared *shared;
    uint64_t number; // of its events
    uint32_t serial; // of the connection that has this place; 0: none
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
    SpConnection *next_free;
};

// Begins a connection in a free place: sends our hello and lets epoll wait for the peer's. Takes
// `file`. `is_welcome` false: the peer is turned away after the hellos.
void sp_connection_begin(SpConnection *connection, uint64_t number, int file, bool is_welcome);

// Handles an event of epoll: sends what waits, receives what has arrived, and runs the requests
// that are complete. `inbox` has room for RECEIVE_BYTES.
void sp_connection_ready(SpConnection *connection, uint64_t number, uint32_t events,
                         uint8_t *inbox);

// Lets the calling thread stay with a connection that it has just served, if that may be worth it
// (os/spin.h): epoll does not report what arrives there. Until sp_connection_let_go the thread
// calls sp_connection_look, which handles what has arrived, and returns false when the thread must
// go.
MUST_USE bool sp_connection_keep(SpConnection *connection, uint64_t number);
MUST_USE bool sp_connection_look(SpConnection *connection, uint64_t number, uint8_t *inbox);
void sp_connection_let_go(SpConnection *connection, uint64_t number);

// Settles the loans of the replies that wait (transport/request.h), if there are any.
void sp_connection_settle(SpConnection *connection);

// Ends the connection, if there is one.
void sp_connection_end(SpConnection *connection);

// Ends the connection if it began before that time and its peer has not said hello. Returns true if
// it began later and its peer has not said hello either.
bool sp_connection_end_silent(SpConnection *connection, int64_t begun_before_ns);

// ListenerOps send and cut_off.
SendResult sp_connection_send(PeerRequest *request);
void sp_connection_cut_off(Account *account);
