// The clock: the host's two clocks.

#include "os/clock.h"

#include <assert.h>
#include <stddef.h>
#include <time.h>

static int64_t system_now_ms(void *context)
{
    (void)context;
    struct timespec now;
    int result = clock_gettime(CLOCK_REALTIME, &now);
    assert(result == 0);
    (void)result;
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

Clock clock_system(void)
{
    return (Clock){system_now_ms, NULL};
}

int64_t clock_monotonic_ns(void)
{
    struct timespec now;
    int result = clock_gettime(CLOCK_MONOTONIC, &now);
    assert(result == 0);
    (void)result;
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
