// Waiting calls: reads that found nothing and want to be run again when there is news.
//
// A parked call holds no thread and no snapshot. One thread runs the parked calls again: those
// whose news has come, and those whose time is up.

#pragma once

#include "rpc/rpc.h"

typedef struct Waiting Waiting;

// `rerun` runs a call again and ends it or parks it anew; `is_last`: its time is up.
// ERROR_OUT_OF_MEMORY: no memory or no thread, which `detail` tells.
MUST_USE Error waiting_start(uint64_t last_event_sequence, void (*rerun)(Rpc *rpc, bool is_last),
                             ErrorDetail *detail, Waiting **out);

// Runs all parked calls a last time and ends the thread. NULL is allowed.
void waiting_stop(Waiting *waiting);

// Runs all parked calls a last time and takes no more.
void waiting_drain(Waiting *waiting);

// Takes a call whose wait_after and wait_until_ns are set. False: too many wait already, or the
// thread is stopping; the call is still the caller's.
MUST_USE bool waiting_park(Waiting *waiting, Rpc *rpc);

// There are events up to this sequence.
void waiting_news(Waiting *waiting, uint64_t last_event_sequence);
