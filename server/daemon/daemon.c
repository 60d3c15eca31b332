// The daemon takes the lock of its socket's path, the store (with the lock of its directory) and
// the sockets, in this order, and gives them back in reverse. So a second daemon stops at the first
// lock, before it has changed anything.

#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/crash_notes.h"
#include "daemon/last_store.h"
#include "daemon/notify.h"
#include "daemon/page_check.h"
#include "daemon/safe_mode.h"
#include "daemon/signals.h"
#include "os/clock.h"
#include "os/directory.h"
#include "os/file_system.h"
#include "os/heap.h"
#include "os/lock.h"
#include "os/path.h"
#include "text/print.h"
#include "transport/bus.h"
#include "transport/transport.h"

enum {
    TICK_MS = 15 * 1000, // between two looks at the store's file and its dead readers
    DRAIN_MS = 5 * 1000,
    REFUSE_MS = 1000,        // after that, to send the replies of refused writes
    QUIET_TICKS_TRIMMED = 2, // the second tick gives back what was freed late
    DESCRIPTORS_MAX = 65536,
    DESCRIPTORS_RESERVED = 64, // for the store, the log and connections that are turned away
    LOG_MODE = 0600,
};

typedef struct Daemon {
    const Config *config;
    char data[PATH_BYTES_MAX];
    int socket_lock; // -1: not held
    int log;         // -1: standard error
    size_t clients_max, subscribers_max;
    CrashNotes crashes;
    SafeMode safe;
    Engine *engine;       // owned
    Transport *transport; // owned
    Bus *bus;             // owned
    PageCheck *check;     // owned; NULL: no walk was due
    ErrorDetail detail;
    int64_t idle_since_ns;
    uint64_t idle_requests; // how many there had been by the last tick
    size_t idle_clients;    // how many were connected at the last tick
    unsigned quiet_ticks;   // ticks without a change of either that gave back memory
} Daemon;

static Error daemon_start(Daemon *daemon);
static TinedExit daemon_serve(Daemon *daemon);
static TinedExit daemon_stop(Daemon *daemon, TinedExit code);

static TinedExit tined_exit_of(Error error)
{
    if (error == ERROR_UNAVAILABLE) return TINED_EXIT_IN_USE;
    if (error == ERROR_CORRUPT || error == ERROR_CLOSED) return TINED_EXIT_STORE;
    return TINED_EXIT_FAILED;
}

static TinedExit say_failure(Error error, const ErrorDetail *detail)
{
    Printer err = print_to_stderr();
    print(&err, "tined: %s\n", detail->text[0] ? detail->text : error_text(error));
    return tined_exit_of(error);
}

TinedExit daemon_run(const Config *config)
{
    heap_bound();
    Daemon daemon = {.config = config, .socket_lock = -1, .log = -1, .crashes = {.file = -1}};
    Error error = daemon_start(&daemon);
    if (error && daemon.log >= 0) { // nobody may see standard error
        const char *cause = daemon.detail.text[0] ? daemon.detail.text : error_text(error);
        log_write(LOG_ERROR, "cannot start", "error=%s detail=\"%s\"", error_name(error), cause);
    }
    TinedExit code = error ? say_failure(error, &daemon.detail) : daemon_serve(&daemon);
    return daemon_stop(&daemon, code);
}

// Checks all that can be checked without making anything.
static Error check_places(const Config *config, ErrorDetail *detail)
{
    char directory[PATH_BYTES_MAX], existing[PATH_BYTES_MAX];
    path_directory_of(config->socket, directory, sizeof(directory));
    Error error = path_check_directory(directory, detail, existing);
    if (!error && strcmp(existing, directory) == 0)
        error = directory_check_private(directory, detail);
    if (!error) error = path_check_socket(config->socket, detail);
    if (!error && *config->log_file) error = path_check_file(config->log_file, detail);
    if (error || config->is_ephemeral) return error;
    error = path_check_directory(config->data, detail, existing);
    return error ? error : file_system_check(existing, config->file_system_type, detail);
}

TinedExit daemon_check(const Config *config)
{
    ErrorDetail detail = {{0}};
    Error error = check_places(config, &detail);
    if (error) return say_failure(error, &detail);
    config_print(config);
    return TINED_EXIT_STOPPED;
}

static Error log_open(Daemon *daemon)
{
    const char *path = daemon->config->log_file;
    log_set_format((LogFormat)daemon->config->log_format);
    if (*path) {
        int log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, LOG_MODE);
        if (log < 0) {
            return error_say(&daemon->detail, ERROR_IO, "--log-file: cannot open %s: %s", path,
                             strerror(errno));
        }
        daemon->log = log;
    }
    log_configure((LogLevel)daemon->config->log_level, *path ? daemon->log : STDERR_FILENO);
    return ERROR_NONE;
}

// Opens the log's file again and puts it in place of the old descriptor, which other threads write
// to meanwhile.
static void log_reopen(Daemon *daemon)
{
    const char *path = daemon->config->log_file;
    if (!*path) return;
    int log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, LOG_MODE);
    if (log < 0 || dup3(log, daemon->log, O_CLOEXEC) < 0) {
        log_write(LOG_ERROR, "the log cannot be opened anew", "path=\"%s\" error=\"%s\"", path,
                  strerror(errno));
    }
    if (log >= 0) close(log);
    log_write(LOG_INFO, "log opened", NULL);
}

static void raise_descriptor_limit(Daemon *daemon)
{
    struct rlimit limit;
    daemon->clients_max = CLIENTS_MAX;
    daemon->subscribers_max = SUBSCRIBERS_MAX;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    rlim_t wanted = limit.rlim_max < DESCRIPTORS_MAX ? limit.rlim_max : DESCRIPTORS_MAX;
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = wanted;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0) (void)getrlimit(RLIMIT_NOFILE, &limit);
    }
    size_t room = limit.rlim_cur > 2 * DESCRIPTORS_RESERVED
                      ? (size_t)limit.rlim_cur - DESCRIPTORS_RESERVED
                      : DESCRIPTORS_RESERVED;
    if (room / 4 < daemon->subscribers_max) daemon->subscribers_max = room / 4;
    room -= daemon->subscribers_max;
    if (room < daemon->clients_max) daemon->clients_max = room;
}

static Error take_socket(Daemon *daemon)
{
    const char *path = daemon->config->socket;
    char directory[PATH_BYTES_MAX], lock[PATH_BYTES_MAX + sizeof(".lock")];
    path_directory_of(path, directory, sizeof(directory));
    Error error = directory_make(directory, &daemon->detail);
    if (!error) error = directory_check_private(directory, &daemon->detail);
    if (error) return error;
    snprintf(lock, sizeof(lock), "%s.lock", path);
    return lock_take(lock, path, "stop it or choose another with --socket", &daemon->detail,
                     &daemon->socket_lock);
}

static void give_socket(Daemon *daemon)
{
    char lock[PATH_BYTES_MAX + sizeof(".lock")];
    snprintf(lock, sizeof(lock), "%s.lock", daemon->config->socket);
    lock_remove(lock, daemon->socket_lock);
}

// Whoever waits for the start does not count the time of a migration.
static void on_migrating(void)
{
    notify_send("EXTEND_TIMEOUT_USEC=600000000\nSTATUS=migrating the store");
}

static void on_store_failed(void *context)
{
    (void)context;
    signals_wake(WAKE_FAILED);
}

// Decides whether the store is opened in safe mode.
static Error watch_crashes(Daemon *daemon)
{
    const Config *config = daemon->config;
    Error error = crash_notes_open(daemon->data, &daemon->detail, &daemon->crashes);
    if (error) return error;
    crash_notes_watch(&daemon->crashes);
    if (config->is_not_safe) daemon->crashes.is_loop = false;
    if (!config->is_safe && !daemon->crashes.is_loop) return ERROR_NONE;
    return safe_mode_enter(daemon->data, &daemon->crashes, &daemon->detail, &daemon->safe);
}

static Error open_store(Daemon *daemon)
{
    const Config *config = daemon->config;
    Error error = ERROR_NONE;
    if (config->is_ephemeral) {
        error = path_make_ephemeral(daemon->data, sizeof(daemon->data), &daemon->detail);
    } else {
        snprintf(daemon->data, sizeof(daemon->data), "%s", config->data);
        if (config->is_data_default) {
            error = last_store_check(config->socket, daemon->data, &daemon->detail);
        }
        if (!error) error = directory_make(daemon->data, &daemon->detail);
    }
    if (!error && !config->is_ephemeral) error = watch_crashes(daemon);
    if (error) return error;
    EngineOptions options = {
        .store =
            {
                .directory = daemon->data,
                .is_read_only = daemon->safe.is_on,
                .left_out = daemon->safe.survey ? daemon->safe.survey->left_out : NULL,
                .left_out_count = daemon->safe.survey ? daemon->safe.survey->left_out_count : 0,
                .is_ephemeral = config->is_ephemeral,
                .migrating = on_migrating,
                .flush_ms =
                    config->durability == DURABILITY_RELAXED ? (unsigned)config->flush_ms : 0,
                .fork_depth_max = (uint32_t)config->fork_depth_max,
                .event_count_max = config->event_count_max,
                .event_age_ms_max = config->event_age_ms_max,
                .operation_count_max = config->operation_count_max,
                .operation_age_ms_max = config->operation_age_ms_max,
                .file_system_type = config->file_system_type,
                .walks_behind = true,
            },
        .hooks = {.store_failed = on_store_failed, .context = daemon},
        .safe_mode = daemon->safe.is_on ? daemon->safe.refusal : NULL,
    };
    error = engine_open(&options, &daemon->detail, &daemon->engine);
    if (!error && config->is_not_safe) crash_notes_forget(&daemon->crashes);
    // The store has its files open; they disappear with the process, however it ends.
    if (config->is_ephemeral) directory_remove(daemon->data);
    return error;
}

static Error open_sockets(Daemon *daemon)
{
    const Config *config = daemon->config;
    TransportOptions options = {
        .engine = daemon->engine,
        .socket_path = config->socket,
        .tcp_url = *config->listen ? config->listen : NULL,
        .tcp_token = slice_of(config->token),
        .clients_max = daemon->clients_max,
    };
    BusOptions bus_options = {
        .engine = daemon->engine,
        .socket_path = config->socket,
        .subscribers_max = daemon->subscribers_max,
    };
    // The bus first: a client that can make a call can receive its events.
    Error error = bus_start(&bus_options, &daemon->detail, &daemon->bus);
    return error ? error : transport_start(&options, &daemon->detail, &daemon->transport);
}

static void note_store(const Daemon *daemon)
{
    if (daemon->config->is_ephemeral) {
        last_store_forget(daemon->config->socket);
    } else {
        last_store_note(daemon->config->socket, daemon->data);
    }
}

static Error daemon_start(Daemon *daemon)
{
    umask(077);
    Error error = check_places(daemon->config, &daemon->detail);
    if (!error) error = log_open(daemon);
    if (!error) error = signals_start(&daemon->detail);
    raise_descriptor_limit(daemon);
    if (!error) error = take_socket(daemon);
    if (!error) error = open_store(daemon);
    if (!error) error = open_sockets(daemon);
    if (!error) error = page_check_start(daemon->engine, &daemon->detail, &daemon->check);
    if (error) return error;
    note_store(daemon);
    log_write(LOG_INFO, "ready", "version=%s pid=%ld socket=\"%s\" data=\"%s\" listen=\"%s\"",
              TINE_VERSION, (long)getpid(), daemon->config->socket,
              daemon->config->is_ephemeral ? "" : daemon->data, daemon->config->listen);
    notify_send("READY=1");
    return ERROR_NONE;
}

// Returns whether there was no client for the time of --idle-exit. Also gives back memory when
// nothing happens.
static bool is_idle_too_long(Daemon *daemon)
{
    TransportStats stats;
    transport_stats(daemon->transport, &stats);
    int64_t now_ns = clock_monotonic_ns();
    bool is_quiet =
        stats.requests == daemon->idle_requests && stats.clients == daemon->idle_clients;
    if (stats.requests != daemon->idle_requests) daemon->idle_since_ns = now_ns;
    daemon->idle_requests = stats.requests;
    daemon->idle_clients = stats.clients;
    if (!is_quiet) {
        daemon->quiet_ticks = 0;
    } else if (transport_trim(daemon->transport) || daemon->quiet_ticks < QUIET_TICKS_TRIMMED) {
        store_trim(engine_store(daemon->engine));
        malloc_trim(0);
        daemon->quiet_ticks++;
    }
    if (stats.clients > 0 || bus_subscriber_count(daemon->bus) > 0) daemon->idle_since_ns = now_ns;
    int64_t idle_exit_ms = daemon->config->idle_exit_ms;
    return idle_exit_ms > 0 && now_ns - daemon->idle_since_ns >= idle_exit_ms * 1000000;
}

static TinedExit daemon_serve(Daemon *daemon)
{
    int64_t idle_exit_ms = daemon->config->idle_exit_ms;
    int tick_ms = idle_exit_ms > 0 && idle_exit_ms < TICK_MS ? (int)idle_exit_ms : TICK_MS;
    daemon->idle_since_ns = clock_monotonic_ns();
    Store *store = engine_store(daemon->engine);
    for (;;) {
        Wake wake = signals_wait(tick_ms);
        if (wake == WAKE_STOP) return TINED_EXIT_STOPPED;
        if (wake == WAKE_REOPEN) log_reopen(daemon);
        bool is_lost = store_check_owner(store, &daemon->detail) != ERROR_NONE;
        if (is_lost || store_is_failed(store)) return TINED_EXIT_STORE;
        if (wake != WAKE_TIMEOUT) continue;
        store_clear_dead_readers(store);
        if (is_idle_too_long(daemon)) {
            log_write(LOG_INFO, "idle for long enough", NULL);
            return TINED_EXIT_STOPPED;
        }
    }
}

static void daemon_drain(Daemon *daemon)
{
    notify_send("STOPPING=1");
    log_write(LOG_INFO, "stopping", NULL);
    transport_stop_intake(daemon->transport);
    engine_stop_waiting(daemon->engine);
    int64_t until_ns = clock_monotonic_ns() + (int64_t)DRAIN_MS * 1000000;
    if (transport_drain(daemon->transport, until_ns)) return;
    engine_refuse_writes(daemon->engine);
    if (!transport_drain(daemon->transport, until_ns + (int64_t)REFUSE_MS * 1000000)) {
        log_write(LOG_WARNING, "some replies could not be sent", NULL);
    }
}

// Returns `code`, or TINED_EXIT_STORE if the last flush failed.
static TinedExit daemon_stop(Daemon *daemon, TinedExit code)
{
    bool is_ready = daemon->transport != NULL;
    if (is_ready) {
        daemon_drain(daemon);
        transport_close(daemon->transport);
    }
    page_check_stop(daemon->check);
    if (daemon->engine) engine_end(daemon->engine);
    bus_close(daemon->bus);
    ErrorDetail *detail = &daemon->detail;
    bool is_flushed = !is_ready || store_flush(engine_store(daemon->engine), detail) == ERROR_NONE;
    if (!is_flushed) log_write(LOG_ERROR, "the last flush failed", "detail=\"%s\"", detail->text);
    engine_close(daemon->engine);
    transport_free(daemon->transport);
    if (is_ready) log_write(LOG_INFO, "stopped", NULL);
    if (!is_flushed) code = TINED_EXIT_STORE;
    bool is_good = is_ready && code == TINED_EXIT_STOPPED;
    if (is_good) last_store_forget(daemon->config->socket);
    // Safe mode is left by somebody who says so.
    crash_notes_close(&daemon->crashes, /* is_removed= */ is_good && !daemon->crashes.is_loop);
    safe_mode_free(&daemon->safe);
    give_socket(daemon);
    return code;
}
