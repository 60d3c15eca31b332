// Load.

#include "load.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "os/clock.h"

enum { THREADS_MAX = 64 };

typedef struct Load {
    double rate;
    int64_t begin_ns, ns;
    _Atomic uint64_t next;
} Load;

typedef struct Worker {
    Load *load;
    const LoadThread *thread;
    pthread_t id;
    Samples samples;
} Worker;

static void wait_until(int64_t due_ns)
{
    struct timespec due = {.tv_sec = due_ns / 1000000000, .tv_nsec = due_ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) != 0)
        continue;
}

static void call_when_due(Worker *worker)
{
    Load *load = worker->load;
    uint64_t total = (uint64_t)(load->rate * (double)load->ns / 1e9);
    for (;;) {
        uint64_t number = atomic_fetch_add(&load->next, 1);
        if (number >= total) return;
        int64_t due_ns = load->begin_ns + (int64_t)((double)number * 1e9 / load->rate);
        wait_until(due_ns);
        worker->thread->call(worker->thread->context);
        samples_add(&worker->samples, clock_monotonic_ns() - due_ns);
    }
}

static void call_on_and_on(Worker *worker)
{
    int64_t now = clock_monotonic_ns(), end = worker->load->begin_ns + worker->load->ns;
    while (now < end) {
        int64_t t0 = now;
        worker->thread->call(worker->thread->context);
        now = clock_monotonic_ns();
        samples_add(&worker->samples, now - t0);
    }
}

static void *worker_main(void *context)
{
    Worker *worker = context;
    prctl(PR_SET_TIMERSLACK, 1UL); // the default of 50 µs would be in every sample
    if (worker->load->rate > 0) {
        call_when_due(worker);
    } else {
        call_on_and_on(worker);
    }
    return NULL;
}

int64_t load_run(const LoadThread *threads, size_t count, double rate, int64_t ns, Samples *samples)
{
    Worker workers[THREADS_MAX] = {{.load = NULL}};
    require(count <= THREADS_MAX, "more than %d threads", THREADS_MAX);
    Load load = {.rate = rate, .begin_ns = clock_monotonic_ns(), .ns = ns};
    for (size_t i = 0; i < count; i++) {
        workers[i] = (Worker){.load = &load, .thread = &threads[i]};
        require(pthread_create(&workers[i].id, NULL, worker_main, &workers[i]) == 0, "no thread");
    }
    for (size_t i = 0; i < count; i++) {
        pthread_join(workers[i].id, NULL);
        for (size_t j = 0; samples && j < workers[i].samples.count; j++)
            samples_add(samples, workers[i].samples.values[j]);
        samples_free(&workers[i].samples);
    }
    return clock_monotonic_ns() - load.begin_ns;
}
