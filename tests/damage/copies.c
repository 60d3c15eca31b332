// Damaged copies, and processes that read them.

#include "copies.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "tine_calls.h"

enum { PATIENCE_SECONDS = 300, OUTPUT_BYTES_MAX = 64 * 1024 };

Place place(const char *name)
{
    Place path;
    snprintf(path.text, sizeof(path.text), "%s/%s", test_dir(), name);
    return path;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    return remove(path);
}

void tree_remove(const char *name)
{
    (void)nftw(place(name).text, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

void copy_write(const char *name, const uint8_t *bytes, size_t size)
{
    char data[PLACE_BYTES_MAX];
    tree_remove(name);
    CHECK_EQ(mkdir(place(name).text, 0700), 0);
    snprintf(data, sizeof(data), "%s/data.mdb", name);
    int file = open(place(data).text, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(file >= 0);
    CHECK_EQ(write(file, bytes, size), (ssize_t)size);
    CHECK_EQ(close(file), 0);
}

void copy_write_over(const char *name, const uint8_t *bytes, size_t size)
{
    static const char *const OTHERS[] = {"lock.mdb", "lock.pair", "tine.lock", "tine.crashes"};
    char path[PLACE_BYTES_MAX];
    for (size_t i = 0; i < sizeof(OTHERS) / sizeof(*OTHERS); i++) {
        snprintf(path, sizeof(path), "%s/%s", name, OTHERS[i]);
        (void)unlink(place(path).text);
    }
    snprintf(path, sizeof(path), "%s/data.mdb", name);
    int file = open(place(path).text, O_WRONLY | O_TRUNC | O_CLOEXEC);
    CHECK(file >= 0);
    CHECK_EQ(write(file, bytes, size), (ssize_t)size);
    CHECK_EQ(close(file), 0);
}

static End end_of(int status)
{
    if (WIFSIGNALED(status)) return (End){.code = -1, .signal = WTERMSIG(status)};
    return (End){.code = WEXITSTATUS(status)};
}

static End wait_for(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return end_of(status);
}

// A process that may crash leaves no core, and one that hangs is ended.
static void become_victim(void)
{
    struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(PATIENCE_SECONDS);
}

static void become_program(const char *path, const char *const *arguments, const char *output)
{
    become_victim();
    int out = open(output, O_RDWR | O_CREAT | O_TRUNC, 0600);
    dup2(out, 1);
    dup2(out, 2);
    if (chdir(test_dir()) != 0) _exit(126);
    setenv("HOME", test_dir(), 1);
    setenv("TINE_DATA", place("nowhere").text, 1);
    execv(path, (char *const *)(uintptr_t)arguments);
    _exit(127);
}

// Returns whether the output says that the process which read the file was ended by a signal.
static bool says_crash(const char *path)
{
    static char text[OUTPUT_BYTES_MAX];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? 0 : read(file, text, sizeof(text) - 1);
    if (file >= 0) close(file);
    text[size > 0 ? size : 0] = '\0';
    return strstr(text, "was ended by") != NULL;
}

End tine_run(const char *const *arguments)
{
    Place output = place("output");
    pid_t child = fork();
    if (child == 0) become_program(TINE, arguments, output.text);
    End end = wait_for(child);
    if (end.signal == 0 && says_crash(output.text)) end.signal = SIGCHLD;
    return end;
}

// Shared with the process that reads, so that it survives its death.
static Reading *shared(void)
{
    static Reading *reading;
    if (!reading) {
        reading =
            mmap(NULL, sizeof(*reading), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        CHECK(reading != MAP_FAILED);
    }
    memset(reading, 0, sizeof(*reading));
    return reading;
}

static void read_all(const char *url, TineOpenOptions options, const Truth *truth, Reading *out)
{
    Tine *tine;
    TineClientStats stats;
    if (tine_open_with(url, &options, NULL, &tine) != 0) return;
    out->is_open = true;
    truth_compare(truth, tine, &out->difference);
    tine_client_stats(tine, &stats);
    out->direct_reads = stats.direct_reads;
    tine_close(tine);
}

static Reading read_in_child(const char *url, TineOpenOptions options, const Truth *truth)
{
    Reading *reading = shared();
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        become_victim();
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, 2); // LMDB prints its failed assertions
        read_all(url, options, truth, reading);
        _exit(0);
    }
    End end = wait_for(child);
    Reading result = *reading;
    result.end = end;
    return result;
}

Reading read_embedded(const char *name, const Truth *truth)
{
    char url[PLACE_BYTES_MAX + 16];
    snprintf(url, sizeof(url), "embedded:%s", place(name).text);
    return read_in_child(url, (TineOpenOptions){.token = NULL}, truth);
}

// What a tined says: a datagram when it serves, and the end of a pipe when it ends.
typedef struct Watch {
    int notify, ends[2];
    Place path;
} Watch;

static Watch watch_open(void)
{
    Watch watch = {.path = place("n")};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CHECK(strlen(watch.path.text) < sizeof(address.sun_path));
    memcpy(address.sun_path, watch.path.text, strlen(watch.path.text) + 1);
    (void)unlink(watch.path.text);
    watch.notify = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(watch.notify, (struct sockaddr *)&address, sizeof(address)), 0);
    CHECK_EQ(pipe(watch.ends), 0); // tined inherits it
    return watch;
}

// Waits until it serves or has ended. Returns whether it serves.
static bool watch_wait(Watch *watch)
{
    char text[64];
    close(watch->ends[1]);
    struct pollfd both[] = {{.fd = watch->notify, .events = POLLIN},
                            {.fd = watch->ends[0], .events = POLLIN}};
    bool is_serving = false, is_over = false;
    while (!is_serving && !is_over) {
        if (poll(both, 2, -1) < 0) continue;
        ssize_t size =
            both[0].revents ? recv(watch->notify, text, sizeof(text) - 1, MSG_DONTWAIT) : 0;
        text[size > 0 ? size : 0] = '\0';
        is_serving = strstr(text, "READY=1") != NULL;
        is_over = both[1].revents != 0;
    }
    return is_serving;
}

static void watch_close(Watch *watch)
{
    close(watch->notify);
    close(watch->ends[0]);
}

// Starts a tined on a store. Returns 0 if it ended instead of serving.
static pid_t tined_start(const char *name, End *out_end)
{
    Place data = place(name), output = place("tined"), socket_path = place("s");
    const char *arguments[] = {"tined",          "--data",      data.text, "--socket",
                               socket_path.text, "--log-level", "error",   NULL};
    Watch watch = watch_open();
    fflush(NULL);
    pid_t tined = fork();
    if (tined == 0) {
        setenv("NOTIFY_SOCKET", watch.path.text, 1);
        become_program(TINED, arguments, output.text);
    }
    bool is_serving = watch_wait(&watch);
    watch_close(&watch);
    if (is_serving) return tined;
    *out_end = wait_for(tined);
    return 0;
}

static const char *tined_url(void)
{
    static char url[PLACE_BYTES_MAX + 16];
    snprintf(url, sizeof(url), "ipc://%s", place("s").text);
    return url;
}

void walk_by_tined(const char *name)
{
    End end = {.code = 0};
    pid_t tined = tined_start(name, &end);
    Tine *tine;
    CHECK(tined > 0);
    CHECK_EQ(tine_open(tined_url(), NULL, &tine), 0);
    for (bool is_walked = false; !is_walked;) {
        Tine__V1__DescribeRequest request = TINE__V1__DESCRIBE_REQUEST__INIT;
        Tine__V1__DescribeResponse *response;
        CHECK_EQ(tine_describe(tine, NULL, &request, &response), 0);
        is_walked = response->direct_reads != NULL;
        tine__v1__describe_response__free_unpacked(response, NULL);
    }
    tine_close(tine);
    kill(tined, SIGTERM);
    CHECK_EQ(wait_for(tined).code, 0);
}

Reading read_beside_tined(const char *name, const Truth *truth, End *out_tined)
{
    pid_t tined = tined_start(name, out_tined);
    if (tined == 0) return (Reading){.is_open = false};
    TineOpenOptions options = {.flags = TINE_DIRECT_READS};
    Reading reading = read_in_child(tined_url(), options, truth);
    kill(tined, SIGTERM);
    *out_tined = wait_for(tined);
    return reading;
}
