// Runs the pager as a child that reads our output. It has the terminal, so tine must not end before
// it, neither when it is done nor by a signal: the shell would take the terminal back.

#include "pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "text/print.h"

static volatile pid_t pager; // 0 if none runs

static void wait_for_it(void)
{
    pid_t child = pager;
    pager = 0;
    if (child == 0) return;
    close(STDOUT_FILENO);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
}

static void on_signal(int signal_number)
{
    wait_for_it();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static bool is_in_path(const char *program)
{
    const char *path = getenv("PATH");
    while (path && *path) {
        char file[4096];
        size_t size = strcspn(path, ":");
        snprintf(file, sizeof(file), "%.*s/%s", (int)size, path, program);
        if (access(file, X_OK) == 0) return true;
        path += size + (path[size] == ':');
    }
    return false;
}

// Returns the command for the shell, or NULL.
static const char *pager_command(void)
{
    static const char *const NAMES[] = {"TINE_PAGER", "PAGER"};
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(*NAMES); i++) {
        const char *command = getenv(NAMES[i]);
        if (!command) continue;
        return *command && strcmp(command, "cat") != 0 ? command : NULL;
    }
    return is_in_path("less") ? "less" : NULL;
}

static void become_pager(const char *command, int input)
{
    dup2(input, STDIN_FILENO);
    signal(SIGINT, SIG_DFL);
    setenv("LESS", "FRX", /* overwrite= */ 0);
    setenv("LESSCHARSET", "utf-8", 0);
    setenv("LV", "-c", 0);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

void pager_begin(void)
{
    const char *command = pager_command();
    int ends[2];
    if (!command || pipe2(ends, O_CLOEXEC) != 0) return;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) become_pager(command, ends[0]);
    if (child > 0) {
        dup2(ends[1], STDOUT_FILENO);
        pager = child;
        static const int SIGNALS[] = {SIGINT, SIGHUP, SIGTERM, SIGQUIT, SIGPIPE};
        for (size_t i = 0; i < sizeof(SIGNALS) / sizeof(*SIGNALS); i++) {
            signal(SIGNALS[i], on_signal);
        }
    }
    close(ends[0]);
    close(ends[1]);
}

void pager_end(void)
{
    Printer out = print_to_stdout();
    print_flush(&out);
    wait_for_it();
}
