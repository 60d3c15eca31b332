// A fleet: many clients of one tined at once, each on a connection of its own with one append in
// flight.
//
// A light one is driven by a few threads that only send and receive: it shows what the server can
// do. The other is as programs are: a thread and a libtine for each client.

#pragma once

#include "peers.h"
#include "writers.h"

typedef struct Fleet Fleet;

// WRITERS clients, each with a session of its own.
Fleet *fleet_open(const Peer *tined, const IdText *sessions);
void fleet_close(Fleet *fleet);

// Each appends `count` times. Returns the appends a second.
double fleet_run_light(Fleet *fleet, size_t count);
double fleet_run_libtine(Fleet *fleet, size_t count);
