// The test of the model test: with a bug planted in the store it must fail, and soon.

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/run.h"
#include "store/planted.h"

enum { OPERATIONS_MAX = 20000, OPERATIONS_SOUND = 3000 };

int planted_bug;

static void run_with_bug(int bug, size_t operations)
{
    RunOptions options = {.seed = 4, .operations = operations, .ends_on_difference = true};
    planted_bug = bug;
    Run *run = calloc(1, sizeof(Run));
    CHECK(run);
    run_open(run, &options);
    run_all(run);
    run_close(run);
    free(run);
}

// How a run ends, in a process of its own.
static int exit_code_of(int bug, size_t operations)
{
    (void)test_dir();
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        run_with_bug(bug, operations);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

TEST(model_accepts_a_store_without_a_planted_bug)
{
    CHECK_EQ(exit_code_of(0, OPERATIONS_SOUND), 0);
}

TEST(model_finds_a_segment_whose_last_entry_is_missing)
{
    CHECK_EQ(exit_code_of(1, OPERATIONS_MAX), RUN_DIFFERS);
}

TEST(model_finds_a_rewind_that_keeps_the_old_previews)
{
    CHECK_EQ(exit_code_of(2, OPERATIONS_MAX), RUN_DIFFERS);
}

TEST(model_finds_a_live_window_that_begins_with_the_cut_off)
{
    CHECK_EQ(exit_code_of(3, OPERATIONS_MAX), RUN_DIFFERS);
}

TEST(model_finds_an_order_of_activity_whose_neighbour_was_not_settled)
{
    CHECK_EQ(exit_code_of(4, OPERATIONS_MAX), RUN_DIFFERS);
}

TEST(model_finds_a_fork_of_an_inherited_message_that_follows_the_parent)
{
    CHECK_EQ(exit_code_of(5, OPERATIONS_MAX), RUN_DIFFERS);
}

TEST(model_finds_operations_that_age_by_the_wall_clock)
{
    CHECK_EQ(exit_code_of(6, OPERATIONS_MAX), RUN_DIFFERS);
}
