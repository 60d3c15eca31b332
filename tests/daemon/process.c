// tined as a process of its own.

#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 32 };

static void place(char *out, size_t out_bytes, const char *name, const char *suffix)
{
    int size = snprintf(out, out_bytes, "%s/%s%s", test_dir(), name, suffix);
    CHECK(size > 0 && (size_t)size < out_bytes);
}

void tined_place(Tined *tined, const char *name)
{
    *tined = (Tined){.notify = -1};
    place(tined->data, sizeof(tined->data), name, "/data");
    place(tined->socket, sizeof(tined->socket), name, "/run/s");
    place(tined->log, sizeof(tined->log), name, ".log");
    place(tined->notify_path, sizeof(tined->notify_path), name, ".n");
}

void tined_listen(Tined *tined)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, tined->notify_path, strlen(tined->notify_path));
    unlink(tined->notify_path);
    tined->notify = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(tined->notify >= 0);
    CHECK_EQ(bind(tined->notify, (struct sockaddr *)&address, sizeof(address)), 0);
}

// In the child: no variable of the tester's may change what is tested.
static void clean_environment(void)
{
    static const char *const NAMES[] = {"TINE_DATA",       "TINE_SOCKET",     "TINE_LISTEN",
                                        "TINE_TOKEN_FILE", "TINE_EPHEMERAL",  "TINE_LOG_LEVEL",
                                        "TINE_LOG_FILE",   "TINE_LOG_FORMAT", "TINE_IDLE_EXIT"};
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(*NAMES); i++)
        unsetenv(NAMES[i]);
}

__attribute__((noreturn)) static void become_tined(const char *const *arguments)
{
    const char *list[ARGUMENTS_MAX] = {TINED};
    size_t count = 1;
    for (; arguments && *arguments && count < ARGUMENTS_MAX - 1; arguments++)
        list[count++] = *arguments;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execv(TINED, (char *const *)(uintptr_t)list);
    _exit(127);
}

void tined_start(Tined *tined, const char *const *arguments)
{
    const char *list[ARGUMENTS_MAX] = {"--socket", tined->socket, "--log-file", tined->log};
    size_t count = 4;
    list[count++] = tined->is_ephemeral ? "--ephemeral" : "--data";
    if (!tined->is_ephemeral) list[count++] = tined->data;
    for (; arguments && *arguments; arguments++)
        list[count++] = *arguments;
    if (tined->notify < 0) tined_listen(tined);
    tined->pid = fork();
    CHECK(tined->pid >= 0);
    if (tined->pid == 0) {
        clean_environment();
        setenv("NOTIFY_SOCKET", tined->notify_path, 1);
        become_tined(list);
    }
    CHECK_STR(tined_said(tined), "READY=1");
}

const char *tined_said(Tined *tined)
{
    int process = pidfd_open(tined->pid, 0);
    CHECK(process >= 0);
    struct pollfd wanted[] = {{.fd = tined->notify, .events = POLLIN},
                              {.fd = process, .events = POLLIN}};
    while (poll(wanted, 2, -1) < 0)
        CHECK_EQ(errno, EINTR);
    close(process);
    return tined_said_before(tined);
}

void tined_forget(Tined *tined)
{
    while (*tined_said_before(tined))
        continue;
}

const char *tined_said_before(Tined *tined)
{
    static char text[64];
    ssize_t size = recv(tined->notify, text, sizeof(text) - 1, MSG_DONTWAIT);
    text[size < 0 ? 0 : size] = '\0';
    return text;
}

int tined_wait(Tined *tined)
{
    int status = 0;
    while (waitpid(tined->pid, &status, 0) < 0)
        CHECK_EQ(errno, EINTR);
    tined->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int tined_stop(Tined *tined, int signal)
{
    CHECK_EQ(kill(tined->pid, signal), 0);
    return tined_wait(tined);
}

void tined_close(Tined *tined)
{
    if (tined->pid > 0) (void)tined_stop(tined, SIGKILL);
    if (tined->notify >= 0) close(tined->notify);
    tined->notify = -1;
}

static int open_output(void)
{
    int file = open(test_dir(), O_TMPFILE | O_RDWR, 0600);
    CHECK(file >= 0);
    return file;
}

static void read_output(int file, char *out)
{
    ssize_t size = pread(file, out, OUTPUT_BYTES_MAX - 1, 0);
    CHECK(size >= 0);
    out[size] = '\0';
    close(file);
}

typedef struct Program {
    const char *const *arguments, *const *environment;
} Program;

static int run_program(const void *context)
{
    const Program *program = context;
    clean_environment();
    for (const char *const *entry = program->environment; entry && *entry; entry++)
        putenv((char *)(uintptr_t)*entry);
    become_tined(program->arguments);
}

void tined_run(Run *run, const char *const *arguments, const char *const *environment)
{
    Program program = {arguments, environment};
    child_run(run, run_program, &program);
}

void tined_begin(Child *child, const char *const *arguments)
{
    Program program = {arguments, NULL};
    child_start(child, run_program, &program);
}

void child_start(Child *child, int (*run_in_child)(const void *context), const void *context)
{
    child->output = open_output();
    child->errors = open_output();
    fflush(NULL);
    child->pid = fork();
    CHECK(child->pid >= 0);
    if (child->pid == 0) {
        dup2(child->output, STDOUT_FILENO);
        dup2(child->errors, STDERR_FILENO);
        _exit(run_in_child(context));
    }
}

static int code_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void child_end(Child *child, int status, Run *run)
{
    run->code = code_of(status);
    read_output(child->output, run->output);
    read_output(child->errors, run->errors);
}

void child_run(Run *run, int (*run_in_child)(const void *context), const void *context)
{
    Child child;
    int status = 0;
    child_start(&child, run_in_child, context);
    while (waitpid(child.pid, &status, 0) < 0)
        CHECK_EQ(errno, EINTR);
    child_end(&child, status, run);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char *directory_text(const char *path)
{
    enum { DEPTH_ENTRIES_MAX = 1024 };
    char *paths[] = {(char *)(uintptr_t)path, NULL}, *lines[DEPTH_ENTRIES_MAX], *text;
    size_t count = 0, size = 0;
    FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    CHECK(walk != NULL);
    for (FTSENT *entry; (entry = fts_read(walk));) {
        const struct stat *found = entry->fts_statp;
        if (entry->fts_info == FTS_DP || strstr(entry->fts_name, "lock")) continue;
        CHECK(count < DEPTH_ENTRIES_MAX);
        CHECK(asprintf(&lines[count++], "%s %o %lld %lld.%09ld", entry->fts_path, found->st_mode,
                       (long long)found->st_size, (long long)found->st_mtim.tv_sec,
                       found->st_mtim.tv_nsec) > 0);
    }
    fts_close(walk);
    qsort(lines, count, sizeof(*lines), by_name);
    FILE *out = open_memstream(&text, &size);
    CHECK(out != NULL);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "%s\n", lines[i]);
        free(lines[i]);
    }
    fclose(out);
    return text;
}

const char *file_text(const char *path)
{
    static char text[OUTPUT_BYTES_MAX];
    text[0] = '\0';
    FILE *file = fopen(path, "r");
    if (!file) return text;
    size_t size = fread(text, 1, sizeof(text) - 1, file);
    text[size] = '\0';
    fclose(file);
    return text;
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

size_t text_line_count(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}
