// Long lists are streamed: the memory of a command does not grow with its output.

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "shell.h"

enum { MESSAGES = 150, MESSAGE_BYTES = 160 * 1024, SESSIONS = 300, GROWTH_KIB_MAX = 8 * 1024 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { MEMORY_IS_OURS = 0 }; // sanitizers keep what is freed
#else
enum { MEMORY_IS_OURS = 1 };
#endif

// Returns the peak memory, in KiB, of a run of tine. Its output is discarded.
static long memory_of(const char *command, const char *option)
{
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        shell_enter_home();
        dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
        execl(TINE, "tine", "--no-start", command, option, (char *)NULL);
        _exit(127);
    }
    int status;
    struct rusage used;
    CHECK_EQ(wait4(child, &status, 0, &used), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return used.ru_maxrss;
}

static void check_growth(Shell *shell, const char *command, const char *const *options,
                         const char *grow)
{
    long before[4];
    for (size_t i = 0; options[i]; i++)
        before[i] = memory_of(command, options[i]);
    shell_ok(shell, "%s", grow);
    for (size_t i = 0; options[i]; i++) {
        long after = memory_of(command, options[i]);
        if (after - before[i] > GROWTH_KIB_MAX) {
            printf("tine %s %s: %ld KiB, then %ld KiB\n", command, options[i], before[i], after);
        }
        CHECK(!MEMORY_IS_OURS || after - before[i] <= GROWTH_KIB_MAX);
    }
}

TEST(log_takes_no_more_memory_for_a_long_history)
{
    static const char *const OPTIONS[] = {"--json", "--reverse", "--oneline", NULL};
    CLEANUP(shell_close) Shell *shell = shell_open();
    char grow[256];
    shell_tined_start(shell);
    shell_ok(shell,
             "tine new -s plan; head -c %d /dev/zero | tr '\\0' x >text; "
             "for i in 1 2 3 4 5; do tine append plan <text; done",
             MESSAGE_BYTES);
    snprintf(grow, sizeof(grow), "for i in $(seq %zu); do tine append plan <text; done >/dev/null",
             test_scaled(MESSAGES));
    check_growth(shell, "log", OPTIONS, grow);
}

TEST(ls_takes_no_more_memory_for_many_sessions)
{
    static const char *const OPTIONS[] = {"--json", "--all", NULL};
    CLEANUP(shell_close) Shell *shell = shell_open();
    char grow[512];
    shell_tined_start(shell);
    shell_ok(shell, "head -c 60000 /dev/zero | tr '\\0' 1 >number; "
                    "printf '{\"a\":%%s}' $(cat number) >json; "
                    "for i in $(seq 20); do tine new --metadata \"$(cat json)\"; done >/dev/null");
    snprintf(grow, sizeof(grow),
             "for i in $(seq %zu); do tine new --metadata \"$(cat json)\"; done >/dev/null",
             test_scaled(SESSIONS));
    check_growth(shell, "ls", OPTIONS, grow);
}
