// Long random runs against the model.
//
//     test_model seed_2                                  one of the fixed seeds
//     TINE_TEST_SEED=… test_model random                 the seed that a failed run has shown
//     make model-long                                    5 000 000 operations over random seeds

#include <stdlib.h>

#include "run.h"

enum { OPERATIONS_FULL = 200000, OPERATIONS_RANDOM = 20000, OPERATIONS_COMPLETE = 10000 };

static void run_seed(uint64_t seed, size_t operations)
{
    RunOptions options = {.seed = seed, .operations = operations};
    Run *run = calloc(1, sizeof(Run));
    CHECK(run);
    run_open(run, &options);
    run_all(run);
    run_report(run, /* is_complete= */ operations >= OPERATIONS_COMPLETE);
    run_close(run);
    free(run);
}

TEST(model_seed_1)
{
    run_seed(1, test_scaled(OPERATIONS_FULL));
}

TEST(model_seed_2)
{
    run_seed(2, test_scaled(OPERATIONS_FULL));
}

TEST(model_seed_3)
{
    run_seed(3, test_scaled(OPERATIONS_FULL));
}

// TINE_MODEL_OPERATIONS makes it longer: a run per 200 000, each of the next seed.
TEST(model_random_seed)
{
    const char *wanted = getenv("TINE_MODEL_OPERATIONS");
    size_t left = wanted ? strtoul(wanted, NULL, 10) : test_scaled(OPERATIONS_RANDOM);
    for (uint64_t seed = test_seed(); left > 0; seed++) {
        size_t operations = left < OPERATIONS_FULL ? left : OPERATIONS_FULL;
        run_seed(seed, operations);
        left -= operations;
    }
}
