// The seam that makes one storage call fail, and a picture of the whole store to compare.

#pragma once

#include <pthread.h>

#include "engine_call.h"

typedef struct Fault {
    pthread_mutex_t mutex;
    pthread_t test_thread;
    Error error;         // what the call fails with; ERROR_NONE: not armed
    size_t countdown;    // it is the so-manyth from now
    size_t skip_begins;  // counted from this write transaction on
    bool is_writer_only; // only what other threads than the test's do; the first call after a
                         // commit fails then in any case: it belongs to a slice
    bool is_fired;
    bool is_fired_at_commit;
    bool has_committed; // since it was armed

    pthread_cond_t is_idle;
    KvOperation last_of_writer;
    int nudge_step; // how much was seen of what the writer does for a nudge; NUDGE_DONE: all
} Fault;

// Of the thread that calls it: the test's.
void fault_init(Fault *fault);
KvSeam fault_seam(Fault *fault);

// Makes the `nth` storage call from now on fail, once: of all threads, or of the writer's alone.
void fault_arm(Fault *fault, Error error, size_t nth, bool is_writer_only);
// The same among the calls of the writer's next transaction but one: after the next call, that is
// the slice of a purge.
void fault_arm_slice(Fault *fault, Error error, size_t nth);
// After a nudge (day.h) was answered: waits until the writer has looked for purges, of which none
// may be pending, and touches the store no more.
void fault_wait_idle(Fault *fault);

// Returns whether it has fired.
bool fault_disarm(Fault *fault);
bool fault_is_fired(Fault *fault);

// The hash of every row of every table.
Hash store_picture(Engine *engine);
bool hash_equal(Hash a, Hash b);
