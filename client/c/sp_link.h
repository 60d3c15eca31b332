// Links, connections and tickets of the SP channel.
//
// A link is what one process has of an SP channel: it connects, and connects again. A connection is
// one socket, used as long as it works. A ticket is the place of one call in flight on a
// connection. channel_sp.c explains how callers share them. The caller must hold the link's mutex
// unless a function says otherwise.

#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "channel.h"
#include "os/spin.h"
#include "sp_dial.h"
#include "sp_frame.h"

typedef enum SpTicketState {
    TICKET_FREE,
    TICKET_WAITING,
    TICKET_ANSWERED,
    TICKET_ABANDONED
} SpTicketState;

typedef struct SpTicket {
    SpTicketState state;
    uint32_t id; // of the request; 0 while the ticket is free
    Buffer reply;
    bool is_parked; // the caller waits on `wakes`
    pthread_cond_t wakes;
} SpTicket;

typedef struct SpConnection {
    int fd;
    unsigned references; // of callers, and of the link while this is its current connection
    bool is_broken;
    bool has_replied;
    bool has_sender;
    bool has_receiver;
    char why[SP_WHY_BYTES]; // why it broke
    uint32_t id_counter;
    uint8_t free_tickets[CHANNEL_IN_FLIGHT_MAX];
    unsigned free_count, abandoned_count, parked_count;
    SpTicket tickets[CHANNEL_IN_FLIGHT_MAX];
    SpReader reader; // used by the receiver only …
    Spin spin;       // … as this, for the first bytes of a reply …
    Spin body_spin;  // … and this, for those that follow
} SpConnection;

// A child of fork makes its own link and never touches its parent's again, because another thread
// may have held the mutex.
typedef struct SpLink {
    const char *path;         // borrowed from the channel
    unsigned generation;      // of the process
    struct SpLink *of_parent; // owned; only kept to be freed
    pthread_mutex_t mutex;    // guards the members below and the connections
    pthread_cond_t changed;   // signalled when a connection came or went
    pthread_cond_t ticket_freed;
    pthread_cond_t sender_left;
    SpConnection *connection; // the current one, or NULL
    atomic_uint serial;       // counts connections made and lost: odd while there is one
    bool was_connected;       // at any time, in this process or the parent
    bool is_connecting;       // a caller is connecting now
    unsigned attempts;        // that have ended
    unsigned failures;        // in a row …
    unsigned absences;        // … and attempts in a row that found nobody listening
    int64_t connect_after_ns;
    char why[SP_WHY_BYTES]; // why the last attempt failed
} SpLink;

// Makes a link; `path` is borrowed. `of_parent` is the link of the process that forked, or NULL;
// the new link takes it. Returns NULL if there is no memory. Needs no mutex.
SpLink *sp_link_make(const char *path, SpLink *of_parent);

// Frees the link and those of the parents. Nobody may use them. Needs no mutex.
void sp_link_free(SpLink *link);

// In a child of fork: closes the parent's socket in this process. The parent goes on using it.
void sp_link_leave_to_parent(SpLink *link);

// Waits for `condition` until a monotonic time. Returns false when the time is up. A caller may be
// woken without a reason, so it waits in a loop.
bool sp_link_wait(SpLink *link, pthread_cond_t *condition, int64_t until_ns);

// Connects if there is no connection, as long as `call` allows. Returns 0, then `link->connection`
// is set; or UNAVAILABLE or DEADLINE_EXCEEDED.
int sp_link_connect(SpLink *link, const ChannelCall *call, TineStatus *status);

// Breaks the connection if the other side has closed it.
void sp_link_look(SpLink *link);

// Breaks a connection: all calls in flight on it fail, and the next call connects again.
void sp_connection_break(SpLink *link, SpConnection *connection, const char *why);

// Drops one reference; the last one closes and frees the connection.
void sp_connection_release(SpConnection *connection);

// Takes a free ticket: in state TICKET_WAITING, with a new id. Returns NULL if all are taken.
SpTicket *sp_ticket_take(SpConnection *connection);
void sp_ticket_release(SpLink *link, SpConnection *connection, SpTicket *ticket);
