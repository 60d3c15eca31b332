// The writer: one at a time, one transaction for all that is waiting.
//
// While a commit waits for the disk the next batch gathers; a lone call never waits for company.
// Each reply is packed right after its handler, before the next call runs. Between batches the
// writer runs slices of pending purges.

#pragma once

#include "rpc/rpc.h"

typedef struct Writer Writer;

typedef struct WriterStats {
    uint64_t batches, requests, batches_rerun;
    uint64_t queued_requests, queued_bytes;
} WriterStats;

// What the writer tells the engine.
typedef struct WriterHooks {
    void (*finish)(Rpc *rpc, Error error); // ends a call
    // Called for each commit, and for each batch that only broadcasts, before its calls end.
    // `events` are in order, broadcast ones among them, and borrowed until it returns.
    void (*committed)(Engine *engine, const EventList *events, uint64_t last_event_sequence);
    Engine *engine;
} WriterHooks;

// Starts the thread. ERROR_OUT_OF_MEMORY: no memory or no thread, which `detail` tells.
MUST_USE Error writer_start(Store *store, const WriterHooks *hooks, ErrorDetail *detail,
                            Writer **out);

// Before the first call: writer_run only queues.
void writer_forbid_leaders(Writer *writer);

// Answers what is queued, then ends the thread. NULL is allowed.
void writer_stop(Writer *writer);

// Ends what is queued, and all that comes, with ERROR_UNAVAILABLE; the batch that runs ends as
// ever.
void writer_refuse(Writer *writer);

// Queues a decoded and checked write, or a read that is done but for a flush. ERROR_QUEUE_FULL,
// ERROR_UNAVAILABLE (stopping): not queued.
MUST_USE Error writer_submit(Writer *writer, Rpc *rpc);

// The same for a caller that will wait until the call is done: when the writer is idle the call is
// run on this thread, and is done on return.
MUST_USE Error writer_run(Writer *writer, Rpc *rpc);

void writer_stats(Writer *writer, WriterStats *out);
