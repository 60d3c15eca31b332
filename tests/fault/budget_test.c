// Memory that runs out while a request is decoded, checked or run: with every budget that is too
// small the call fails cleanly and stores nothing, with the first that is enough it works.

#include <stdio.h>
#include <unistd.h>

#include "day.h"
#include "report/log.h"

// An arena hands out multiples of 16 bytes: budgets in between are all the same.
// Past 8 KiB, where stored texts are copied, the steps grow.
enum {
    BUDGET_STEP = 16,
    BUDGET_STEP_LARGE = 37 * 16,
    BUDGET_LARGE = 8192,
    BUDGET_MAX = 256 * 1024
};

static size_t next_budget(size_t budget)
{
    size_t step = budget < BUDGET_LARGE ? BUDGET_STEP : BUDGET_STEP_LARGE;
    return budget + step * 10 / test_scaled(10);
}

static Error try_step(Day *day, const DayStep *step, size_t budget)
{
    Hash before = store_picture(day->engine);
    Error error = step->run(day);
    if (!error) return error;
    bool is_clean = error == ERROR_TOO_LONG || error == ERROR_OUT_OF_MEMORY;
    bool is_as_before = hash_equal(store_picture(day->engine), before);
    if (!is_clean || !is_as_before) {
        printf("%s with %zu bytes: %s\n", step->name, budget, error_reason(error));
    }
    CHECK(is_clean);
    CHECK(is_as_before);
    return error;
}

static const DayStep *step_named(const char *name)
{
    for (size_t i = 0; i < DAY_STEP_COUNT; i++) {
        if (strcmp(DAY_STEPS[i].name, name) == 0) return &DAY_STEPS[i];
    }
    CHECK_STR(name, NULL);
    return NULL;
}

static void grow_until_it_works(Day *day, const char *name)
{
    const DayStep *step = step_named(name);
    Error error = ERROR_TOO_LONG;
    size_t budget = 1;
    for (; error && budget < BUDGET_MAX; budget = next_budget(budget)) {
        day->options.decode_budget_bytes = budget;
        day_reopen(day);
        error = try_step(day, step, budget);
    }
    CHECK_EQ(error, ERROR_NONE);
    CHECK(budget > 2 * next_budget(1));
    CHECK_CLEAN(day->engine);
    day->options.decode_budget_bytes = 0;
    day_reopen(day);
}

TEST(every_budget_that_is_too_small_fails_cleanly)
{
    static const char *const GROWING[] = {"append_first",     "append_answer", "append_tool",
                                          "append_for_agent", "add_marker",    "fork_root",
                                          "rewind_root",      "delete_tool",   "update_root",
                                          "propagate_totals", "soft_delete",   "restore",
                                          "forget",           "replace_todos"};
    Day *day = day_open(NULL);
    log_configure(LOG_OFF, STDERR_FILENO);
    CHECK_EQ(step_named("create_root")->run(day), ERROR_NONE);
    CHECK_EQ(step_named("create_agent")->run(day), ERROR_NONE);
    CHECK_EQ(step_named("remember")->run(day), ERROR_NONE);
    for (size_t i = 0; i < sizeof(GROWING) / sizeof(*GROWING); i++) {
        grow_until_it_works(day, GROWING[i]);
    }
    day_close(day);
}
