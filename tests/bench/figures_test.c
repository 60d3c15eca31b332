// Figures of samples, and load without coordinated omission.

#include <math.h>

#include "figures.h"
#include "harness.h"
#include "load.h"
#include "os/clock.h"

static Samples one_to(int64_t count)
{
    Samples samples = {.values = NULL};
    for (int64_t i = count; i >= 1; i--)
        samples_add(&samples, i * 1000);
    return samples;
}

TEST(a_quantile_is_the_smallest_sample_that_its_share_does_not_exceed)
{
    Samples samples = one_to(1000);
    Figures figures = figures_of(&samples);
    CHECK_EQ(figures.count, 1000);
    CHECK_EQ(figures.min_us, 1);
    CHECK_EQ(figures.median_us, 500);
    CHECK_EQ(figures.p90_us, 900);
    CHECK_EQ(figures.p99_us, 990);
    CHECK_EQ(figures.p999_us, 999);
    CHECK_EQ(figures.max_us, 1000);
    CHECK_EQ(figures.mean_us * 10, 5005);
    samples_free(&samples);
}

TEST(a_few_samples_have_a_median_but_no_tail)
{
    Samples samples = one_to(99);
    Figures figures = figures_of(&samples);
    CHECK_EQ(figures.median_us, 50);
    CHECK(isnan(figures.p99_us));
    CHECK(isnan(figures.p999_us));
    samples_free(&samples);
    samples = one_to(100);
    figures = figures_of(&samples);
    CHECK_EQ(figures.p99_us, 99);
    CHECK(isnan(figures.p999_us));
    samples_free(&samples);
}

TEST(one_sample_is_every_quantile_and_none_is_none)
{
    Samples samples = one_to(1);
    Figures figures = figures_of(&samples);
    CHECK_EQ(figures.median_us, 1);
    CHECK_EQ(figures.quantiles_us[0], 1);
    CHECK_EQ(figures.quantiles_us[QUANTILE_COUNT - 1], 1);
    samples_free(&samples);
    figures = figures_of(&samples);
    CHECK_EQ(figures.count, 0);
    CHECK(isnan(figures.median_us));
}

enum { STALL_MS = 60 };

static void stall_once(void *context)
{
    bool *has_stalled = context;
    if (*has_stalled) return;
    *has_stalled = true;
    int64_t until = clock_monotonic_ns() + STALL_MS * INT64_C(1000000);
    while (clock_monotonic_ns() < until)
        continue;
}

// The calls that were due while the first one stalled are late, each by what was left of the stall,
// however fast they are themselves. A slow machine makes them later, never earlier.
TEST(calls_that_a_stall_has_held_up_count_as_late)
{
    bool has_stalled = false;
    LoadThread thread = {stall_once, &has_stalled};
    Samples samples = {.values = NULL};
    (void)load_run(&thread, 1, 1000, 100 * INT64_C(1000000), &samples);
    CHECK_EQ(samples.count, 100);
    size_t late = 0;
    for (size_t i = 0; i < samples.count; i++)
        late += samples.values[i] >= 10 * INT64_C(1000000);
    CHECK(late >= STALL_MS - 10);
    samples_free(&samples);
}

TEST(threads_share_the_calls_of_a_rate)
{
    bool has_stalled[4] = {true, true, true, true};
    LoadThread threads[4];
    for (size_t i = 0; i < 4; i++)
        threads[i] = (LoadThread){stall_once, &has_stalled[i]};
    Samples samples = {.values = NULL};
    (void)load_run(threads, 4, 2000, 50 * INT64_C(1000000), &samples);
    CHECK_EQ(samples.count, 100);
    samples_free(&samples);
}
