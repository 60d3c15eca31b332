// Waiting.

#include "wait.h"

#include "os/clock.h"

int64_t backoff_ns(int64_t first_ms, unsigned failures)
{
    if (failures == 0) return 0;
    int64_t ms = first_ms;
    while (--failures > 0 && ms < BACKOFF_MS_MAX)
        ms *= 2;
    return (ms < BACKOFF_MS_MAX ? ms : BACKOFF_MS_MAX) * 1000000;
}

bool time_is_past(int64_t time_ns)
{
    return time_ns != INT64_MAX && clock_monotonic_ns() >= time_ns;
}

int poll_ms_until(int64_t until_ns, int max)
{
    if (until_ns == INT64_MAX) return max;
    int64_t left_ns = until_ns - clock_monotonic_ns();
    if (left_ns <= 0) return 0;
    int64_t ms = (left_ns + 999999) / 1000000;
    return ms < max ? (int)ms : max;
}
