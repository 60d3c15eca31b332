// The clock: wall time in milliseconds, and a monotonic one for deadlines. Tests set their own.

#pragma once

#include <stdint.h>

typedef struct Clock {
    int64_t (*now_ms)(void *context); // since the epoch
    void *context;
} Clock;

// The host's wall clock.
Clock clock_system(void);

static inline int64_t clock_now_ms(const Clock *clock)
{
    return clock->now_ms(clock->context);
}

// Monotonic time: for deadlines and latencies, never stored.
int64_t clock_monotonic_ns(void);
