// A read runs on the thread that submits it, on a snapshot of its own; a write runs on the writer.
// A read that waits for events is parked and holds no snapshot meanwhile.

#include "rpc/engine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/limits.h"
#include "os/clock.h"
#include "rpc/dispatch.h"
#include "rpc/waiting.h"
#include "store/open.h"

typedef struct AtomicCounts {
    atomic_uint_fast64_t calls, errors;
    atomic_uint_fast64_t latency_buckets[LATENCY_BUCKETS];
} AtomicCounts;

struct Engine {
    Store *store;   // owned
    Writer *writer; // owned
    EngineHooks hooks;
    const char *safe_mode; // borrowed; NULL: writes are accepted
    atomic_bool is_failure_told;
    size_t decode_budget_bytes;
    int64_t started_at;
    AtomicCounts counts[METHOD_COUNT];

    Waiting *waiting; // owned
    EventHub *events; // owned
};

static void tell_failure(Engine *engine)
{
    if (!engine->hooks.store_failed || !store_is_failed(engine->store)) return;
    if (!atomic_exchange(&engine->is_failure_told, true)) {
        engine->hooks.store_failed(engine->hooks.context);
    }
}

static void engine_finish(Rpc *rpc, Error error)
{
    Engine *engine = rpc->engine;
    dispatch_finish(rpc, error);
    if (error) tell_failure(engine);
    if (rpc->method) {
        AtomicCounts *counts = &engine->counts[rpc->method - METHODS];
        int64_t micros = (clock_monotonic_ns() - rpc->submitted_ns) / 1000;
        size_t bucket = 0;
        while (micros >> bucket && bucket < LATENCY_BUCKETS - 1)
            bucket++;
        atomic_fetch_add_explicit(&counts->calls, 1, memory_order_relaxed);
        if (error) atomic_fetch_add_explicit(&counts->errors, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&counts->latency_buckets[bucket], 1, memory_order_relaxed);
    }
    rpc->on_done(rpc);
}

static void engine_committed(Engine *engine, const EventList *events, uint64_t last_event_sequence)
{
    waiting_news(engine->waiting, last_event_sequence);
    event_hub_put(engine->events, events, last_event_sequence);
}

static Error read_once(Engine *engine, Rpc *rpc)
{
    Txn txn;
    Error error = txn_begin(engine->store, /* is_write= */ false, &rpc->arena, &rpc->detail, &txn);
    if (error) return error;
    error = dispatch_run(rpc, &txn);
    if (!error && rpc->loan.count > 0) {
        rpc->loan.snapshot = txn;
    } else {
        txn_abort(&txn);
    }
    return error;
}

// Runs a read and answers it, or parks it until there are new events.
static void read_run(Rpc *rpc, bool is_last)
{
    Engine *engine = rpc->engine;
    rpc->wait_ms = 0;
    rpc->is_waiting_allowed = !is_last;
    Error error = read_once(engine, rpc);
    if (!error && rpc->wait_ms > 0) {
        if (rpc->wait_until_ns == 0) {
            rpc->wait_until_ns = clock_monotonic_ns() + (int64_t)rpc->wait_ms * 1000000;
        }
        if (waiting_park(engine->waiting, rpc)) return;
    }
    // What it has read must be flushed before it is answered. The writer does that: this thread
    // must not wait for the disk.
    if (!error && rpc->wants_sync && !engine->safe_mode) {
        error = writer_submit(engine->writer, rpc);
        if (!error) return;
    }
    engine_finish(rpc, error);
}

// Runs a parked call again, from the bytes of its request, so that the arena does not grow with
// each run.
static void read_again(Rpc *rpc, bool is_last)
{
    arena_reset(&rpc->arena, DECODE_BUDGET_BYTES_MIN);
    Error error = dispatch_decode(rpc, rpc->engine->decode_budget_bytes);
    if (error) {
        engine_finish(rpc, error);
    } else {
        read_run(rpc, is_last);
    }
}

static Error start_waiting(Engine *engine, ErrorDetail *detail)
{
    Txn txn;
    StoreState state;
    Error error = txn_begin(engine->store, /* is_write= */ false, NULL, detail, &txn);
    if (error) return error;
    error = txn_state(&txn, &state);
    txn_abort(&txn);
    if (!error) error = event_hub_open(state.last_event_sequence, &engine->events);
    if (error) return error;
    return waiting_start(state.last_event_sequence, read_again, detail, &engine->waiting);
}

Error engine_open(const EngineOptions *options, ErrorDetail *detail, Engine **out)
{
    Engine *engine = calloc(1, sizeof(Engine));
    if (!engine) return ERROR_OUT_OF_MEMORY;
    engine->hooks = options->hooks;
    engine->safe_mode = options->safe_mode;
    engine->decode_budget_bytes = options->decode_budget_bytes;
    Error error = store_open(&options->store, detail, &engine->store);
    if (!error) error = start_waiting(engine, detail);
    if (!error) {
        engine->started_at = clock_now_ms(&store_options(engine->store)->clock);
        WriterHooks hooks = {engine_finish, engine_committed, engine};
        error = writer_start(engine->store, &hooks, detail, &engine->writer);
    }
    if (!error && options->writes_on_thread) writer_forbid_leaders(engine->writer);
    if (error) {
        engine_close(engine);
        return error;
    }
    *out = engine;
    return ERROR_NONE;
}

void engine_end(Engine *engine)
{
    writer_stop(engine->writer); // first: its commits wake waiting calls
    waiting_stop(engine->waiting);
    engine->writer = NULL;
    engine->waiting = NULL;
}

void engine_close(Engine *engine)
{
    if (!engine) return;
    engine_end(engine);
    event_hub_close(engine->events);
    store_close(engine->store);
    free(engine);
}

void engine_stop_waiting(Engine *engine)
{
    waiting_drain(engine->waiting);
}

void engine_resume_purges(Engine *engine)
{
    writer_resume_purges(engine->writer);
}

void engine_refuse_writes(Engine *engine)
{
    writer_refuse(engine->writer);
}

// Returns whether a write may run on this thread, which must not wait for the disk: a small write
// to a relaxed store does not, unless the disk cannot keep up.
static bool waits_for_nothing(const Engine *engine, const Rpc *rpc)
{
    return store_options(engine->store)->flush_ms > 0 && !rpc->wants_sync &&
           rpc->request.size <= LEADER_REQUEST_BYTES_MAX && !store_is_behind(engine->store);
}

static void submit(Engine *engine, Rpc *rpc, bool may_block)
{
    rpc->engine = engine;
    rpc->submitted_ns = clock_monotonic_ns();
    Error error = dispatch_decode(rpc, engine->decode_budget_bytes);
    if (!error && rpc->method->is_write && engine->safe_mode) {
        error = rpc_fail(rpc, ERROR_UNAVAILABLE, "%s; nothing was stored", engine->safe_mode);
    } else if (!error && rpc->method->is_write) {
        bool may_run = may_block || waits_for_nothing(engine, rpc);
        error = may_run ? writer_run(engine->writer, rpc) : writer_submit(engine->writer, rpc);
        if (!error) return; // it may be done and gone by now
    }
    if (!error && !rpc->method->is_write) {
        if (clock_monotonic_ns() <= rpc->deadline_ns) {
            read_run(rpc, /* is_last= */ false);
            return;
        }
        error = ERROR_DEADLINE_EXCEEDED;
    }
    engine_finish(rpc, error);
}

void engine_submit(Engine *engine, Rpc *rpc)
{
    submit(engine, rpc, /* may_block= */ false);
}

// A thread that waits for a call.
typedef struct Waiter {
    pthread_mutex_t mutex;
    pthread_cond_t done;
    bool is_done;
} Waiter;

static void waiter_done(Rpc *rpc)
{
    Waiter *waiter = rpc->context;
    pthread_mutex_lock(&waiter->mutex);
    waiter->is_done = true;
    pthread_cond_signal(&waiter->done);
    pthread_mutex_unlock(&waiter->mutex);
}

void engine_run(Engine *engine, Rpc *rpc)
{
    Waiter waiter = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    rpc->context = &waiter;
    rpc->on_done = waiter_done;
    submit(engine, rpc, /* may_block= */ true);
    pthread_mutex_lock(&waiter.mutex);
    while (!waiter.is_done)
        pthread_cond_wait(&waiter.done, &waiter.mutex);
    pthread_mutex_unlock(&waiter.mutex);
    pthread_cond_destroy(&waiter.done);
    pthread_mutex_destroy(&waiter.mutex);
}

EventHub *engine_events(Engine *engine)
{
    return engine->events;
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

const char *engine_safe_mode(const Engine *engine)
{
    return engine->safe_mode;
}

int64_t engine_started_at(const Engine *engine)
{
    return engine->started_at;
}
