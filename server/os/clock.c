// The clock: reads the host's clocks.

#include "os/clock.h"

#include <assert.h>
#include <stddef.h>
#include <time.h>

static struct timespec read_clock(clockid_t id)
{
    struct timespec now;
    int result = clock_gettime(id, &now);
    assert(result == 0);
    (void)result;
    return now;
}

static int64_t milliseconds(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static int64_t system_now_ms(void *context)
{
    (void)context;
    return milliseconds(read_clock(CLOCK_REALTIME));
}

static int64_t system_boot_ms(void *context)
{
    (void)context;
    return milliseconds(read_clock(CLOCK_BOOTTIME));
}

Clock clock_system(void)
{
    return (Clock){system_now_ms, system_boot_ms, NULL};
}

int64_t clock_monotonic_ns(void)
{
    struct timespec now = read_clock(CLOCK_MONOTONIC);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
