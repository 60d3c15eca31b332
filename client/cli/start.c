// Starts tined. The process that holds the lock looks again whether a tined listens, then starts
// one, and keeps the lock until it is ready. So of 20 processes one starts it, and 19 find it.
// (tined itself refuses a socket that another tined has.)

#include "start.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/tined_exit.h"
#include "endpoint.h"
#include "os/clock.h"
#include "os/directory.h"
#include "progress.h"

static const char IDLE_EXIT[] = "30m";

enum {
    READY_WITHIN_MS = 60 * 1000,
    MIGRATING_WITHIN_MS = 10 * 60 * 1000, // after tined last said that it is migrating the store
    LOCKED_WITHIN_MS = 90 * 1000,         // the holder of the lock waits for tined, for up to 75 s
    LOCK_LOOK_MS = 20,
    SILENT_MS = 1000,            // an attempt to connect that takes longer was not refused
    ENDED_WITHIN_MS = 15 * 1000, // tined waits for its clients for up to 6 s
    LAST_WORDS_BYTES_MAX = 4096,
};

typedef struct Start {
    Cli *cli;
    const char *socket_path;
    char directory[PATH_MAX], log_path[PATH_MAX + 16], tined_path[PATH_MAX + 16];
    char absolute_path[PATH_MAX];
    int lock, log, ready; // descriptors; -1 if not open
    off_t log_bytes;      // size of the log before tined was started
    char ready_name[32];  // name of the socket `ready` for $NOTIFY_SOCKET
} Start;

static int begin(Start *start);
static int launch(Start *start);

// Returns the process that holds the lock of the socket; 0 if there is none.
static pid_t holder_of(const char *socket_path)
{
    char path[PATH_MAX + 16], text[32] = {0};
    snprintf(path, sizeof(path), "%s.lock", socket_path);
    int lock = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (lock < 0) return 0;
    ssize_t size = read(lock, text, sizeof(text) - 1);
    close(lock);
    return size > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
}

static int say_late(const Cli *cli, const char *socket_path)
{
    pid_t holder = holder_of(socket_path);
    if (holder == 0) {
        return cli_say(EXIT_UNAVAILABLE,
                       "tined on %s does not answer within %lld ms; wait longer: --timeout MS",
                       socket_path, (long long)cli->call.timeout_ms);
    }
    return cli_say(EXIT_UNAVAILABLE,
                   "tined on %s does not answer within %lld ms; if it is stopped, continue it: "
                   "kill -CONT %d; if it is busy, wait longer: --timeout MS",
                   socket_path, (long long)cli->call.timeout_ms, (int)holder);
}

// Looks whether a tined listens, by a call: NNG accepts no connection for 100 ms after one that was
// closed early. A Tine that found nobody waits before it tries again, so each look uses a new one.
//
// Where nobody listens, an attempt fails at once. If tined is stopped, the kernel still accepts
// connections, and libtine gives up on each after 5 s; then the look is repeated until the time is
// up. Returns EXIT_UNAVAILABLE then; the failure was printed.
static int look(Cli *cli, const char *socket_path, bool *out_listens)
{
    int64_t begun_ns = clock_monotonic_ns(), until_ns = begun_ns + cli->call.timeout_ms * 1000000;
    int64_t now_ns = begun_ns;
    for (;;) {
        TineCallOptions options = {.out_status = &cli->status, .no_retry = true};
        options.timeout_ms = (until_ns - now_ns) / 1000000 + 1;
        HealthRequest request = HEALTH_REQUEST__INIT;
        CLEANUP(message_freep) HealthResponse *reply = NULL;
        int status = tine_health(cli->tine, &options, &request, &reply);
        *out_listens = status != STATUS_UNAVAILABLE;
        if (status == STATUS_DEADLINE_EXCEEDED) return say_late(cli, socket_path);
        if (*out_listens) return EXIT_OK;
        int code = endpoint_open(cli);
        int64_t ended_ns = clock_monotonic_ns();
        bool is_silent = ended_ns - now_ns > SILENT_MS * INT64_C(1000000);
        if (code || !is_silent) return code;
        if (ended_ns >= until_ns) return say_late(cli, socket_path);
        now_ns = ended_ns;
    }
}

int start_tined(Cli *cli, const char *socket_path)
{
    bool listens;
    int code = look(cli, socket_path, &listens);
    if (code || listens) return code;
    if (!cli->may_start) {
        return cli_say(EXIT_UNAVAILABLE,
                       "no tined listens on %s; without --no-start, tine starts one", socket_path);
    }
    Start start = {.cli = cli, .socket_path = socket_path, .lock = -1, .log = -1, .ready = -1};
    code = begin(&start);
    if (!code) code = look(cli, socket_path, &listens);
    if (!code && !listens) code = launch(&start);
    if (start.ready >= 0) close(start.ready);
    if (start.log >= 0) close(start.log);
    if (start.lock >= 0) close(start.lock);
    return code;
}

// Looks for tined beside this program, then in PATH.
static int find_tined(Start *start)
{
    char self[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (size > 0) {
        self[size] = '\0';
        *strrchr(self, '/') = '\0';
        snprintf(start->tined_path, sizeof(start->tined_path), "%s/tined", self);
        if (access(start->tined_path, X_OK) == 0) return EXIT_OK;
    }
    for (const char *path = getenv("PATH"); path && *path;) {
        size_t length = strcspn(path, ":");
        if (length < PATH_MAX) {
            snprintf(start->tined_path, sizeof(start->tined_path), "%.*s/tined", (int)length, path);
            if (access(start->tined_path, X_OK) == 0) return EXIT_OK;
        }
        path += length + (path[length] == ':');
    }
    return cli_say(EXIT_UNAVAILABLE, "no tined runs, and none is installed beside tine or in PATH");
}

static int find_directory(Start *start)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int size;
    if (state && state[0] == '/') {
        size = snprintf(start->directory, PATH_MAX, "%s/tine", state);
    } else if (home && home[0] == '/') {
        size = snprintf(start->directory, PATH_MAX, "%s/.local/state/tine", home);
    } else {
        return cli_say(EXIT_UNAVAILABLE, "no tined runs, and without $HOME or $XDG_STATE_HOME "
                                         "there is no directory for its log; start one: tined");
    }
    ErrorDetail detail = {{0}};
    if (size < PATH_MAX && directory_make(start->directory, &detail) == ERROR_NONE) return EXIT_OK;
    return cli_say(EXIT_UNAVAILABLE,
                   "no tined runs, and the directory for its log cannot be made: %s",
                   size < PATH_MAX ? detail.text : "its path is too long");
}

// Waits while another tine starts a tined.
static int wait_for_lock(const Start *start, const char *path)
{
    int64_t until_ns = clock_monotonic_ns() + (int64_t)LOCKED_WITHIN_MS * 1000000;
    while (flock(start->lock, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            return cli_say(EXIT_UNAVAILABLE, "%s: %s", path, strerror(errno));
        }
        if (clock_monotonic_ns() > until_ns) {
            return cli_say(EXIT_UNAVAILABLE,
                           "another tine has been starting tined for %d s; find its process: "
                           "fuser -v %s",
                           LOCKED_WITHIN_MS / 1000, path);
        }
        (void)poll(NULL, 0, LOCK_LOOK_MS);
    }
    return EXIT_OK;
}

// Opens the log and takes the lock.
static int begin(Start *start)
{
    int code = find_tined(start);
    if (!code) code = find_directory(start);
    if (code) return code;
    char lock_path[PATH_MAX + 16];
    snprintf(lock_path, sizeof(lock_path), "%s/start.lock", start->directory);
    snprintf(start->log_path, sizeof(start->log_path), "%s/tined.log", start->directory);
    start->lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    start->log = open(start->log_path, O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND | O_NOCTTY, 0600);
    if (start->lock < 0 || start->log < 0) {
        return cli_say(EXIT_UNAVAILABLE, "no tined runs, and files in %s cannot be written: %s",
                       start->directory, strerror(errno));
    }
    code = wait_for_lock(start, lock_path);
    if (code) return code;
    struct stat found;
    start->log_bytes = fstat(start->log, &found) == 0 ? found.st_size : 0;
    return EXIT_OK;
}

// Opens the socket on which tined reports that it is ready, with the protocol of systemd.
static int open_ready(Start *start)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t size = sizeof(sa_family_t); // the kernel chooses an abstract name
    start->ready = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (start->ready < 0 || bind(start->ready, (struct sockaddr *)&address, size) != 0) return -1;
    size = sizeof(address);
    if (getsockname(start->ready, (struct sockaddr *)&address, &size) != 0) return -1;
    snprintf(start->ready_name, sizeof(start->ready_name), "@%.*s",
             (int)(size - offsetof(struct sockaddr_un, sun_path) - 1), address.sun_path + 1);
    return 0;
}

// Makes paths in these variables absolute: tined runs in another directory.
static void make_places_absolute(void)
{
    static const char *const NAMES[] = {"TINE_DATA", "TINE_TOKEN_FILE"};
    char here[PATH_MAX], path[2 * PATH_MAX];
    if (!getcwd(here, sizeof(here))) return;
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(*NAMES); i++) {
        const char *given = getenv(NAMES[i]);
        if (!given || !*given || *given == '/') continue;
        int size = snprintf(path, sizeof(path), "%s/%s", here, given);
        if (size < (int)sizeof(path)) setenv(NAMES[i], path, 1);
    }
}

__attribute__((noreturn)) static void become_tined(const Start *start)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(start->log, STDOUT_FILENO);
    dup2(start->log, STDERR_FILENO);
    // A program that reads our output to its end must not wait for tined.
    (void)close_range(STDERR_FILENO + 1, ~0U, 0);
    make_places_absolute();
    if (chdir("/") != 0) _exit(127);
    setenv("NOTIFY_SOCKET", start->ready_name, 1);
    setenv("TINE_IDLE_EXIT", IDLE_EXIT, /* overwrite= */ 0);
    execl(start->tined_path, "tined", "--socket", start->socket_path, "--log-file", start->log_path,
          (char *)NULL);
    _exit(127);
}

// Prints why tined ended: the last message in its log.
static int say_why(const Start *start)
{
    char text[LAST_WORDS_BYTES_MAX];
    ssize_t size = pread(start->log, text, sizeof(text) - 1, start->log_bytes);
    text[size > 0 ? size : 0] = '\0';
    char *line = strstr(text, "tined: ");
    if (!line) {
        return cli_say(EXIT_UNAVAILABLE, "tined was started but has ended; see %s",
                       start->log_path);
    }
    line[strcspn(line, "\n")] = '\0';
    return cli_say(EXIT_UNAVAILABLE, "tined does not start: %s", line + strlen("tined: "));
}

// Waits until the holder of the socket's lock ends: a tined that is stopping answers the requests
// that it has accepted. Returns false if it does not end in time.
static bool wait_for_holder(const Start *start)
{
    pid_t pid = holder_of(start->socket_path);
    int holder = pid > 0 ? pidfd_open(pid, 0) : -1;
    if (holder < 0) return true;
    Progress *progress = progress_begin("waiting for the tined that is stopping", NULL, 0);
    struct pollfd ended = {.fd = holder, .events = POLLIN};
    int count;
    do {
        count = poll(&ended, 1, ENDED_WITHIN_MS);
    } while (count < 0 && errno == EINTR);
    progress_end(progress);
    close(holder);
    return count > 0;
}

// Takes one message of tined: that it is ready, or that it is migrating the store.
static bool hears_ready(const Start *start)
{
    char text[256];
    ssize_t size = recv(start->ready, text, sizeof(text) - 1, MSG_DONTWAIT);
    if (size < 0) return false;
    text[size] = '\0';
    return strstr(text, "READY=1") != NULL;
}

// Waits until tined is ready or has ended. Sets `*out_is_in_use`, and prints nothing, if it ended
// because another process has the socket or the store.
static int wait_for(const Start *start, pid_t pid, bool *out_is_in_use)
{
    Progress *progress = progress_begin("starting tined", NULL, 0);
    int process = pidfd_open(pid, 0);
    struct pollfd wanted[] = {{.fd = start->ready, .events = POLLIN},
                              {.fd = process, .events = POLLIN}};
    int count, within_ms = READY_WITHIN_MS;
    bool is_ready = false;
    do {
        count = poll(wanted, 2, within_ms);
        if (count > 0 && wanted[0].revents) {
            is_ready = hears_ready(start);
            within_ms = MIGRATING_WITHIN_MS; // tined says nothing else before it is ready
        }
    } while ((count < 0 && errno == EINTR) || (count > 0 && !is_ready && wanted[1].revents == 0));
    if (process >= 0) close(process);
    progress_end(progress);
    if (count <= 0) {
        return cli_say(EXIT_UNAVAILABLE, "tined was started but is not ready; see %s",
                       start->log_path);
    }
    if (is_ready) return EXIT_OK;
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    *out_is_in_use = WIFEXITED(status) && WEXITSTATUS(status) == TINED_EXIT_IN_USE;
    return *out_is_in_use ? EXIT_UNAVAILABLE : say_why(start);
}

static int launch_once(const Start *start, bool *out_is_in_use)
{
    *out_is_in_use = false;
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        return cli_say(EXIT_UNAVAILABLE, "cannot create a process for tined: %s", strerror(errno));
    if (pid == 0) become_tined(start);
    return wait_for(start, pid, out_is_in_use);
}

static int launch(Start *start)
{
    if (open_ready(start) != 0)
        return cli_say(EXIT_UNAVAILABLE, "cannot create a socket: %s", strerror(errno));
    if (start->socket_path[0] != '/') { // tined runs in another directory
        char here[PATH_MAX / 2];
        if (!getcwd(here, sizeof(here)))
            return cli_say(EXIT_UNAVAILABLE, "there is no current directory");
        snprintf(start->absolute_path, PATH_MAX, "%s/%s", here, start->socket_path);
        start->socket_path = start->absolute_path;
    }
    bool is_in_use, listens;
    int code = launch_once(start, &is_in_use);
    if (!is_in_use) return code;
    code = look(start->cli, start->socket_path, &listens);
    if (code || listens) return code;
    // The holder of the socket does not listen, so it is about to end.
    if (wait_for_holder(start)) {
        code = launch_once(start, &is_in_use);
        if (!is_in_use) return code;
    }
    code = look(start->cli, start->socket_path, &listens);
    return code || listens ? code : say_why(start);
}
