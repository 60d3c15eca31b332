// Waiting calls: reads that found nothing and are run again when there are new events.
//
// A parked call holds no thread and no snapshot. One thread runs a parked call again when there are
// events for it or its time is up.

#pragma once

#include "rpc/rpc.h"

typedef struct Waiting Waiting;

// Starts the thread. `rerun` runs a call again, and answers or parks it; `is_last`: it must not
// park it. ERROR_OUT_OF_MEMORY: no memory or no thread; `detail` says which.
MUST_USE Error waiting_start(uint64_t last_event_sequence, void (*rerun)(Rpc *rpc, bool is_last),
                             ErrorDetail *detail, Waiting **out);

// Runs all parked calls a last time and ends the thread. NULL is allowed.
void waiting_stop(Waiting *waiting);

// Runs all parked calls a last time. Later calls cannot be parked.
void waiting_drain(Waiting *waiting);

// Parks a call whose wait_after and wait_until_ns are set. Returns false if too many are parked, or
// none may wait any more; the caller must then answer the call.
MUST_USE bool waiting_park(Waiting *waiting, Rpc *rpc);

// Tells that the store has events up to this sequence. The calls that waited for them are run.
void waiting_news(Waiting *waiting, uint64_t last_event_sequence);
