// A link: what one process has of an SP channel, and its connection. See channel_sp.c for how
// callers share it; all functions here are called with the link's mutex held, unless they say
// otherwise.

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
    uint32_t id; // 0 while it is free
    Buffer reply;
    bool is_parked; // its caller waits on `wakes`
    pthread_cond_t wakes;
} SpTicket;

typedef struct SpConnection {
    int fd;
    unsigned references; // callers, and the link's while it is the current one
    bool is_broken;
    bool has_replied;
    bool has_sender;
    bool has_receiver;
    char why[SP_WHY_BYTES]; // it broke
    uint32_t id_counter;
    uint8_t free_tickets[CHANNEL_IN_FLIGHT_MAX];
    unsigned free_count, abandoned_count, parked_count;
    SpTicket tickets[CHANNEL_IN_FLIGHT_MAX];
    SpReader reader; // the receiver's …
    Spin spin;       // … and this
} SpConnection;

// What one process has of the channel. A child of fork makes its own and never touches its
// parent's again, whose mutex another thread may have held.
typedef struct SpLink {
    const char *path;         // borrowed from the channel
    unsigned generation;      // of the process
    struct SpLink *of_parent; // owned; its memory is all that is left of it
    pthread_mutex_t mutex;    // guards all below, and the connections
    pthread_cond_t changed;   // a connection came or went
    pthread_cond_t ticket_freed;
    pthread_cond_t sender_left;
    SpConnection *connection; // the current one, or NULL
    atomic_uint serial;       // counts connections made and lost: odd while there is one
    bool was_connected;       // ever, here or in the parent
    bool is_connecting;       // one caller does
    unsigned attempts;        // finished ones
    unsigned failures;        // in a row …
    unsigned absences;        // … and attempts in a row that found nobody listening
    int64_t connect_after_ns;
    char why[SP_WHY_BYTES]; // the last one failed
} SpLink;

// Without the mutex. NULL: out of memory. `of_parent`, the link of the process that forked, is
// taken and lives as long as the new one.
SpLink *sp_link_make(const char *path, SpLink *of_parent);

// Without the mutex; nobody may use it. Frees those of the parents too.
void sp_link_free(SpLink *link);

// In a child of fork: closes the parent's connection here. The parent goes on using it.
void sp_link_leave_to_parent(SpLink *link);

// Waits for `condition` with the mutex. False when the time is up. All waits are in loops:
// callers may be woken needlessly.
bool sp_link_wait(SpLink *link, pthread_cond_t *condition, int64_t until_ns);

// Comes back with `link->connection`, or with the code that says why there is none.
int sp_link_connect(SpLink *link, const ChannelCall *call, TineStatus *status);

// Gives up the connection if the other side has.
void sp_link_look(SpLink *link);

// Gives up a connection: all that is in flight on it fails, the next call connects anew.
void sp_connection_break(SpLink *link, SpConnection *connection, const char *why);
void sp_connection_release(SpConnection *connection); // one reference

// A free ticket, in state TICKET_WAITING and with a fresh id; NULL: all are taken.
SpTicket *sp_ticket_take(SpConnection *connection);
void sp_ticket_release(SpLink *link, SpConnection *connection, SpTicket *ticket);
