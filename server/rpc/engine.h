// The engine: a store, its writer, and calls on them. No sockets.

#pragma once

#include "report/error_detail.h"
#include "rpc/event_hub.h"
#include "rpc/rpc.h"
#include "rpc/writer.h"

// What the engine tells of. May be NULL.
typedef struct EngineHooks {
    // The store has closed itself: every call fails from now on. Told once, on any thread.
    void (*store_failed)(void *context);
    void *context;
} EngineHooks;

typedef struct EngineOptions {
    StoreOptions store;
    EngineHooks hooks;
    bool writes_on_thread;      // all of them on the writer's own: for tests that tell it apart
    size_t decode_budget_bytes; // 0: by each request's size. Tests set it to fail decoding
} EngineOptions;

// Errors as store_open's.
MUST_USE Error engine_open(const EngineOptions *options, ErrorDetail *detail, Engine **out);

// Answers what was submitted and ends the threads: the events of the last commit have been put
// into the queues of those who listen. Nothing may be submitted from now on.
void engine_end(Engine *engine);

// The same, then closes the store. No event queue may be open. NULL is allowed.
void engine_close(Engine *engine);

// Where to listen to the events of each commit. Borrowed until the engine is closed.
EventHub *engine_events(Engine *engine);

// Ends the calls that wait for events, now and from now on.
void engine_stop_waiting(Engine *engine);

// Ends the writes that are queued, and all that come, with ERROR_UNAVAILABLE. The batch that runs
// is answered as it ends.
void engine_refuse_writes(Engine *engine);

// Runs a call: a read right here, a write on the writer, or right here if it waits for nothing. Its
// on_done runs once, on this thread or on the writer's. The call was reset before.
void engine_submit(Engine *engine, Rpc *rpc);

// The same, and waits until it is done.
void engine_run(Engine *engine, Rpc *rpc);

Store *engine_store(Engine *engine); // borrowed until the engine is closed
void engine_writer_stats(Engine *engine, WriterStats *out);

// What was counted of one method since the engine was opened.
enum { LATENCY_BUCKETS = 28 };

typedef struct MethodCounts {
    uint64_t calls, errors;
    uint64_t latency_buckets[LATENCY_BUCKETS]; // bucket i: less than 2^i µs
} MethodCounts;

void engine_method_counts(Engine *engine, size_t method_index, MethodCounts *out);
int64_t engine_started_at(const Engine *engine);
