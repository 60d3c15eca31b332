// Load: calls that are begun when they are due, not when the one before is over.
//
// Call number i is due at the begin + i / rate. Threads take the next number in turn, wait until it
// is due, and call. A latency is counted from when the call was due: if the store stalls, those
// that should have been made meanwhile count as late (no coordinated omission).

#pragma once

#include "bench.h"

typedef struct LoadThread {
    void (*call)(void *context);
    void *context; // of this thread alone
} LoadThread;

// Makes `rate` calls a second for `ns`; returns the time that it took until the last was answered.
// Samples are added (`samples` may be NULL). Without a rate (0) each thread calls as fast
// as it can.
int64_t load_run(const LoadThread *threads, size_t count, double rate, int64_t ns,
                 Samples *samples);
