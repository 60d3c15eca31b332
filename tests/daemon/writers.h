// Writers: threads that write through libtine, each with a client and a session of its own, and
// know what they were told. Message n of a writer holds the text "n": so what is in a store says
// whether a write was lost or done twice.

#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "process.h"
#include "tine.h"

enum { WRITERS_MAX = 64 };

typedef struct Writers Writers;

typedef struct ClientWriter {
    Writers *writers;
    Tine *tine;
    IdText session;
    pthread_t thread;
    atomic_uint begun, acknowledged;
    atomic_uint refused; // for there was no space; such a write is tried again
} ClientWriter;

struct Writers {
    size_t count, text_bytes;
    bool is_full_allowed;
    atomic_bool is_over;
    ClientWriter list[WRITERS_MAX];
};

// Makes the sessions and starts to write. `text_bytes`: what a message has at least. A write that
// fails fails the test; but for STORE_FULL, if `is_full_allowed`.
void writers_start(Writers *writers, const char *socket, size_t count, size_t text_bytes,
                   bool is_full_allowed);

// Sums over all.
uint64_t writers_acknowledged(Writers *writers);
uint64_t writers_refused(Writers *writers);

// Waits until the sum of what is acknowledged, or refused, has grown by so much.
void writers_wait_acknowledged(Writers *writers, uint64_t more);
void writers_wait_refused(Writers *writers, uint64_t more);

// Each writer ends the write it is at.
void writers_stop(Writers *writers);

// Opens the store, which nobody else has open, and checks it: whole, and with each writer's
// messages in order, all that were acknowledged and none that were not begun.
void writers_check(Writers *writers, const char *data);
