// The engine: reads run on the thread that submits them, each on a snapshot of its own; writes go
// through the writer. A read that waits for events waits here, between two snapshots.

#include "rpc/engine.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/limits.h"
#include "rpc/dispatch.h"

typedef struct AtomicCounts {
    atomic_uint_fast64_t calls, errors;
    atomic_uint_fast64_t latency_buckets[LATENCY_BUCKETS];
} AtomicCounts;

struct Engine {
    Store *store;   // owned
    Writer *writer; // owned
    size_t decode_budget_bytes;
    int64_t started_at;
    AtomicCounts counts[METHOD_COUNT];

    // News: the newest committed event.
    pthread_mutex_t mutex;
    pthread_cond_t news;
    uint64_t last_event_sequence;
    uint32_t waiting_calls;
    bool is_closing;
};

static void engine_finish(Call *call, Error error)
{
    Engine *engine = call->engine;
    dispatch_finish(call, error);
    if (call->method) {
        AtomicCounts *counts = &engine->counts[call->method - METHODS];
        int64_t micros = (clock_monotonic_ns() - call->submitted_ns) / 1000;
        size_t bucket = 0;
        while (micros >> bucket && bucket < LATENCY_BUCKETS - 1) bucket++;
        atomic_fetch_add_explicit(&counts->calls, 1, memory_order_relaxed);
        if (error) atomic_fetch_add_explicit(&counts->errors, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&counts->latency_buckets[bucket], 1, memory_order_relaxed);
    }
    call->on_done(call);
}

static void engine_committed(Engine *engine, uint64_t last_event_sequence)
{
    pthread_mutex_lock(&engine->mutex);
    if (engine->last_event_sequence != last_event_sequence) {
        engine->last_event_sequence = last_event_sequence;
        if (engine->waiting_calls > 0) pthread_cond_broadcast(&engine->news);
    }
    pthread_mutex_unlock(&engine->mutex);
}

static Error load_last_event(Engine *engine, ErrorDetail *detail)
{
    Txn txn;
    StoreState state;
    Error error = txn_begin(engine->store, /* is_write= */ false, NULL, detail, &txn);
    if (error) return error;
    error = txn_state(&txn, &state);
    txn_abort(&txn);
    if (!error) engine->last_event_sequence = state.last_event_sequence;
    return error;
}

Error engine_open(const EngineOptions *options, ErrorDetail *detail, Engine **out)
{
    Engine *engine = calloc(1, sizeof(Engine));
    if (!engine) return ERROR_OUT_OF_MEMORY;
    engine->decode_budget_bytes = options->decode_budget_bytes;
    pthread_mutex_init(&engine->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&engine->news, &attributes);
    pthread_condattr_destroy(&attributes);

    Error error = store_open(&options->store, detail, &engine->store);
    if (!error) error = load_last_event(engine, detail);
    if (!error) {
        engine->started_at = clock_now_ms(&store_options(engine->store)->clock);
        error = writer_start(engine->store, engine_finish, engine_committed, engine,
                             &engine->writer);
    }
    if (error) {
        engine_close(engine);
        return error;
    }
    *out = engine;
    return ERROR_NONE;
}

void engine_close(Engine *engine)
{
    if (!engine) return;
    pthread_mutex_lock(&engine->mutex);
    engine->is_closing = true;
    pthread_cond_broadcast(&engine->news);
    pthread_mutex_unlock(&engine->mutex);
    writer_stop(engine->writer);
    store_close(engine->store);
    pthread_cond_destroy(&engine->news);
    pthread_mutex_destroy(&engine->mutex);
    free(engine);
}

// Waits until there are events after `sequence`. False: the time is up, or too many wait already.
static bool wait_for_news(Engine *engine, uint64_t sequence, int64_t until_ns)
{
    struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
    pthread_mutex_lock(&engine->mutex);
    bool may_wait = engine->waiting_calls < WAITING_CALLS_MAX;
    engine->waiting_calls++;
    int failed = 0;
    while (may_wait && !failed && !engine->is_closing && engine->last_event_sequence <= sequence) {
        failed = pthread_cond_timedwait(&engine->news, &engine->mutex, &until);
    }
    bool has_news = engine->last_event_sequence > sequence;
    engine->waiting_calls--;
    pthread_mutex_unlock(&engine->mutex);
    return may_wait && has_news;
}

static Error read_once(Engine *engine, Call *call)
{
    Txn txn;
    Error error =
        txn_begin(engine->store, /* is_write= */ false, &call->arena, &call->detail, &txn);
    if (error) return error;
    error = dispatch_run(call, &txn);
    txn_abort(&txn);
    return error;
}

static Error read_run(Engine *engine, Call *call)
{
    call->is_waiting_allowed = true;
    Error error = read_once(engine, call);
    if (error || call->wait_ms == 0) return error;
    int64_t until_ns = clock_monotonic_ns() + (int64_t)call->wait_ms * 1000000;
    while (!error && call->wait_ms > 0) {
        call->wait_ms = 0;
        call->is_waiting_allowed = wait_for_news(engine, call->wait_after, until_ns);
        error = read_once(engine, call);
    }
    return error;
}

void engine_submit(Engine *engine, Call *call)
{
    call->engine = engine;
    call->submitted_ns = clock_monotonic_ns();
    Error error = dispatch_decode(call, engine->decode_budget_bytes);
    if (!error && call->method->is_write) {
        error = writer_submit(engine->writer, call);
        if (!error) return; // it may be done by now: the call is no longer ours
    } else if (!error) {
        error = clock_monotonic_ns() > call->deadline_ns ? ERROR_DEADLINE_EXCEEDED
                                                         : read_run(engine, call);
    }
    engine_finish(call, error);
}

// One thread that waits for one call.
typedef struct Waiter {
    pthread_mutex_t mutex;
    pthread_cond_t done;
    bool is_done;
} Waiter;

static void waiter_done(Call *call)
{
    Waiter *waiter = call->context;
    pthread_mutex_lock(&waiter->mutex);
    waiter->is_done = true;
    pthread_cond_signal(&waiter->done);
    pthread_mutex_unlock(&waiter->mutex);
}

void engine_run(Engine *engine, Call *call)
{
    Waiter waiter = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    call->context = &waiter;
    call->on_done = waiter_done;
    engine_submit(engine, call);
    pthread_mutex_lock(&waiter.mutex);
    while (!waiter.is_done) pthread_cond_wait(&waiter.done, &waiter.mutex);
    pthread_mutex_unlock(&waiter.mutex);
    pthread_cond_destroy(&waiter.done);
    pthread_mutex_destroy(&waiter.mutex);
}

Store *engine_store(Engine *engine)
{
    return engine->store;
}

void engine_writer_stats(Engine *engine, WriterStats *out)
{
    writer_stats(engine->writer, out);
}

void engine_method_counts(Engine *engine, size_t method_index, MethodCounts *out)
{
    AtomicCounts *counts = &engine->counts[method_index];
    out->calls = atomic_load_explicit(&counts->calls, memory_order_relaxed);
    out->errors = atomic_load_explicit(&counts->errors, memory_order_relaxed);
    for (size_t i = 0; i < LATENCY_BUCKETS; i++) {
        out->latency_buckets[i] =
            atomic_load_explicit(&counts->latency_buckets[i], memory_order_relaxed);
    }
}

int64_t engine_started_at(const Engine *engine)
{
    return engine->started_at;
}
