// Runs a command and ends it if it hangs (guard.h): with exit code 124, as timeout(1) does, if all
// of its processes sleep for so many seconds.
//
//     guarded SECONDS_ASLEEP CPU_SECONDS COMMAND [ARGUMENT...]
//
// Each of its processes may use CPU_SECONDS of processor time.

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guard.h"

enum { ARGUMENTS_MIN = 4, EXIT_USAGE = 2, EXIT_HANGS = 124, EXIT_NOT_FOUND = 127 };

static volatile pid_t group;

// The command has a group of its own, which a terminal does not interrupt.
static void end_group(int signal_number)
{
    if (group > 0) kill(-group, SIGKILL);
    _exit(128 + signal_number);
}

int main(int argument_count, char **arguments)
{
    if (argument_count < ARGUMENTS_MIN) {
        fprintf(stderr, "usage: %s SECONDS_ASLEEP CPU_SECONDS COMMAND [ARGUMENT...]\n",
                arguments[0]);
        return EXIT_USAGE;
    }
    unsigned looks_max = (unsigned)strtoul(arguments[1], NULL, 10);
    unsigned cpu_seconds = (unsigned)strtoul(arguments[2], NULL, 10);
    signal(SIGINT, end_group);
    signal(SIGTERM, end_group);
    pid_t child = fork();
    if (child < 0) return EXIT_FAILURE;
    if (child == 0) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        guard_limit_cpu(cpu_seconds);
        execvp(arguments[3], arguments + 3);
        perror(arguments[3]);
        _exit(EXIT_NOT_FOUND);
    }
    setpgid(child, child);
    group = child;
    bool hangs;
    Guard guard = {.group = child, .look_ms = GUARD_LOOK_MS, .looks_max = looks_max};
    int status = guard_wait(guard, child, &hangs);
    kill(-child, SIGKILL); // what it left behind
    if (hangs) {
        fprintf(stderr, "%s hangs: all of its processes slept for %u s\n", arguments[3], looks_max);
        return EXIT_HANGS;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
