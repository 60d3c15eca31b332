// Starting, stopping and looking at other processes.

#include "peers.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tine_calls.h"

enum { ARGUMENTS_MAX = 16 };

static void wait_ms(long ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0)
        continue;
}

void peer_place(Peer *peer)
{
    char directory[] = "/tmp/bench-XXXXXX";
    require(mkdtemp(directory) != NULL, "no directory for a socket in /tmp");
    snprintf(peer->socket, sizeof(peer->socket), "%s/s", directory);
}

void peer_spawn(Peer *peer, const char *program, const char *const *arguments)
{
    peer->pid = fork();
    require(peer->pid >= 0, "no process");
    if (peer->pid > 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execvp(program, (char *const *)(uintptr_t)arguments);
    _exit(127);
}

static void require_running(const Peer *peer, const char *what)
{
    int status;
    require(waitpid(peer->pid, &status, WNOHANG) == 0, "%s ended at once", what);
}

static void call_until_served(const Peer *peer)
{
    char url[SOCKET_BYTES_MAX + 8];
    snprintf(url, sizeof(url), "ipc://%s", peer->socket);
    Tine *tine;
    TineStatus status;
    TineOpenOptions options = {.wait_for_server = true};
    require(tine_open_with(url, &options, &status, &tine) == 0, "%s", status.message);
    StatsRequest request = STATS_REQUEST__INIT;
    StatsResponse *response;
    TineCallOptions call = {.out_status = &status};
    require(tine_stats(tine, &call, &request, &response) == 0, "tined: %s", status.message);
    protobuf_c_message_free_unpacked(&response->base, NULL);
    tine_close(tine);
}

void tined_start(Peer *peer, const char *program, const char *store)
{
    tined_start_with(peer, program, store, (const char *[]){NULL});
}

void tined_start_with(Peer *peer, const char *program, const char *store, const char *const *more)
{
    *peer = (Peer){.pid = 0};
    peer_place(peer);
    snprintf(peer->store, sizeof(peer->store), "%s", store);
    char log[sizeof(peer->store) + 8];
    snprintf(log, sizeof(log), "%s.log", store);
    const char *arguments[ARGUMENTS_MAX + 1] = {
        "tined", "--data", store, "--socket", peer->socket, "--log-file", log, "--idle-exit", "0"};
    size_t count = 0;
    while (arguments[count])
        count++;
    for (; *more; more++) {
        require(count < ARGUMENTS_MAX, "more than %d arguments", ARGUMENTS_MAX);
        arguments[count++] = *more;
    }
    peer_spawn(peer, program ? program : TINED, arguments);
    call_until_served(peer);
    require_running(peer, "tined");
    unlink(log);
}

void peer_start_on(Peer *peer, const char *kind, const char *socket, const char *argument)
{
    *peer = (Peer){.pid = 0};
    const char *program = "/proc/self/exe";
    const char *arguments[] = {"bench_transport", "--serve", kind, socket, argument, NULL};
    peer_spawn(peer, program, arguments);
}

void peer_wait(const Peer *peer, const char *what)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, peer->socket, strlen(peer->socket));
    for (;;) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        require(fd >= 0, "no socket");
        bool is_there = connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
        close(fd);
        if (is_there) return;
        require_running(peer, what);
        wait_ms(10);
    }
}

void peer_start(Peer *peer, const char *kind, const char *argument)
{
    Peer placed;
    peer_place(&placed);
    peer_start_on(peer, kind, placed.socket, argument);
    memcpy(peer->socket, placed.socket, sizeof(peer->socket));
    peer_wait(peer, kind);
}

void peer_stop(Peer *peer)
{
    kill(peer->pid, *peer->store ? SIGTERM : SIGKILL);
    while (waitpid(peer->pid, NULL, 0) < 0)
        continue;
    if (*peer->socket) {
        char *end = strrchr(peer->socket, '/');
        *end = '\0';
        bench_remove(peer->socket);
    }
    if (*peer->store) bench_remove(peer->store);
}

static size_t file_read(const char *path, char *out, size_t out_bytes_max)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? -1 : read(file, out, out_bytes_max - 1);
    if (file >= 0) close(file);
    out[size < 0 ? 0 : size] = '\0';
    return size < 0 ? 0 : (size_t)size;
}

static uint64_t number_after(const char *text, const char *label)
{
    const char *found = strstr(text, label);
    return found ? strtoull(found + strlen(label), NULL, 10) : 0;
}

void process_usage(pid_t pid, ProcessUsage *out)
{
    *out = (ProcessUsage){.switches = 0};
    char path[300], text[4096];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    require(tasks != NULL, "cannot read %s", path);
    for (struct dirent *entry; (entry = readdir(tasks));) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof(path), "/proc/%d/task/%.16s/status", (int)pid, entry->d_name);
        if (file_read(path, text, sizeof(text)) == 0) continue;
        out->threads++;
        out->switches += number_after(text, "\nvoluntary_ctxt_switches:") +
                         number_after(text, "\nnonvoluntary_ctxt_switches:");
        // In nanoseconds, unlike /proc/PID/stat, which counts clock ticks.
        snprintf(path, sizeof(path), "/proc/%d/task/%.16s/schedstat", (int)pid, entry->d_name);
        (void)file_read(path, text, sizeof(text));
        out->cpu_ms += (double)strtoull(text, NULL, 10) / 1e6;
    }
    closedir(tasks);
}

void process_memory(pid_t pid, ProcessMemory *out)
{
    char path[64], text[4096];
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    require(file_read(path, text, sizeof(text)) > 0, "cannot read %s", path);
    out->rss_mib = (double)number_after(text, "\nVmRSS:") / 1024;
    out->anonymous_mib = (double)number_after(text, "\nRssAnon:") / 1024;
    out->file_mib = (double)number_after(text, "\nRssFile:") / 1024;
}

double process_written_bytes(pid_t pid)
{
    char path[64], text[4096];
    snprintf(path, sizeof(path), "/proc/%d/io", (int)pid);
    if (file_read(path, text, sizeof(text)) == 0) return NAN;
    return (double)number_after(text, "\nwrite_bytes:");
}
