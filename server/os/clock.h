// The clock: wall time, and time that only passes. Tests set their own.

#pragma once

#include <stdint.h>

// Both functions return milliseconds.
typedef struct Clock {
    int64_t (*now_ms)(void *context);  // wall time since the epoch; people and programs step it
    int64_t (*boot_ms)(void *context); // since the machine started, suspended time included
    void *context;
} Clock;

// The host's clocks.
Clock clock_system(void);

static inline int64_t clock_now_ms(const Clock *clock)
{
    return clock->now_ms(clock->context);
}

static inline int64_t clock_boot_ms(const Clock *clock)
{
    return clock->boot_ms(clock->context);
}

// Monotonic time: for deadlines and latencies, never stored.
int64_t clock_monotonic_ns(void);
