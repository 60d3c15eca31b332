// Clocks: the host's, and one that a test sets.

#include "os/clock.h"

#include <time.h>

#include "harness.h"

static int64_t fixed_now_ms(void *context)
{
    return *(int64_t *)context;
}

TEST(clock_system_is_the_time_of_day_in_milliseconds)
{
    Clock clock = clock_system();
    int64_t before = (int64_t)time(NULL);
    int64_t now = clock_now_ms(&clock);
    int64_t after = (int64_t)time(NULL);
    // time(2) reads a coarser clock that may lag by a tick.
    CHECK(now >= (before - 1) * 1000);
    CHECK(now < (after + 2) * 1000);
}

TEST(clock_monotonic_never_goes_back_and_moves)
{
    int64_t first = clock_monotonic_ns();
    int64_t last = first;
    while (last == first)
        last = clock_monotonic_ns();
    CHECK(last > first);
    for (int i = 0; i < 1000; i++) {
        int64_t now = clock_monotonic_ns();
        CHECK(now >= last);
        last = now;
    }
}

TEST(clock_of_the_boot_is_monotonic_and_counts_from_the_start_of_the_machine)
{
    Clock clock = clock_system();
    int64_t awake_ms = clock_monotonic_ns() / 1000000;
    int64_t first = clock_boot_ms(&clock);
    CHECK(first >= awake_ms); // it counts suspended time, too
    CHECK(clock_boot_ms(&clock) >= first);
}

TEST(clock_of_a_test_says_what_it_is_told)
{
    int64_t now_ms = 42;
    Clock clock = {fixed_now_ms, fixed_now_ms, &now_ms};
    CHECK_EQ(clock_now_ms(&clock), 42);
    CHECK_EQ(clock_boot_ms(&clock), 42);
    now_ms = -1;
    CHECK_EQ(clock_now_ms(&clock), -1);
}
