// Store time. The readings beside it say from where to count on. They are those of the last
// committed write, so what passed during an aborted one is counted by the next.

#include "store/store_time.h"

#include <string.h>

#include "base/limits.h"

static int64_t within(int64_t value, int64_t max)
{
    if (value < 0) return 0;
    return value < max ? value : max;
}

// Adds `passed_ms` and takes new readings. The limits keep a clock that shows nonsense from
// overflowing any difference.
static void move(StoreTime *time, int64_t passed_ms, const Clock *clock)
{
    time->now_ms = within(time->now_ms + passed_ms, TIME_MS_MAX);
    time->boot_ms = within(clock_boot_ms(clock), TIME_MS_MAX);
    time->wall_ms = within(clock_now_ms(clock), TIME_MS_MAX);
}

StoreTime store_time_begin(const Clock *clock, Hash boot)
{
    StoreTime time = {.now_ms = within(clock_now_ms(clock), TIME_MS_MAX), .boot = boot};
    move(&time, 0, clock);
    return time;
}

void store_time_resume(StoreTime *time, const Clock *clock, Hash boot)
{
    bool is_same_boot = memcmp(boot.bytes, time->boot.bytes, HASH_BYTES) == 0 &&
                        memcmp(boot.bytes, HASH_ZERO.bytes, HASH_BYTES) != 0;
    if (is_same_boot) {
        store_time_advance(time, clock);
        return;
    }
    int64_t wall_ms = within(clock_now_ms(clock), TIME_MS_MAX);
    move(time, within(wall_ms - time->wall_ms, RESET_STEP_MS_MAX), clock);
    time->boot = boot;
}

void store_time_advance(StoreTime *time, const Clock *clock)
{
    int64_t boot_ms = within(clock_boot_ms(clock), TIME_MS_MAX);
    move(time, within(boot_ms - time->boot_ms, TIME_MS_MAX), clock);
}
