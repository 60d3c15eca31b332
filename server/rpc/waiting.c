// Waiting calls. An event between a call's snapshot and its parking is not missed, because the
// thread compares the sequence that the call has seen with the newest one. A call that is run and
// parked again goes to the end of the list, so a call with many events does not delay the others.

#include "rpc/waiting.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/limits.h"
#include "os/clock.h"
#include "os/condition.h"
#include "os/thread.h"

struct Waiting {
    void (*rerun)(Rpc *rpc, bool is_last);
    pthread_t thread;

    pthread_mutex_t mutex; // guards all below
    pthread_cond_t wakes;
    Rpc *parked, **parked_end; // oldest first
    size_t parked_count;
    uint64_t last_event_sequence;
    bool is_draining; // no call waits any more
    bool is_stopping;
};

static void *waiting_main(void *context);

Error waiting_start(uint64_t last_event_sequence, void (*rerun)(Rpc *rpc, bool is_last),
                    ErrorDetail *detail, Waiting **out)
{
    Waiting *waiting = calloc(1, sizeof(Waiting));
    if (!waiting) return ERROR_OUT_OF_MEMORY;
    waiting->rerun = rerun;
    waiting->last_event_sequence = last_event_sequence;
    waiting->parked_end = &waiting->parked;
    pthread_mutex_init(&waiting->mutex, NULL);
    condition_init(&waiting->wakes);
    Error error =
        thread_start(&waiting->thread, waiting_main, waiting, "rerun waiting calls", detail);
    if (error) {
        free(waiting);
        return error;
    }
    *out = waiting;
    return ERROR_NONE;
}

void waiting_drain(Waiting *waiting)
{
    pthread_mutex_lock(&waiting->mutex);
    waiting->is_draining = true;
    pthread_cond_signal(&waiting->wakes);
    pthread_mutex_unlock(&waiting->mutex);
}

void waiting_stop(Waiting *waiting)
{
    if (!waiting) return;
    pthread_mutex_lock(&waiting->mutex);
    waiting->is_stopping = waiting->is_draining = true;
    pthread_cond_signal(&waiting->wakes);
    pthread_mutex_unlock(&waiting->mutex);
    pthread_join(waiting->thread, NULL);
    pthread_cond_destroy(&waiting->wakes);
    pthread_mutex_destroy(&waiting->mutex);
    free(waiting);
}

bool waiting_park(Waiting *waiting, Rpc *rpc)
{
    pthread_mutex_lock(&waiting->mutex);
    bool is_taken = !waiting->is_draining && waiting->parked_count < WAITING_CALLS_MAX;
    if (is_taken) {
        rpc->next = NULL;
        *waiting->parked_end = rpc;
        waiting->parked_end = &rpc->next;
        waiting->parked_count++;
        pthread_cond_signal(&waiting->wakes);
    }
    pthread_mutex_unlock(&waiting->mutex);
    return is_taken;
}

void waiting_news(Waiting *waiting, uint64_t last_event_sequence)
{
    pthread_mutex_lock(&waiting->mutex);
    if (waiting->last_event_sequence < last_event_sequence) {
        waiting->last_event_sequence = last_event_sequence;
        if (waiting->parked) pthread_cond_signal(&waiting->wakes);
    }
    pthread_mutex_unlock(&waiting->mutex);
}

// Takes a parked call that must run now. Returns NULL if there is none; `out_until_ns` is then the
// time of the next one.
static Rpc *take_due(Waiting *waiting, bool *out_is_last, int64_t *out_until_ns)
{
    int64_t now_ns = clock_monotonic_ns();
    *out_until_ns = INT64_MAX;
    for (Rpc **link = &waiting->parked; *link; link = &(*link)->next) {
        Rpc *rpc = *link;
        *out_is_last = waiting->is_draining || rpc->wait_until_ns <= now_ns;
        if (*out_is_last || rpc->wait_after < waiting->last_event_sequence) {
            *link = rpc->next;
            if (!*link) waiting->parked_end = link;
            rpc->next = NULL;
            waiting->parked_count--;
            return rpc;
        }
        if (rpc->wait_until_ns < *out_until_ns) *out_until_ns = rpc->wait_until_ns;
    }
    return NULL;
}

static void *waiting_main(void *context)
{
    Waiting *waiting = context;
    pthread_mutex_lock(&waiting->mutex);
    for (;;) {
        bool is_last;
        int64_t until_ns;
        Rpc *rpc = take_due(waiting, &is_last, &until_ns);
        if (rpc) {
            pthread_mutex_unlock(&waiting->mutex);
            waiting->rerun(rpc, is_last);
            pthread_mutex_lock(&waiting->mutex);
        } else if (waiting->is_stopping) {
            break;
        } else {
            (void)condition_wait(&waiting->wakes, &waiting->mutex, until_ns);
        }
    }
    pthread_mutex_unlock(&waiting->mutex);
    return NULL;
}
