// The command line on much: how soon `tine log` and `tine ls` print their first line, and what
// memory they take to the last.

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/clock.h"
#include "rows.h"

enum { MANY = 100000, FEW = 1000, RUNS = 21, CHUNK_BYTES = 64 * 1024, FIRST_LINE_MS_MAX = 50 };

typedef struct Crowd {
    Peer tined;
    IdText many, few; // sessions of so many messages
    size_t sessions;
} Crowd;

// One run of tine, its output read to the end.
typedef struct Run {
    double first_line_ms, all_ms, peak_mib;
    size_t lines;
} Run;

static void crowd_open(const Options *options, Crowd *crowd, size_t many)
{
    char path[512];
    Bench bench;
    bench_path(options, "cli", path, sizeof(path));
    bench_open(&bench, path, /* is_ephemeral= */ true);
    crowd->many = bench_session(&bench, "many");
    crowd->few = bench_session(&bench, "few");
    Buffer append = append_request(crowd->many.text, 1024);
    bench_run_many(&bench, &append, many);
    buffer_free(&append);
    append = append_request(crowd->few.text, 1024);
    bench_run_many(&bench, &append, FEW);
    buffer_free(&append);

    ModelRef model = MODEL_REF__INIT;
    model.provider = "anthropic";
    model.name = "claude";
    NewSession session = NEW_SESSION__INIT;
    session.project_dir = "/home/you/project";
    session.title = "One of many";
    session.model = &model;
    CreateSessionRequest create = CREATE_SESSION_REQUEST__INIT;
    create.session = &session;
    Buffer request = request_make(METHOD_CREATE_SESSION, &create.base);
    bench_run_many(&bench, &request, many);
    buffer_free(&request);
    crowd->sessions = many + 2;
    bench_close(&bench);
    tined_start(&crowd->tined, NULL, path);
}

// The most memory that it has had so far; 0 when it has ended.
static double peak_mib_of(pid_t pid)
{
    char path[64], line[256];
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    double kib = 0;
    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, "VmHWM:", 6) == 0) kib = strtod(line + 6, NULL);
    }
    if (file) fclose(file);
    return kib / 1024;
}

static pid_t start_tine(const char *const *arguments, int *out_reads)
{
    int ends[2];
    require(pipe2(ends, O_CLOEXEC) == 0, "no pipe");
    pid_t pid = fork();
    require(pid >= 0, "no process");
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execv(TINE, (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    close(ends[1]);
    *out_reads = ends[0];
    return pid;
}

static Run run_tine(const Crowd *crowd, const char *command, const char *argument, const char *name)
{
    const char *arguments[] = {"tine",  "--no-start", "--socket", crowd->tined.socket,
                               command, argument,     name,       NULL};
    static char chunk[CHUNK_BYTES];
    Run run = {0};
    int reads, status;
    int64_t begun_ns = clock_monotonic_ns();
    pid_t pid = start_tine(arguments, &reads);
    ssize_t size;
    for (size_t i = 0; (size = read(reads, chunk, sizeof(chunk))) > 0; i++) {
        for (char *at = chunk; (at = memchr(at, '\n', (size_t)(chunk + size - at))); at++) {
            if (run.lines++ == 0) {
                run.first_line_ms = (double)(clock_monotonic_ns() - begun_ns) / 1e6;
            }
        }
        double peak_mib = i % 16 == 0 ? peak_mib_of(pid) : 0;
        if (peak_mib > run.peak_mib) run.peak_mib = peak_mib;
    }
    run.all_ms = (double)(clock_monotonic_ns() - begun_ns) / 1e6;
    close(reads);
    require(waitpid(pid, &status, 0) == pid && status == 0, "tine %s failed", command);
    return run;
}

// `few`: what the memory is compared with.
static void report_runs(const char *what, const Run *runs, double few_mib)
{
    double first_ms[RUNS], all_ms[RUNS], worst_ms = 0, peak_mib = 0;
    for (size_t i = 0; i < RUNS; i++) {
        first_ms[i] = runs[i].first_line_ms;
        all_ms[i] = runs[i].all_ms;
        if (first_ms[i] > worst_ms) worst_ms = first_ms[i];
        if (runs[i].peak_mib > peak_mib) peak_mib = runs[i].peak_mib;
    }
    char name[96];
    snprintf(name, sizeof(name), "ms to the first line of %s", what);
    double first = median_of(first_ms, RUNS), all = median_of(all_ms, RUNS);
    report_ratio_at_most(name, first, FIRST_LINE_MS_MAX, "%.1f at most; to the last %.0f ms",
                         worst_ms, all);
    snprintf(name, sizeof(name), "memory of %s / of 1 000", what);
    report_ratio_at_most(name, peak_mib / few_mib, 1.5, "%.1f / %.1f MiB", peak_mib, few_mib);
}

void bench_cli(const Options *options)
{
    if (!row_is_wanted(options, "cli")) return;
    size_t many = options->is_quick ? MANY / 20 : MANY;
    Crowd crowd;
    crowd_open(options, &crowd, many);
    Run logs[RUNS], lists[RUNS];
    double few_messages_mib = 0, few_sessions_mib = 0;
    for (size_t i = 0; i < RUNS; i++) {
        logs[i] = run_tine(&crowd, "log", "--oneline", crowd.many.text);
        require(logs[i].lines == many, "tine log printed %zu lines", logs[i].lines);
        lists[i] = run_tine(&crowd, "ls", "--limit", "1000000");
        require(lists[i].lines == crowd.sessions, "tine ls printed %zu lines", lists[i].lines);
        double few_mib = run_tine(&crowd, "log", "--oneline", crowd.few.text).peak_mib;
        if (few_mib > few_messages_mib) few_messages_mib = few_mib;
        few_mib = run_tine(&crowd, "ls", "--limit", "1000").peak_mib;
        if (few_mib > few_sessions_mib) few_sessions_mib = few_mib;
    }
    char what[64];
    snprintf(what, sizeof(what), "tine log, %zu messages", many);
    report_runs(what, logs, few_messages_mib);
    snprintf(what, sizeof(what), "tine ls, %zu sessions", many);
    report_runs(what, lists, few_sessions_mib);
    peer_stop(&crowd.tined);
}
