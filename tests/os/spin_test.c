// Waiting awake: for how long, and how seldom when it is in vain.

#include "os/spin.h"

#include "harness.h"

static const int64_t MICROSECOND = 1000;
static const int64_t MILLISECOND = 1000 * 1000;

// Looks each microsecond from `now_ns` on; returns when it was told to stop.
static int64_t wait_in_vain(Spin *spin, int64_t now_ns)
{
    spin_begin(spin, now_ns);
    while (spin_goes_on(spin, now_ns))
        now_ns += MICROSECOND;
    return now_ns;
}

TEST(a_wait_in_vain_ends_soon)
{
    Spin spin = {0};
    int64_t waited_ns = wait_in_vain(&spin, MILLISECOND) - MILLISECOND;
    CHECK(waited_ns > 20 * MICROSECOND); // what waking a processor takes
    CHECK(waited_ns < MILLISECOND);
}

TEST(after_a_wait_in_vain_the_next_is_not_tried_at_once)
{
    Spin spin = {0};
    int64_t now_ns = wait_in_vain(&spin, MILLISECOND);
    CHECK_EQ(wait_in_vain(&spin, now_ns), now_ns);
    now_ns += MILLISECOND;
    CHECK(wait_in_vain(&spin, now_ns) > now_ns);
}

TEST(waits_in_vain_become_seldom_but_never_end)
{
    Spin spin = {0};
    int64_t tries = 0, second_ns = 1000 * MILLISECOND, now_ns = MILLISECOND;
    while (now_ns < 60 * second_ns) {
        int64_t then_ns = wait_in_vain(&spin, now_ns);
        if (then_ns > now_ns) tries++;
        now_ns = then_ns + 100 * MICROSECOND;
    }
    CHECK(tries > 60);
    CHECK(tries < 60 * 10);
}

TEST(one_that_was_met_is_tried_again_at_once)
{
    Spin spin = {0};
    int64_t now_ns = MILLISECOND;
    for (int i = 0; i < 10; i++)
        now_ns = wait_in_vain(&spin, now_ns) + 1000 * MILLISECOND;
    spin_begin(&spin, now_ns);
    CHECK(spin_goes_on(&spin, now_ns));
    spin_met(&spin);
    now_ns = wait_in_vain(&spin, now_ns) + MILLISECOND;
    CHECK(wait_in_vain(&spin, now_ns) > now_ns);
}

TEST(who_was_kept_from_running_leaves_the_processor_to_others)
{
    Spin spin = {0};
    spin_begin(&spin, MILLISECOND);
    CHECK(spin_goes_on(&spin, MILLISECOND + MICROSECOND));
    CHECK(!spin_goes_on(&spin, MILLISECOND + 40 * MICROSECOND));
    CHECK(!spin_goes_on(&spin, MILLISECOND + 41 * MICROSECOND));
    spin_begin(&spin, MILLISECOND + 50 * MICROSECOND);
    CHECK(!spin_goes_on(&spin, MILLISECOND + 51 * MICROSECOND));
}

// How long it waits after a wait in vain whose request came so much later.
static int64_t wait_after_missing(Spin *spin, int64_t now_ns, int64_t later_ns)
{
    (void)wait_in_vain(spin, now_ns);
    spin_missed(spin, now_ns + later_ns);
    now_ns += 1000 * MILLISECOND;
    return wait_in_vain(spin, now_ns) - now_ns;
}

TEST(who_comes_a_little_too_late_is_waited_for_longer)
{
    Spin spin = {0};
    CHECK(wait_in_vain(&spin, MILLISECOND) < MILLISECOND + 100 * MICROSECOND);
    spin_missed(&spin, MILLISECOND + 100 * MICROSECOND);
    int64_t now_ns = 1000 * MILLISECOND;
    for (int i = 0; i < 10; i++) { // each comes after 100 us, and is met
        spin_begin(&spin, now_ns);
        for (int64_t waited_ns = 0; waited_ns <= 100 * MICROSECOND; waited_ns += MICROSECOND)
            CHECK(spin_goes_on(&spin, now_ns + waited_ns));
        spin_met(&spin);
        now_ns += 110 * MICROSECOND;
    }
    CHECK(wait_in_vain(&spin, now_ns) < now_ns + 200 * MICROSECOND);
}

TEST(a_longer_wait_in_vain_is_not_tried_again)
{
    Spin spin = {0};
    int64_t usual_ns = wait_in_vain(&spin, MILLISECOND) - MILLISECOND;
    CHECK(wait_after_missing(&spin, 10 * MILLISECOND, 100 * MICROSECOND) > usual_ns);
    int64_t now_ns = 10000 * MILLISECOND;
    CHECK_EQ(wait_in_vain(&spin, now_ns) - now_ns, usual_ns);
}

TEST(who_comes_now_and_then_is_not_waited_for_longer)
{
    Spin spin = {0};
    int64_t usual_ns = wait_in_vain(&spin, MILLISECOND) - MILLISECOND;
    for (int64_t i = 1; i < 10; i++) {
        int64_t now_ns = i * 10000 * MILLISECOND;
        CHECK_EQ(wait_after_missing(&spin, now_ns, MILLISECOND), usual_ns);
    }
}
