// Runs lines in a shell in the directory of the test.

#include "shell.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "tine.h"
#include "tine_calls.h"

Shell *shell_open(void)
{
    Shell *shell = calloc(1, sizeof(Shell));
    CHECK(shell != NULL);
    return shell;
}

void shell_close(Shell **shell)
{
    if (*shell && (*shell)->tined > 0) {
        kill((*shell)->tined, SIGKILL);
        waitpid((*shell)->tined, NULL, 0);
    }
    free(*shell);
    *shell = NULL;
}

// Allocates nothing: this runs between fork and exec, and another thread may have been inside
// malloc; the malloc of a sanitizer would then be locked.
void shell_enter_home(void)
{
    enum { VARIABLES = 7, VARIABLE_BYTES_MAX = 4096 };
    static char texts[VARIABLES][VARIABLE_BYTES_MAX];
    static char *variables[VARIABLES + 1];
    const char *home = test_dir();
    snprintf(texts[0], VARIABLE_BYTES_MAX, "PATH=%.*s:%.*s:/usr/local/bin:/usr/bin:/bin",
             (int)(strrchr(TINE, '/') - TINE), TINE, (int)(strrchr(TINED, '/') - TINED), TINED);
    snprintf(texts[1], VARIABLE_BYTES_MAX, "LC_ALL=C.UTF-8");
    snprintf(texts[2], VARIABLE_BYTES_MAX, "TERM=dumb");
    snprintf(texts[3], VARIABLE_BYTES_MAX, "HOME=%s", home);
    snprintf(texts[4], VARIABLE_BYTES_MAX, "XDG_RUNTIME_DIR=%s", home);
    snprintf(texts[5], VARIABLE_BYTES_MAX, "XDG_DATA_HOME=%s/data", home);
    snprintf(texts[6], VARIABLE_BYTES_MAX, "XDG_STATE_HOME=%s/state", home);
    for (size_t i = 0; i < VARIABLES; i++)
        variables[i] = texts[i];
    environ = variables;
    CHECK_EQ(chdir(home), 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static int open_output(void)
{
    int file = open(test_dir(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    CHECK(file >= 0);
    return file;
}

static void read_output(int file, char *out)
{
    ssize_t size = pread(file, out, SHELL_OUTPUT_BYTES_MAX - 1, 0);
    CHECK(size >= 0);
    out[size] = '\0';
    close(file);
}

static void run(Shell *shell, const char *line)
{
    int output = open_output(), errors = open_output(), status = 0;
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(output, STDOUT_FILENO);
        dup2(errors, STDERR_FILENO);
        int nothing = open("/dev/null", O_RDONLY);
        dup2(nothing, STDIN_FILENO);
        shell_enter_home();
        execl("/bin/bash", "bash", "-c", line, (char *)NULL);
        _exit(127);
    }
    while (waitpid(child, &status, 0) < 0)
        CHECK_EQ(errno, EINTR);
    shell->code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    read_output(output, shell->output);
    read_output(errors, shell->errors);
}

static void run_and_expect(Shell *shell, int code, const char *format, va_list arguments)
{
    char line[16 * 1024];
    CHECK(vsnprintf(line, sizeof(line), format, arguments) < (int)sizeof(line));
    run(shell, line);
    if (shell->code != code) {
        printf("$ %s\n%.4000s\n%.4000s\n", line, shell->output, shell->errors);
    }
    CHECK_EQ(shell->code, code);
}

const char *shell_ok(Shell *shell, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    run_and_expect(shell, 0, format, arguments);
    va_end(arguments);
    return shell->output;
}

void shell_fails(Shell *shell, int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    run_and_expect(shell, code, format, arguments);
    va_end(arguments);
}

void shell_shows(const Shell *shell, const char *text)
{
    if (!strstr(shell->output, text)) printf("%.4000s\n", shell->output);
    CHECK(strstr(shell->output, text) != NULL);
}

void shell_says(const Shell *shell, const char *text)
{
    if (!strstr(shell->errors, text)) printf("%.4000s\n", shell->errors);
    CHECK(strstr(shell->errors, text) != NULL);
}

const char *shell_url(void)
{
    static char url[600];
    snprintf(url, sizeof(url), "ipc://%s/tine/tine.sock", test_dir());
    return url;
}

void shell_tined_start(Shell *shell)
{
    shell->tined = fork();
    CHECK(shell->tined >= 0);
    if (shell->tined == 0) {
        shell_enter_home();
        execl(TINED, "tined", "--log-level", "warning", (char *)NULL);
        _exit(127);
    }
    Tine *tine;
    TineOpenOptions wait = {.wait_for_server = true};
    CHECK_EQ(tine_open_with(shell_url(), &wait, NULL, &tine), 0);
    Tine__V1__HealthRequest request = TINE__V1__HEALTH_REQUEST__INIT;
    Tine__V1__HealthResponse *response;
    TineCallOptions options = {.timeout_ms = HARNESS_PATIENCE_MS};
    CHECK_EQ(tine_health(tine, &options, &request, &response), 0);
    tine__v1__health_response__free_unpacked(response, NULL);
    tine_close(tine);
}

void shell_tined_stop(Shell *shell)
{
    int status;
    CHECK_EQ(kill(shell->tined, SIGTERM), 0);
    CHECK_EQ(waitpid(shell->tined, &status, 0), shell->tined);
    shell->tined = 0;
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
