// A gate at the seam that holds the writer before a commit, and calls that are submitted while it
// is held: how a test makes a batch gather.

#pragma once

#include <pthread.h>

#include "engine_call.h"

typedef struct Gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_closed;
    bool is_holding;       // the writer stands at it
    unsigned passes;       // commits that may still go through the closed gate
    KvTable failing_table; // puts into it fail with `failing_error`
    Error failing_error;
} Gate;

void gate_init(Gate *gate);
KvSeam gate_seam(Gate *gate);

// From now on the writer stops before its next commit.
void gate_close(Gate *gate);
void gate_wait_held(Gate *gate);
void gate_open(Gate *gate);
bool gate_is_holding(Gate *gate);

// Lets the commit that it holds through, and stays closed for the next.
void gate_let_one_through(Gate *gate);

// Every put into this table fails; ERROR_NONE: none any more.
void gate_fail_puts(Gate *gate, KvTable table, Error error);

// A call on its way. Freed by pending_wait.
typedef struct PendingCall PendingCall;

PendingCall *pending_submit(Engine *engine, enum MethodIndex method, const void *request,
                            int64_t timeout_ms);
// The same with encoded bytes, which are borrowed.
PendingCall *pending_send(Engine *engine, Slice request);
bool pending_is_done(PendingCall *pending);
Error pending_wait(PendingCall *pending);

// An append of a text to a session.
PendingCall *pending_append(Engine *engine, const char *session, const char *text,
                            int64_t timeout_ms);
