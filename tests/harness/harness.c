// The test harness: see harness.h.
//
// The parent runs one child at a time. It picks the child's directory and log file beforehand and
// cleans up after it, so that nothing is left of a test that was killed. A child that passes leaves
// by exit(), so that LeakSanitizer looks at it; a failed check leaves by _exit(), so that it does
// not: what a test had not yet freed when it failed is no news.

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guard.h"

enum { TEST_CPU_SECONDS_MAX = 300, SHOWN_BYTES_MAX = 64, DIRECTORIES_OPEN_MAX = 16 };

typedef enum Outcome { OUTCOME_PASSED, OUTCOME_FAILED, OUTCOME_SKIPPED } Outcome;

enum { EXIT_USAGE = 2, EXIT_CHECK_FAILED = 76, EXIT_SKIPPED = 77 };

static HarnessTest *first_test;
static HarnessTest **last_test = &first_test;

static bool is_forking = true;
static uint64_t seed;
static char run_directory[PATH_MAX];  // holds the log and the test's directory
static char test_directory[PATH_MAX]; // made at its first use

static int run_all(const char *filter);
static Outcome run_one(const HarnessTest *test);
static void run_child(const HarnessTest *test, int log);
static Outcome outcome_of(int status, bool hangs, char *why, size_t why_bytes);
static Guard test_guard(pid_t child);
static unsigned number_of(const char *variable, unsigned otherwise);
static void log_show(int log);
static void seed_choose(void);
static void run_directory_make(void);
static void directory_remove(const char *path);
static int entry_remove(const char *path, const struct stat *status, int flag, struct FTW *place);
__attribute__((noreturn)) static void test_fail(void);
static void bytes_show(const char *label, const uint8_t *bytes, size_t size, size_t from);
__attribute__((noreturn)) static void give_up(const char *what);

int main(int argument_count, char **arguments)
{
    const char *filter = "";
    bool is_listing = false;
    for (int i = 1; i < argument_count; i++) {
        if (strcmp(arguments[i], "--list") == 0) {
            is_listing = true;
        } else if (strcmp(arguments[i], "--no-fork") == 0) {
            is_forking = false;
        } else if (arguments[i][0] != '-') {
            filter = arguments[i];
        } else {
            fprintf(stderr, "usage: %s [--list] [--no-fork] [PART_OF_A_NAME]\n", arguments[0]);
            return EXIT_USAGE;
        }
    }
    if (!is_listing) return run_all(filter);

    for (const HarnessTest *test = first_test; test; test = test->next) {
        if (strstr(test->name, filter)) puts(test->name);
    }
    return EXIT_SUCCESS;
}

static int run_all(const char *filter)
{
    size_t counts[3] = {0};
    seed_choose();
    run_directory_make();
    for (const HarnessTest *test = first_test; test; test = test->next) {
        if (strstr(test->name, filter)) counts[run_one(test)]++;
    }
    directory_remove(run_directory);

    printf("%zu passed, %zu failed", counts[OUTCOME_PASSED], counts[OUTCOME_FAILED]);
    if (counts[OUTCOME_SKIPPED] > 0) printf(", %zu skipped", counts[OUTCOME_SKIPPED]);
    putchar('\n');
    if (counts[OUTCOME_PASSED] + counts[OUTCOME_FAILED] + counts[OUTCOME_SKIPPED] == 0) {
        fprintf(stderr, "no test has '%s' in its name\n", filter);
        return EXIT_FAILURE;
    }
    return counts[OUTCOME_FAILED] > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static Outcome run_one(const HarnessTest *test)
{
    snprintf(test_directory, sizeof test_directory, "%.*s/%s", PATH_MAX / 2, run_directory,
             test->name);
    if (!is_forking) {
        test->run();
        directory_remove(test_directory);
        return OUTCOME_PASSED;
    }

    int log = open(run_directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (log < 0) give_up("cannot open a log file");
    fflush(stdout);
    pid_t child = fork();
    if (child < 0) give_up("cannot fork");
    if (child == 0) run_child(test, log);

    bool hangs;
    setpgid(child, child); // as the child does, whoever comes first
    int status = guard_wait(test_guard(child), child, &hangs);
    kill(-child, SIGKILL); // what it started and left behind
    directory_remove(test_directory);

    char why[64];
    Outcome outcome = outcome_of(status, hangs, why, sizeof why);
    if (outcome == OUTCOME_SKIPPED) printf("skipped %s\n", test->name);
    if (outcome == OUTCOME_FAILED) {
        printf("FAILED %s: %s (TINE_TEST_SEED=%llu)\n", test->name, why, (unsigned long long)seed);
    }
    if (outcome != OUTCOME_PASSED) log_show(log);
    close(log);
    return outcome;
}

static void run_child(const HarnessTest *test, int log)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    setvbuf(stdout, NULL, _IOLBF, 0);
    guard_limit_cpu(number_of("TINE_TEST_CPU_SECONDS", TEST_CPU_SECONDS_MAX));
    test->run();
    exit(EXIT_SUCCESS);
}

// The harness's own tests do not have a minute for a test that hangs.
static Guard test_guard(pid_t child)
{
    return (Guard){
        .group = child,
        .look_ms = number_of("TINE_TEST_LOOK_MS", GUARD_LOOK_MS),
        .looks_max = GUARD_LOOKS,
    };
}

static unsigned number_of(const char *variable, unsigned otherwise)
{
    const char *text = getenv(variable);
    return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static Outcome outcome_of(int status, bool hangs, char *why, size_t why_bytes)
{
    if (hangs) {
        snprintf(why, why_bytes, "it hangs: it slept at %d looks in a row", GUARD_LOOKS);
    } else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) {
        snprintf(why, why_bytes, "it spins: it has used its processor time");
    } else if (WIFSIGNALED(status)) {
        snprintf(why, why_bytes, "killed by SIG%s", sigabbrev_np(WTERMSIG(status)));
    } else if (WEXITSTATUS(status) == EXIT_CHECK_FAILED) {
        snprintf(why, why_bytes, "a check failed");
    } else {
        snprintf(why, why_bytes, "exit code %d", WEXITSTATUS(status));
    }
    if (!WIFEXITED(status)) return OUTCOME_FAILED;
    if (WEXITSTATUS(status) == EXIT_SKIPPED) return OUTCOME_SKIPPED;
    return WEXITSTATUS(status) == EXIT_SUCCESS ? OUTCOME_PASSED : OUTCOME_FAILED;
}

static void log_show(int log)
{
    FILE *in = fdopen(dup(log), "r");
    if (!in) give_up("cannot read the log");
    rewind(in);
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, in) >= 0) {
        line[strcspn(line, "\n")] = '\0';
        printf("    %s\n", line);
    }
    free(line);
    fclose(in);
}

static void seed_choose(void)
{
    const char *text = getenv("TINE_TEST_SEED");
    if (text) {
        seed = strtoull(text, NULL, 10);
    } else if (getrandom(&seed, sizeof seed, 0) != sizeof seed) {
        give_up("getrandom");
    }
}

static void run_directory_make(void)
{
    const char *base = getenv("TINE_TEST_DIR");
    snprintf(run_directory, sizeof run_directory, "%s/tine-test-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(run_directory)) give_up("cannot make a directory for the tests");
}

const char *test_dir(void)
{
    if (mkdir(test_directory, 0700) != 0 && errno != EEXIST) give_up("cannot make test_dir");
    return test_directory;
}

static void directory_remove(const char *path)
{
    nftw(path, entry_remove, DIRECTORIES_OPEN_MAX, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static int entry_remove(const char *path, const struct stat *status, int flag, struct FTW *place)
{
    (void)status;
    (void)place;
    if (flag == FTW_DNR) chmod(path, 0700);
    remove(path);
    return 0;
}

size_t test_scaled(size_t full)
{
    const char *text = getenv("TINE_TEST_SCALE");
    unsigned long scale = text ? strtoul(text, NULL, 10) : 1;
    if (scale == 0) scale = 1;
    return full / scale > 0 ? full / scale : 1;
}

uint64_t test_seed(void)
{
    return seed;
}

void harness_register(HarnessTest *test)
{
    *last_test = test;
    last_test = &test->next;
}

void harness_check(bool condition, const char *text, const char *file, int line)
{
    if (condition) return;
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, text);
    test_fail();
}

void harness_check_equal(intmax_t actual, intmax_t expected, const char *actual_text,
                         const char *expected_text, const char *file, int line)
{
    if (actual == expected) return;
    fprintf(stderr, "%s:%d: %s is %jd, not %s = %jd\n", file, line, actual_text, actual,
            expected_text, expected);
    test_fail();
}

void harness_check_text(const char *actual, const char *expected, const char *actual_text,
                        const char *expected_text, const char *file, int line)
{
    if (actual && expected ? strcmp(actual, expected) == 0 : actual == expected) return;
    fprintf(stderr, "%s:%d: %s is not %s\n", file, line, actual_text, expected_text);
    fprintf(stderr, "  actual:   %s%s%s\n", actual ? "\"" : "", actual ? actual : "NULL",
            actual ? "\"" : "");
    fprintf(stderr, "  expected: %s%s%s\n", expected ? "\"" : "", expected ? expected : "NULL",
            expected ? "\"" : "");
    test_fail();
}

void harness_check_bytes(const void *actual, size_t actual_bytes, const void *expected,
                         size_t expected_bytes, const char *actual_text, const char *expected_text,
                         const char *file, int line)
{
    const uint8_t *a = actual;
    const uint8_t *b = expected;
    size_t same = 0;
    while (same < actual_bytes && same < expected_bytes && a[same] == b[same]) {
        same++;
    }
    if (same == actual_bytes && same == expected_bytes) return;
    fprintf(stderr, "%s:%d: %s is not %s from byte %zu on\n", file, line, actual_text,
            expected_text, same);
    bytes_show("actual:  ", a, actual_bytes, same);
    bytes_show("expected:", b, expected_bytes, same);
    test_fail();
}

void harness_skip(const char *reason, const char *file, int line)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, reason);
    fflush(NULL);
    _exit(EXIT_SKIPPED);
}

static void test_fail(void)
{
    fflush(NULL);
    if (!is_forking) abort(); // where the debugger wants to stop
    _exit(EXIT_CHECK_FAILED);
}

static void bytes_show(const char *label, const uint8_t *bytes, size_t size, size_t from)
{
    fprintf(stderr, "  %s %zu bytes, there", label, size);
    for (size_t i = from; i < size && i < from + SHOWN_BYTES_MAX; i++) {
        fprintf(stderr, " %02x", bytes[i]);
    }
    fputs(size > from + SHOWN_BYTES_MAX ? " …\n" : "\n", stderr);
}

static void give_up(const char *what)
{
    fprintf(stderr, "test harness: %s: %s\n", what, strerror(errno));
    _exit(EXIT_FAILURE);
}
