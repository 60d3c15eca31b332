// Waiting: back-off between attempts, and deadlines as poll(2) takes them. Times are monotonic
// nanoseconds; INT64_MAX is never.

#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    BACKOFF_MS_MIN = 50,
    BACKOFF_ABSENT_MS_MIN =
        1, // while nobody listens: an attempt costs little, tined starts in 4 ms
    BACKOFF_MS_MAX = 2000,
};

// Returns how long to wait after the `failures`-th failure in a row: `first_ms`, twice as long each
// time, at most BACKOFF_MS_MAX. 0 after none.
int64_t backoff_ns(int64_t first_ms, unsigned failures);

// Returns whether a time has come.
bool time_is_past(int64_t time_ns);

// Returns the milliseconds until a time, rounded up, and at most `max`.
int poll_ms_until(int64_t until_ns, int max);
