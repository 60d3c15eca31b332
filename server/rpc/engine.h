// The engine: runs calls on a store. Reads run on the caller's thread, writes on the writer. It
// knows no sockets.

#pragma once

#include "report/error_detail.h"
#include "rpc/event_hub.h"
#include "rpc/rpc.h"
#include "rpc/writer.h"

// Functions that the engine calls. Each may be NULL.
typedef struct EngineHooks {
    // The store has closed itself, so every later call fails. Called once, on any thread.
    void (*store_failed)(void *context);
    void *context;
} EngineHooks;

typedef struct EngineOptions {
    StoreOptions store;
    EngineHooks hooks;
    // Why writes are refused; NULL: they are not. The store must be read-only then. Borrowed until
    // the engine is closed.
    const char *safe_mode;
    bool writes_on_thread;      // run all writes on the writer's own thread; for tests
    size_t decode_budget_bytes; // 0: from each request's size; tests set it to make decoding fail
} EngineOptions;

// Errors as store_open's.
MUST_USE Error engine_open(const EngineOptions *options, ErrorDetail *detail, Engine **out);

// Answers all submitted calls and ends the threads. The events of the last commit are in the
// listeners' queues when this returns. Nothing may be submitted any more.
void engine_end(Engine *engine);

// The same, then closes the store. No event queue may be open. NULL is allowed.
void engine_close(Engine *engine);

// Returns the hub for the events of each commit. Borrowed until the engine is closed.
EventHub *engine_events(Engine *engine);

// Answers the calls that wait for events, and lets no later call wait.
void engine_stop_waiting(Engine *engine);

// Answers queued and later writes with ERROR_UNAVAILABLE. The running batch is answered normally.
void engine_refuse_writes(Engine *engine);

// Runs pending purges, after store_is_walk_due has become false.
void engine_resume_purges(Engine *engine);

// Runs a call, which must have been reset: a read on this thread, a write on the writer's thread,
// or on this one if it need not wait for the disk. `on_done` of the call runs once, on this thread
// or on one of the engine's.
void engine_submit(Engine *engine, Rpc *rpc);

// The same, and waits until it is done.
void engine_run(Engine *engine, Rpc *rpc);

Store *engine_store(Engine *engine); // borrowed until the engine is closed
void engine_writer_stats(Engine *engine, WriterStats *out);

// Counts of one method since the engine was opened.
enum { LATENCY_BUCKETS = 28 };

typedef struct MethodCounts {
    uint64_t calls, errors;
    uint64_t latency_buckets[LATENCY_BUCKETS]; // bucket i: less than 2^i µs
} MethodCounts;

void engine_method_counts(Engine *engine, size_t method_index, MethodCounts *out);
int64_t engine_started_at(const Engine *engine);

// Returns why writes are refused. NULL: they are not.
const char *engine_safe_mode(const Engine *engine);
