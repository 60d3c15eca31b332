// Every storage call of a day fails once, in turn: the call that made it fails, the store is as it
// was before it, byte for byte, and the same call then works. In the end the store is that of a day
// on which nothing failed.

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "day.h"
#include "report/log.h"

enum { STORAGE_CALLS_MAX = 5000 };

typedef struct Pictures {
    Hash after[64]; // each step
} Pictures;

static void undisturbed_day(Pictures *out)
{
    CHECK(DAY_STEP_COUNT <= 64);
    Day *day = day_open(NULL);
    for (size_t i = 0; i < DAY_STEP_COUNT; i++) {
        CHECK_EQ(DAY_STEPS[i].run(day), ERROR_NONE);
        if (DAY_STEPS[i].kind == STEP_PURGE) engine_finish_purges(day->engine);
        out->after[i] = store_picture(day->engine);
    }
    CHECK_CLEAN(day->engine);
    day_close(day);
}

// After a commit failed for good, nothing works until the store is opened again.
static void expect_closed(Day *day)
{
    uint64_t pending;
    CHECK_EQ(day_nudge(day), ERROR_CLOSED); // by now the writer has met the failure
    CHECK_EQ(day_purges_pending(day, &pending), ERROR_CLOSED);
    CHECK_EQ(error_status(ERROR_CLOSED), STATUS_DATA_LOSS);
    day_reopen(day);
}

// Runs one step until it succeeds, failing one storage call later each time. Returns how often it
// failed.
static size_t run_step(Day *day, Fault *fault, const DayStep *step, Error error)
{
    Hash before = store_picture(day->engine);
    for (size_t nth = 1; nth < STORAGE_CALLS_MAX; nth++) {
        CHECK_EQ(day_nudge(day), ERROR_SESSION_NOT_FOUND);
        fault_wait_idle(fault);
        fault_arm(fault, error, nth, step->kind != STEP_READ);
        Error failed = step->run(day);
        if (failed == ERROR_NONE) return nth - 1; // and of a purge, the first slice fails now
        CHECK(fault_disarm(fault));
        CHECK_EQ(failed, error);
        if (fault->is_fired_at_commit && error != ERROR_STORE_FULL) expect_closed(day);
        bool is_as_before = hash_equal(store_picture(day->engine), before);
        if (!is_as_before) printf("%s left something behind at call %zu\n", step->name, nth);
        CHECK(is_as_before);
    }
    CHECK_STR("the step never succeeds", NULL);
    return 0;
}

static void wait_for_slice(Day *day, Fault *fault)
{
    uint64_t pending = 1;
    while (!fault_is_fired(fault) && pending > 0) {
        Error error = day_purges_pending(day, &pending);
        CHECK(error == ERROR_NONE || fault_is_fired(fault)); // at a commit: the store is closed
        sched_yield();
    }
}

// The same with the slices of a purge, which follow it on the writer's own account: each is nudged
// by a call that writes nothing, and fails one storage call later each time.
static size_t run_slices(Day *day, Fault *fault, Error error)
{
    wait_for_slice(day, fault);
    size_t failures = 0, nth = 2;
    bool is_fired = fault_disarm(fault);
    while (is_fired) {
        failures++;
        if (fault->is_fired_at_commit && error != ERROR_STORE_FULL) {
            expect_closed(day); // and goes on by itself
            break;
        }
        CHECK_CLEAN(day->engine);
        Hash before = store_picture(day->engine);
        fault_arm_slice(fault, error, nth);
        CHECK_EQ(day_nudge(day), ERROR_SESSION_NOT_FOUND);
        wait_for_slice(day, fault);
        is_fired = fault_disarm(fault);
        nth = fault->has_committed ? 2 : nth + 1;
        bool is_as_before = hash_equal(store_picture(day->engine), before);
        CHECK(is_as_before || fault->has_committed);
    }
    engine_finish_purges(day->engine);
    return failures;
}

static void disturbed_day(Error error)
{
    Pictures pictures;
    undisturbed_day(&pictures);
    Fault fault;
    fault_init(&fault);
    Day *day = day_open(&fault);
    size_t failures = 0;
    log_configure(LOG_OFF, STDERR_FILENO);
    for (size_t i = 0; i < DAY_STEP_COUNT; i++) {
        const DayStep *step = &DAY_STEPS[i];
        if (step->kind == STEP_QUIET) {
            CHECK_EQ(step->run(day), ERROR_NONE);
        } else {
            failures += run_step(day, &fault, step, error);
        }
        if (step->kind == STEP_PURGE) failures += run_slices(day, &fault, error);
        (void)fault_disarm(&fault);
        CHECK_CLEAN(day->engine);
        bool is_the_same = hash_equal(store_picture(day->engine), pictures.after[i]);
        if (!is_the_same) printf("after %s the store is another\n", step->name);
        CHECK(is_the_same);
    }
    printf("%zu storage calls failed\n", failures);
    CHECK(failures > 500);
    day_close(day);
}

TEST(every_storage_call_fails_once_with_an_io_error)
{
    disturbed_day(ERROR_IO);
}

TEST(every_storage_call_fails_once_with_a_full_store)
{
    disturbed_day(ERROR_STORE_FULL);
}

TEST(every_storage_call_fails_once_without_memory)
{
    disturbed_day(ERROR_OUT_OF_MEMORY);
}
