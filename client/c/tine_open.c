// Opening and closing: makes the channel that a URL names, and the client above it.

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "channel_direct.h"
#include "channel_local.h"
#include "channel_sp.h"
#include "client.h"
#include "os/socket_path.h"
#include "status.h"
#if TINE_HAS_NNG
#include "channel_nng.h"
#endif

static const char EMBEDDED[] = "embedded:";
static const char MEMORY[] = ":memory:";
static const char IPC[] = "ipc://";
static const char NNG[] = "nng+";

// Returns what follows the prefix, or NULL.
static const char *after(const char *text, const char *prefix)
{
    size_t size = strlen(prefix);
    return strncmp(text, prefix, size) == 0 ? text + size : NULL;
}

#if !TINE_HAS_NNG
static int channel_nng_open(const char *url, TineStatus *status, Channel **out_channel)
{
    (void)url;
    (void)out_channel;
    return status_set(status, STATUS_UNIMPLEMENTED, "UNIMPLEMENTED",
                      "this libtine was built without NNG, which that URL needs; ipc://PATH and "
                      "embedded:PATH do not");
}
#endif

// A socket address of the kernel holds no longer path.
static int check_socket_path(const char *path, TineStatus *status)
{
    size_t size = strlen(path);
    if (size > 0 && size <= SOCKET_PATH_BYTES_MAX) return STATUS_OK;
    char message[sizeof(status->message)];
    snprintf(message, sizeof(message),
             "the path of the socket has %zu bytes, 1 to %d are possible: '%s'", size,
             SOCKET_PATH_BYTES_MAX, path);
    return status_set(status, STATUS_INVALID_ARGUMENT, "INVALID_ARGUMENT", message);
}

static int channel_open(const char *url, TineStatus *status, Channel **out_channel)
{
    const char *rest = after(url, EMBEDDED);
    if (rest) {
        return strcmp(rest, MEMORY) == 0 ? channel_local_open_memory(status, out_channel)
                                         : channel_local_open(rest, status, out_channel);
    }
    rest = after(url, NNG);
    const char *path = after(rest ? rest : url, IPC);
    int code = path ? check_socket_path(path, status) : STATUS_OK;
    if (code) return code;
    if (path && !rest) return channel_sp_open(path, status, out_channel);
    if (rest || strstr(url, "://")) {
        return channel_nng_open(rest ? rest : url, status, out_channel);
    }
    return status_set(status, STATUS_INVALID_ARGUMENT, "INVALID_ARGUMENT",
                      "the URL is none of ipc://PATH, tcp://HOST:PORT, nng+URL, embedded:PATH and "
                      "embedded::memory:");
}

int tine_from_channel(Channel *channel, Tine **out_tine)
{
    Tine *tine = calloc(1, sizeof(Tine));
    if (!tine) {
        channel->close(channel);
        return STATUS_RESOURCE_EXHAUSTED;
    }
    tine->channel = channel;
    tine->retry_ms = RETRY_MS_DEFAULT;
    tine->bus_silence_ms = BUS_SILENCE_MS_DEFAULT;
    tine->bus_retry_ms = BUS_RETRY_MS_DEFAULT;
    *out_tine = tine;
    return STATUS_OK;
}

int tine_open(const char *url, TineStatus *out_status, Tine **out_tine)
{
    return tine_open_with(url, NULL, out_status, out_tine);
}

int tine_open_with(const char *url, const TineOpenOptions *options, TineStatus *out_status,
                   Tine **out_tine)
{
    Channel *channel;
    Tine *tine;
    int code = channel_open(url, out_status, &channel);
    if (code) return code;
    // Direct reads need a server on this host; for other channels the flag changes nothing.
    bool reads_directly =
        options && options->flags & TINE_DIRECT_READS && channel->connection_serial;
    if (reads_directly) code = channel_direct_open(channel, out_status, &channel);
    if (code) return code;
    if (tine_from_channel(channel, &tine)) return status_out_of_memory(out_status);

    tine->url = strdup(url);
    if (options && options->retry_ms > 0) tine->retry_ms = options->retry_ms;
    tine->reads_directly = reads_directly;
    tine->wait_for_server = options && options->wait_for_server;
    if (options && options->token) tine->token = strdup(options->token);
    if (!tine->url || (options && options->token && !tine->token)) {
        tine_close(tine);
        return status_out_of_memory(out_status);
    }
    status_set(out_status, STATUS_OK, "", "");
    *out_tine = tine;
    return STATUS_OK;
}

void tine_close(Tine *tine)
{
    if (!tine) return;
    tine->channel->close(tine->channel);
    for (size_t i = 0; i < REPLIES_KEPT; i++) {
        if (!atomic_load(&tine->replies[i].is_taken)) buffer_free(&tine->replies[i].buffer);
    }
    free(tine->url);
    free(tine->token);
    free(tine);
}
