// The local channel: the very calls of the daemon, without its transport.

#include "channel_local.h"

#include <stdlib.h>

typedef struct LocalChannel {
    Channel channel;
    Engine *engine;
    bool is_owner;
} LocalChannel;

static int local_call(Channel *channel, Slice request, Buffer *out_response, TineStatus *status)
{
    (void)status; // the engine always answers
    LocalChannel *local = (LocalChannel *)channel;
    Call call;
    call_init(&call);
    call_reset(&call);
    call.request = request;
    engine_run(local->engine, &call);
    *out_response = call.reply; // handed over
    call.reply = (Buffer){.bytes = NULL};
    call_free(&call);
    return STATUS_OK;
}

static void local_close(Channel *channel)
{
    LocalChannel *local = (LocalChannel *)channel;
    if (local->is_owner) engine_close(local->engine);
    free(local);
}

static int local_make(Engine *engine, bool is_owner, Channel **out_channel)
{
    LocalChannel *local = calloc(1, sizeof(LocalChannel));
    if (!local) return STATUS_RESOURCE_EXHAUSTED;
    local->channel.call = local_call;
    local->channel.close = local_close;
    local->engine = engine;
    local->is_owner = is_owner;
    *out_channel = &local->channel;
    return STATUS_OK;
}

int channel_local_borrow(Engine *engine, Channel **out_channel)
{
    return local_make(engine, /* is_owner= */ false, out_channel);
}

int channel_local_open(const char *directory, TineStatus *status, Channel **out_channel)
{
    EngineOptions options = {.store = {.directory = directory}};
    ErrorDetail detail = {{0}};
    Engine *engine;
    Error error = engine_open(&options, &detail, &engine);
    if (error) {
        return status_set(status, (int)error_status(error), error_reason(error),
                          detail.text[0] ? detail.text : error_text(error));
    }
    int code = local_make(engine, /* is_owner= */ true, out_channel);
    if (code) engine_close(engine);
    return code;
}
