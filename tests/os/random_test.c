// Random bits: the published algorithm, repeatable, and even.

#include "os/random.h"

#include <string.h>

#include "harness.h"

// From the authors' C code, https://prng.di.unimi.it/xoshiro256starstar.c, state 1 2 3 4.
TEST(random_next_is_xoshiro256_starstar)
{
    static const uint64_t EXPECTED[] = {
        UINT64_C(11520),
        UINT64_C(0),
        UINT64_C(1509978240),
        UINT64_C(1215971899390074240),
    };
    Random random = {{1, 2, 3, 4}};
    for (size_t i = 0; i < 4; i++)
        CHECK_EQ(random_next(&random), EXPECTED[i]);
}

// splitmix64 of 0, https://prng.di.unimi.it/splitmix64.c.
TEST(random_seed_spreads_by_splitmix64)
{
    Random random;
    random_seed(&random, 0);
    CHECK(random.state[0] == UINT64_C(0xe220a8397b1dcdaf));
    CHECK(random.state[1] == UINT64_C(0x6e789e6aa1b965f4));
}

TEST(random_seed_repeats_and_differs_by_seed)
{
    Random a;
    Random b;
    Random c;
    random_seed(&a, 7);
    random_seed(&b, 7);
    random_seed(&c, 8);
    bool is_different = false;
    for (int i = 0; i < 100; i++) {
        uint64_t value = random_next(&a);
        CHECK(value == random_next(&b));
        is_different |= value != random_next(&c);
    }
    CHECK(is_different);
}

TEST(random_seed_system_differs_each_time)
{
    Random a;
    Random b;
    random_seed_system(&a);
    random_seed_system(&b);
    CHECK(memcmp(&a, &b, sizeof a) != 0);
    CHECK(random_next(&a) != random_next(&b));
}

TEST(random_fill_writes_every_byte_and_none_past_the_end)
{
    Random random;
    random_seed(&random, test_seed());
    for (size_t size = 0; size < 40; size++) {
        uint8_t seen[40] = {0};
        for (int round = 0; round < 20; round++) {
            uint8_t bytes[48];
            memset(bytes, 0, sizeof bytes);
            random_fill(&random, bytes, size);
            for (size_t i = 0; i < size; i++)
                seen[i] |= bytes[i];
            for (size_t i = size; i < sizeof bytes; i++)
                CHECK_EQ(bytes[i], 0);
        }
        for (size_t i = 0; i < size; i++)
            CHECK(seen[i] != 0);
    }
}

TEST(random_below_stays_below)
{
    static const uint64_t BOUNDS[] = {1, 2, 3, 10, 1000, UINT64_C(1) << 63, UINT64_MAX};
    Random random;
    random_seed(&random, test_seed());
    for (size_t i = 0; i < sizeof BOUNDS / sizeof BOUNDS[0]; i++) {
        for (int k = 0; k < 1000; k++)
            CHECK(random_below(&random, BOUNDS[i]) < BOUNDS[i]);
    }
    CHECK_EQ(random_below(&random, 1), 0);
}

// Of 2^64 values, a plain remainder would send two quarters to the lowest third.
TEST(random_below_is_even_for_bounds_near_the_top)
{
    uint64_t third = UINT64_C(1) << 62;
    Random random;
    random_seed(&random, 1);
    int counts[3] = {0};
    for (int i = 0; i < 30000; i++)
        counts[random_below(&random, 3 * third) / third]++;
    for (size_t i = 0; i < 3; i++)
        CHECK(counts[i] > 9500 && counts[i] < 10500);
}

TEST(random_below_is_even)
{
    Random random;
    random_seed(&random, 1);
    int counts[10] = {0};
    for (int i = 0; i < 100000; i++)
        counts[random_below(&random, 10)]++;
    for (size_t i = 0; i < 10; i++)
        CHECK(counts[i] > 9500 && counts[i] < 10500);
}
