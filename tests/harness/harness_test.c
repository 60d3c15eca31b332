// The harness itself: what it says of tests that fail in each way a test can.
//
// The victims are registered only when the environment asks for them; the tests run this very
// program again with that.

#include "harness.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "guard.h"

enum { OUTPUT_BYTES_MAX = 65536 };

typedef struct Bytes {
    const void *bytes;
    size_t size;
} Bytes;

static char output[OUTPUT_BYTES_MAX];

static int run_victims(const char *environment, const char *arguments);
static bool says(const char *text);

static void victim_passes(void)
{
    puts("nobody sees this");
}

static void victim_fails_a_check(void)
{
    puts("a word before the check");
    CHECK(1 + 1 == 3);
}

static void victim_compares_integers(void)
{
    CHECK_EQ(6 * 7, 43);
}

static void victim_compares_text(void)
{
    CHECK_STR("same", "same");
    CHECK_STR(NULL, "other");
}

static void victim_compares_bytes(void)
{
    CHECK_BYTES(((Bytes){"abc", 3}), ((Bytes){"abc", 3}));
    CHECK_BYTES(((Bytes){"abc", 3}), ((Bytes){"abde", 4}));
}

static void victim_crashes(void)
{
    snprintf(output, sizeof output, "touch %s/left && mkdir -p %s/a/b && touch %s/a/b/c",
             test_dir(), test_dir(), test_dir());
    CHECK_EQ(system(output), 0);
    signal(SIGABRT, SIG_DFL);
    abort();
}

static void victim_exits(void)
{
    _exit(3);
}

static void victim_hangs(void)
{
    for (;;) {
        pause();
    }
}

static void victim_spins(void)
{
    for (;;) {
        (void)clock();
    }
}

// Naps at most looks of the guard, and is done after twice as many as hang.
static void victim_naps(void)
{
    for (int i = 0; i < 2 * GUARD_LOOKS; i++) {
        clock_t until = clock() + CLOCKS_PER_SEC / 500;
        (void)poll(NULL, 0, 10);
        while (clock() < until) {
        }
    }
}

static void victim_leaves_a_child(void)
{
    printf("child %d\n", (int)getpid());
    if (fork() == 0) {
        for (;;) {
            pause();
        }
    }
    CHECK(false);
}

static void victim_skips(void)
{
    SKIP("no such machine");
}

static HarnessTest victims[] = {
    {"victim_passes", victim_passes, NULL},
    {"victim_fails_a_check", victim_fails_a_check, NULL},
    {"victim_compares_integers", victim_compares_integers, NULL},
    {"victim_compares_text", victim_compares_text, NULL},
    {"victim_compares_bytes", victim_compares_bytes, NULL},
    {"victim_crashes", victim_crashes, NULL},
    {"victim_exits", victim_exits, NULL},
    {"victim_hangs", victim_hangs, NULL},
    {"victim_spins", victim_spins, NULL},
    {"victim_naps", victim_naps, NULL},
    {"victim_leaves_a_child", victim_leaves_a_child, NULL},
    {"victim_skips", victim_skips, NULL},
};

__attribute__((constructor)) static void victims_register(void)
{
    if (!getenv("TINE_TEST_VICTIMS")) return;
    for (size_t i = 0; i < sizeof victims / sizeof victims[0]; i++) {
        harness_register(&victims[i]);
    }
}

TEST(a_passing_test_prints_nothing)
{
    CHECK_EQ(run_victims("", "victim_passes"), 0);
    CHECK_STR(output, "1 passed, 0 failed\n");
}

TEST(a_failed_check_shows_the_place_and_the_log)
{
    CHECK_EQ(run_victims("TINE_TEST_SEED=5", "victim_fails_a_check"), 1);
    CHECK(says("FAILED victim_fails_a_check: a check failed (TINE_TEST_SEED=5)\n"
               "    a word before the check\n"
               "    "));
    CHECK(says("tests/harness/harness_test.c:") && says(": not so: 1 + 1 == 3\n"));
    CHECK(says("\n0 passed, 1 failed\n"));
}

TEST(comparisons_show_both_sides)
{
    CHECK_EQ(run_victims("", "victim_compares"), 1);
    CHECK(says(": 6 * 7 is 42, not 43 = 43\n"));
    CHECK(says("      actual:   NULL\n      expected: \"other\"\n"));
    CHECK(says(" from byte 2 on\n"
               "      actual:   3 bytes, there 63\n"
               "      expected: 4 bytes, there 64 65\n"));
    CHECK(says("\n0 passed, 3 failed\n"));
}

TEST(a_crash_fails_its_test_only_and_leaves_no_files)
{
    char environment[4096];
    snprintf(environment, sizeof environment,
             "TINE_TEST_DIR=%s TINE_TEST_LOOK_MS=10 TINE_TEST_CPU_SECONDS=1", test_dir());
    CHECK_EQ(run_victims(environment, "victim_"), 1);
    CHECK(says("FAILED victim_crashes: ") && says("FAILED victim_exits: exit code 3 ("));
    CHECK(says("FAILED victim_hangs: it hangs: it slept at 60 looks in a row ("));
    CHECK(says("FAILED victim_spins: it spins: it has used its processor time ("));
    CHECK(says("skipped victim_skips\n") && says("no such machine"));
    CHECK(says("\n2 passed, 9 failed, 1 skipped\n"));
    CHECK_EQ(rmdir(test_dir()), 0); // it is empty
}

TEST(what_a_test_started_ends_with_it)
{
    CHECK_EQ(run_victims("", "victim_leaves_a_child"), 1);
    const char *group = strstr(output, "child ");
    CHECK(group != NULL);
    // The killed process may need a moment to be gone: the guard ends this loop.
    while (kill((pid_t)-atoi(group + strlen("child ")), 0) == 0) {
    }
}

TEST(the_list_and_the_filter_name_tests)
{
    CHECK_EQ(run_victims("", "--list victim_compares"), 0);
    CHECK_STR(output, "victim_compares_integers\nvictim_compares_text\nvictim_compares_bytes\n");
    CHECK_EQ(run_victims("", "no_such_test"), 1);
    CHECK(says("no test has 'no_such_test' in its name\n"));
    CHECK_EQ(run_victims("", "--nonsense"), 2);
}

TEST(scaled_counts_never_reach_zero)
{
    setenv("TINE_TEST_SCALE", "10", 1);
    CHECK_EQ(test_scaled(1000), 100);
    CHECK_EQ(test_scaled(3), 1);
    setenv("TINE_TEST_SCALE", "0", 1);
    CHECK_EQ(test_scaled(3), 3);
    unsetenv("TINE_TEST_SCALE");
    CHECK_EQ(test_scaled(3), 3);
}

static int run_victims(const char *environment, const char *arguments)
{
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    CHECK(length > 0);
    self[length] = '\0';

    char command[12288];
    snprintf(command, sizeof command, "exec 2>&1; env TINE_TEST_VICTIMS=1 %s %s %s", environment,
             self, arguments);
    FILE *in = popen(command, "r");
    CHECK(in != NULL);
    size_t size = fread(output, 1, sizeof output - 1, in);
    output[size] = '\0';
    int status = pclose(in);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static bool says(const char *text)
{
    return strstr(output, text) != NULL;
}
