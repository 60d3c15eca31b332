// The writer: runs writes in batches, one transaction for each batch.
//
// The calls that arrive during a commit make up the next batch. A single call does not wait for
// others. Each reply is packed right after its handler, before the next call runs. Between batches
// the writer runs slices of pending purges, unless the pages of the file must be walked first.

#pragma once

#include "rpc/rpc.h"

typedef struct Writer Writer;

typedef struct WriterStats {
    uint64_t batches, requests, batches_rerun;
    uint64_t queued_requests, queued_bytes;
} WriterStats;

// Functions of the engine that the writer calls.
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

// Makes writer_run always queue. Call it before the first call.
void writer_forbid_leaders(Writer *writer);

// Answers the queued calls, then ends the thread. NULL is allowed.
void writer_stop(Writer *writer);

// Answers queued and later calls with ERROR_UNAVAILABLE. The running batch is answered normally.
void writer_refuse(Writer *writer);

// Queues a decoded and checked write, or a read that only waits for a flush. ERROR_QUEUE_FULL,
// ERROR_UNAVAILABLE (the writer stops): the call was not queued.
MUST_USE Error writer_submit(Writer *writer, Rpc *rpc);

// The same for a caller that waits for the result anyway: if the writer is idle, runs the call on
// this thread; it is done on return.
MUST_USE Error writer_run(Writer *writer, Rpc *rpc);

// Runs pending purges, after the reason not to (store_is_walk_due) is gone.
void writer_resume_purges(Writer *writer);

void writer_stats(Writer *writer, WriterStats *out);
