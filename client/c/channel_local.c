// The local channel: runs the daemon's engine without its transport.

#include "channel_local.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/limits.h"
#include "feed_local.h"
#include "os/directory.h"
#include "os/process.h"
#include "status.h"

static const uint64_t MEMORY_BYTES_MIN = UINT64_C(256)
                                         << 20; // containers have a /dev/shm of 64 MiB

typedef struct LocalChannel {
    Channel channel;
    Engine *engine;
    bool is_owner;
    unsigned generation; // of the process that made the channel
} LocalChannel;

static int local_call(Channel *channel, ChannelCall *call, TineStatus *status)
{
    LocalChannel *local = (LocalChannel *)channel;
    if (local->generation != process_generation()) { // the writer's thread is not in this process
        return status_unavailable(status, "the store was opened before a fork; the child must open "
                                          "its own");
    }
    Rpc rpc;
    rpc_init(&rpc);
    rpc_reset(&rpc);
    rpc.request = call->request;
    rpc.reply = *call->response; // uses its memory again
    rpc.keeps_reply = true;
    engine_run(local->engine, &rpc);
    *call->response = rpc.reply; // handed over
    rpc.reply = (Buffer){.bytes = NULL};
    rpc_free(&rpc);
    return STATUS_OK;
}

static Feed *local_feed_open(Channel *channel)
{
    LocalChannel *local = (LocalChannel *)channel;
    return local->generation == process_generation() ? feed_local_open(local->engine) : NULL;
}

static void local_close(Channel *channel)
{
    LocalChannel *local = (LocalChannel *)channel;
    // A child of fork has no threads to stop, so it leaves the engine as it is.
    if (local->is_owner && local->generation == process_generation()) engine_close(local->engine);
    free(local);
}

static int local_make(Engine *engine, bool is_owner, Channel **out_channel)
{
    LocalChannel *local = calloc(1, sizeof(LocalChannel));
    if (!local) return STATUS_RESOURCE_EXHAUSTED;
    local->channel.call = local_call;
    local->channel.close = local_close;
    local->channel.feed_open = local_feed_open;
    local->engine = engine;
    local->is_owner = is_owner;
    local->generation = process_generation();
    *out_channel = &local->channel;
    return STATUS_OK;
}

int channel_local_borrow(Engine *engine, Channel **out_channel)
{
    return local_make(engine, /* is_owner= */ false, out_channel);
}

static int local_open(const StoreOptions *store, TineStatus *status, Channel **out_channel)
{
    EngineOptions options = {.store = *store};
    ErrorDetail detail = {{0}};
    Engine *engine;
    Error error = engine_open(&options, &detail, &engine);
    if (error) {
        return status_set(status, (int)error_status(error), error_reason(error),
                          detail.text[0] ? detail.text : error_text(error));
    }
    if (local_make(engine, /* is_owner= */ true, out_channel)) {
        engine_close(engine);
        return status_out_of_memory(status);
    }
    return STATUS_OK;
}

static void text_freep(char **text)
{
    free(*text);
}

static int refuse(TineStatus *status, const char *what)
{
    char message[sizeof(status->message)];
    snprintf(message, sizeof(message),
             "the embedded store's option '%s' is none of durability=sync, durability=relaxed and "
             "flush_ms=1 to %d",
             what, FLUSH_MS_MAX);
    return status_set(status, STATUS_INVALID_ARGUMENT, "INVALID_ARGUMENT", message);
}

// Reads the options; writes over `text`.
static int options_read(char *text, TineStatus *status, StoreOptions *out)
{
    bool is_relaxed = false;
    unsigned flush_ms = FLUSH_MS_DEFAULT;
    char *rest = text;
    for (char *option; (option = strsep(&rest, "&"));) {
        char *end = option;
        unsigned long number = 0;
        if (strncmp(option, "flush_ms=", 9) == 0) number = strtoul(option + 9, &end, 10);
        if (strcmp(option, "durability=relaxed") == 0) {
            is_relaxed = true;
        } else if (strcmp(option, "durability=sync") == 0) {
            is_relaxed = false;
        } else if (*end == '\0' && number >= 1 && number <= FLUSH_MS_MAX) {
            flush_ms = (unsigned)number;
        } else {
            return refuse(status, option);
        }
    }
    out->flush_ms = is_relaxed ? flush_ms : 0;
    return STATUS_OK;
}

int channel_local_open(const char *place, TineStatus *status, Channel **out_channel)
{
    CLEANUP(text_freep) char *copy = strdup(place);
    if (!copy) return status_out_of_memory(status);
    StoreOptions options = {.directory = copy};
    char *mark = strrchr(copy, '?');
    if (mark) *mark = '\0';
    int code = mark ? options_read(mark + 1, status, &options) : STATUS_OK;
    return code ? code : local_open(&options, status, out_channel);
}

static bool has_room(const char *directory)
{
    struct statvfs disk;
    return statvfs(directory, &disk) == 0 && access(directory, W_OK) == 0 &&
           (uint64_t)disk.f_bavail * disk.f_frsize >= MEMORY_BYTES_MIN;
}

// The store keeps its files open after the directory is removed, so nothing is left after a crash
// either.
int channel_local_open_memory(TineStatus *status, Channel **out_channel)
{
    const char *temporary = getenv("TMPDIR");
    if (!temporary || !*temporary) temporary = "/tmp";
    char path[4096];
    int size = snprintf(path, sizeof(path), "%s/tine-memory-XXXXXX",
                        has_room("/dev/shm") ? "/dev/shm" : temporary);
    if (size < 0 || (size_t)size >= sizeof(path) || !mkdtemp(path)) {
        char message[sizeof(status->message)];
        snprintf(message, sizeof(message),
                 "no directory for a store in memory can be made in %s: %s", temporary,
                 strerror(errno));
        return status_set(status, STATUS_DATA_LOSS, "DATA_LOSS", message);
    }
    int code =
        local_open(&(StoreOptions){.directory = path, .is_ephemeral = true}, status, out_channel);
    directory_remove(path);
    return code;
}
