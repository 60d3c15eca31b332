// What /proc says of a process group.

#include "guard.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ASLEEP_CPU_PERCENT = 1, STAT_BYTES_MAX = 1024 };

typedef struct Stat {
    char state;
    pid_t group;
    uint64_t ticks; // of processor time, of all threads
} Stat;

// False: the process or thread has ended.
static bool read_stat(const char *path, Stat *out)
{
    char text[STAT_BYTES_MAX];
    FILE *file = fopen(path, "re");
    if (!file) return false;
    size_t size = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[size] = '\0';
    const char *after_name = strrchr(text, ')'); // the name may have blanks and brackets
    unsigned long long user, system;
    int group;
    if (!after_name || sscanf(after_name, ") %c %*d %d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu",
                              &out->state, &group, &user, &system) != 4) {
        return false;
    }
    out->group = group;
    out->ticks = user + system;
    return true;
}

static bool is_awake(char state)
{
    return state == 'R' || state == 'D';
}

// Calls `visit` for each numbered entry of a directory in /proc.
static void visit_numbers(const char *path, void (*visit)(const char *path, void *context),
                          void *context)
{
    DIR *directory = opendir(path);
    if (!directory) return;
    for (struct dirent *entry; (entry = readdir(directory));) {
        char below[64];
        if (!isdigit((unsigned char)entry->d_name[0])) continue;
        snprintf(below, sizeof(below), "%.40s/%.16s", path, entry->d_name);
        visit(below, context);
    }
    closedir(directory);
}

static void look_at_thread(const char *path, void *context)
{
    bool *has_awake = context;
    char name[80];
    Stat stat;
    snprintf(name, sizeof(name), "%s/stat", path);
    if (read_stat(name, &stat) && is_awake(stat.state)) *has_awake = true;
}

typedef struct Look {
    pid_t group;
    uint64_t ticks;
    bool has_awake;
} Look;

static void look_at_process(const char *path, void *context)
{
    Look *look = context;
    char name[80];
    Stat stat;
    snprintf(name, sizeof(name), "%s/stat", path);
    if (!read_stat(name, &stat) || stat.group != look->group) return;
    look->ticks += stat.ticks;
    snprintf(name, sizeof(name), "%s/task", path);
    visit_numbers(name, look_at_thread, &look->has_awake);
}

bool guard_looks(Guard *guard)
{
    Look look = {.group = guard->group};
    visit_numbers("/proc", look_at_process, &look);
    uint64_t cpu_ms = look.ticks * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
    if (look.has_awake || guard->looks_asleep == 0) {
        guard->looks_asleep = look.has_awake ? 0 : 1;
        guard->cpu_ms = cpu_ms;
        return false;
    }
    if (++guard->looks_asleep < guard->looks_max) return false;
    uint64_t used_ms = cpu_ms > guard->cpu_ms ? cpu_ms - guard->cpu_ms : 0;
    uint64_t passed_ms = (uint64_t)guard->looks_max * guard->look_ms;
    guard->looks_asleep = 0;
    return used_ms * 100 <= passed_ms * ASLEEP_CPU_PERCENT;
}

int guard_wait(Guard guard, pid_t child, bool *out_hangs)
{
    *out_hangs = false;
    int process = pidfd_open(child, 0), status = 0;
    struct pollfd end = {.fd = process, .events = POLLIN};
    while (poll(&end, 1, (int)guard.look_ms) <= 0) {
        if (!guard_looks(&guard)) continue;
        *out_hangs = true;
        kill(-guard.group, SIGKILL);
        break;
    }
    close(process);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

void guard_limit_cpu(unsigned seconds)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_CPU, &limit) != 0) return;
    limit.rlim_cur = seconds;
    (void)setrlimit(RLIMIT_CPU, &limit);
}
