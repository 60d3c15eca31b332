// The ways in which a system's test reaches a store, and its threads.

#pragma once

#include "entries.h"

// Runs a test three times, each time on a store of its own: by libtine over a Unix socket, embedded
// in memory, and in a `tined --ephemeral`. Of the fixture only its client, and what uses that
// alone, may be used.
void on_each_way(void (*run)(Fixture *f));

// The last of them alone: a daemon that ends, in order, when the test has.
void in_ephemeral_daemon(void (*run)(Fixture *f));

// A fixture whose client is connected by a Unix socket.
Fixture *socket_fixture(void);

// Runs `run` in so many threads that start together, each with its number, and waits for all.
typedef struct SystemThread {
    unsigned number;
    Tine *tine;
    void *context;
} SystemThread;

void in_threads(Fixture *f, unsigned count, void (*run)(const SystemThread *thread), void *context);
