// A tined for a test: tine_test.h. It runs as a child of this process, with its output in a file.

#include "tine_test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "os/clock.h"
#include "os/directory.h"
#include "os/socket_path.h"
#include "status.h"

enum {
    READY_MS_DEFAULT = 60 * 1000,
    LOOK_MS = 100,           // between two looks whether tined has ended
    STOP_MS_MAX = 30 * 1000, // tined gives up on its clients after 6 s
    ARGUMENTS_MAX = 64,
    SAID_BYTES = 384, // of the end of tined's output, in a status
};

extern char **environ;

struct TineTest {
    TineTestOptions options;
    char directory[SOCKET_PATH_BYTES_MAX + 1];
    char socket[SOCKET_PATH_BYTES_MAX + 16];
    char url[SOCKET_PATH_BYTES_MAX + 32];
    char data[SOCKET_PATH_BYTES_MAX + 16];
    char log[SOCKET_PATH_BYTES_MAX + 16];
    pid_t pid; // 0: none runs
};

static bool directory_make_short(char out[SOCKET_PATH_BYTES_MAX + 1]);
static int start(TineTest *test, TineStatus *status);
static int spawn(TineTest *test, TineStatus *status);
static int wait_until_ready(TineTest *test, TineStatus *status);
static int fail(const TineTest *test, TineStatus *status, int code, const char *what);

int tine_test_start(const TineTestOptions *options, TineStatus *out_status, TineTest **out_test)
{
    TineTest *test = calloc(1, sizeof(TineTest));
    if (!test) return status_out_of_memory(out_status);
    if (options) test->options = *options;
    if (!directory_make_short(test->directory)) {
        int error = errno;
        free(test);
        char message[sizeof(out_status->message)];
        snprintf(message, sizeof(message), "cannot make a temporary directory: %s",
                 strerror(error));
        return status_set(out_status, STATUS_UNKNOWN, "", message);
    }
    snprintf(test->socket, sizeof(test->socket), "%s/tine.sock", test->directory);
    snprintf(test->url, sizeof(test->url), "ipc://%s", test->socket);
    snprintf(test->data, sizeof(test->data), "%s/data", test->directory);
    snprintf(test->log, sizeof(test->log), "%s/log", test->directory);
    int code = start(test, out_status);
    if (code) {
        (void)tine_test_end(test, NULL);
        return code;
    }
    *out_test = test;
    return STATUS_OK;
}

// In $TMPDIR, or in /tmp where the path of the socket would be too long.
static bool directory_make_short(char out[SOCKET_PATH_BYTES_MAX + 1])
{
    static const char NAME[] = "tine-XXXXXX", LONGEST_BESIDE[] = "/tine.events";
    const char *temporary = getenv("TMPDIR");
    if (!temporary || *temporary != '/') temporary = "/tmp";
    if (strlen(temporary) + 1 + strlen(NAME) + strlen(LONGEST_BESIDE) > SOCKET_PATH_BYTES_MAX) {
        temporary = "/tmp";
    }
    snprintf(out, SOCKET_PATH_BYTES_MAX + 1, "%s/%s", temporary, NAME);
    return mkdtemp(out) != NULL;
}

const char *tine_test_url(const TineTest *test)
{
    return test->url;
}

static int start(TineTest *test, TineStatus *status)
{
    int code = spawn(test, status);
    if (!code) code = wait_until_ready(test, status);
    if (code) tine_test_kill(test);
    return code;
}

// This process's environment without what configures tined. NULL: out of memory.
static char **environment_make(void)
{
    size_t count = 0, kept = 0;
    while (environ[count])
        count++;
    char **copy = calloc(count + 1, sizeof(char *));
    for (size_t i = 0; copy && i < count; i++) {
        bool is_tined = strncmp(environ[i], "TINE_", strlen("TINE_")) == 0 ||
                        strncmp(environ[i], "NOTIFY_SOCKET=", strlen("NOTIFY_SOCKET=")) == 0;
        if (!is_tined) copy[kept++] = environ[i];
    }
    return copy;
}

// Returns an errno, or 0.
static int spawn_program(TineTest *test, const char *program, const char *const *arguments,
                         char *const *environment)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    int error = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!error) {
        error = posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, test->log,
                                                 O_WRONLY | O_CREAT | O_APPEND, 0600);
    }
    if (!error) error = posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    if (!error) error = posix_spawnattr_setsigmask(&attributes, &none);
    if (!error) error = posix_spawnattr_setsigdefault(&attributes, &all);
    if (!error) {
        error =
            posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    }
    if (!error) {
        error = posix_spawnp(&test->pid, program, &files, &attributes,
                             (char *const *)(uintptr_t)arguments, environment);
    }
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    if (error) test->pid = 0;
    return error;
}

static int spawn(TineTest *test, TineStatus *status)
{
    const char *program = test->options.tined ? test->options.tined : getenv("TINED");
    if (!program || !*program) program = "tined";
    const char *arguments[ARGUMENTS_MAX + 1] = {"tined", "--socket", test->socket, "--idle-exit",
                                                "10m",   "--data",   test->data};
    const char *const *more = test->options.arguments;
    size_t count = 7;
    for (size_t i = 0; more && more[i]; i++) {
        if (count == ARGUMENTS_MAX) {
            return status_set(status, STATUS_INVALID_ARGUMENT, "INVALID_ARGUMENT",
                              "too many arguments for tined");
        }
        arguments[count++] = more[i];
    }
    char **environment = environment_make();
    if (!environment) return status_out_of_memory(status);
    int error = spawn_program(test, program, arguments, environment);
    free(environment);
    if (!error) return STATUS_OK;
    char what[256];
    snprintf(what, sizeof(what),
             "cannot start %.100s: %s (install tined, or name it by $TINED or "
             "TineTestOptions.tined)",
             program, strerror(error));
    return fail(test, status, error == ENOENT ? STATUS_NOT_FOUND : STATUS_UNKNOWN, what);
}

// Takes note of tined's end. False: it still runs.
static bool has_ended(TineTest *test, int *out_status)
{
    if (waitpid(test->pid, out_status, WNOHANG) != test->pid) return false;
    test->pid = 0;
    return true;
}

static int wait_until_ready(TineTest *test, TineStatus *status)
{
    int64_t ready_ms = test->options.ready_ms > 0 ? test->options.ready_ms : READY_MS_DEFAULT;
    int64_t until_ns = clock_monotonic_ns() + ready_ms * 1000000;
    Tine *tine;
    int code = tine_open(test->url, status, &tine), ended_with;
    if (code) return code;
    while ((code = tine_ready(tine, LOOK_MS, NULL))) {
        if (has_ended(test, &ended_with)) {
            code = fail(test, status, STATUS_UNAVAILABLE, "tined ended before it was ready");
            break;
        }
        if (clock_monotonic_ns() < until_ns) continue;
        code = fail(test, status, STATUS_UNAVAILABLE, "tined is not ready in time");
        break;
    }
    tine_close(tine);
    return code ? code : status_set(status, STATUS_OK, "", "");
}

// Says what went wrong, with the end of what tined said.
static int fail(const TineTest *test, TineStatus *status, int code, const char *what)
{
    char said[SAID_BYTES + 1] = "", message[sizeof(status->message)];
    int file = open(test->log, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        off_t size = lseek(file, 0, SEEK_END);
        ssize_t count = pread(file, said, SAID_BYTES, size > SAID_BYTES ? size - SAID_BYTES : 0);
        said[count > 0 ? count : 0] = '\0';
        close(file);
    }
    snprintf(message, sizeof(message), "%s%s%s", what, *said ? "; it said: " : "", said);
    return status_set(status, code, "", message);
}

void tine_test_kill(TineTest *test)
{
    if (test->pid == 0) return;
    kill(test->pid, SIGKILL);
    while (waitpid(test->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    test->pid = 0;
}

// Waits until the process ends, for STOP_MS_MAX at most.
static void wait_for_end(pid_t pid)
{
    int process = (int)syscall(SYS_pidfd_open, pid, 0);
    if (process < 0) return;
    struct pollfd ended = {.fd = process, .events = POLLIN};
    while (poll(&ended, 1, STOP_MS_MAX) < 0 && errno == EINTR)
        continue;
    close(process);
}

int tine_test_stop(TineTest *test, TineStatus *out_status)
{
    int ended_with = 0;
    if (test->pid == 0) return status_set(out_status, STATUS_OK, "", "");
    kill(test->pid, SIGTERM);
    wait_for_end(test->pid);
    if (!has_ended(test, &ended_with)) {
        tine_test_kill(test);
        return fail(test, out_status, STATUS_DEADLINE_EXCEEDED,
                    "tined did not stop in time and was killed");
    }
    if (WIFEXITED(ended_with) && WEXITSTATUS(ended_with) == 0) {
        return status_set(out_status, STATUS_OK, "", "");
    }
    char what[64];
    bool has_exited = WIFEXITED(ended_with);
    snprintf(what, sizeof(what), "tined ended with %s %d", has_exited ? "exit code" : "signal",
             has_exited ? WEXITSTATUS(ended_with) : WTERMSIG(ended_with));
    return fail(test, out_status, STATUS_UNKNOWN, what);
}

int tine_test_restart(TineTest *test, TineStatus *out_status)
{
    int code = tine_test_stop(test, out_status);
    return code ? code : start(test, out_status);
}

int tine_test_end(TineTest *test, TineStatus *out_status)
{
    if (!test) return status_set(out_status, STATUS_OK, "", "");
    int code = tine_test_stop(test, out_status);
    directory_remove(test->data);
    directory_remove(test->directory);
    free(test);
    return code;
}
