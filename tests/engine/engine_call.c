// Calls on an engine.

#include "engine_call.h"

#include <stdio.h>
#include <stdlib.h>

#include "store/check.h"
#include "store/purge.h"
#include "wire/wire.h"

enum { RESPONSE_FIELD_BODY = 15, PURGE_CALLS_MAX = 10000 };

static Slice pack(Request envelope, enum MethodIndex method, const void *request)
{
    size_t size = protobuf_c_message_get_packed_size(request);
    uint8_t *body = malloc(size + 1);
    CHECK(body != NULL);
    protobuf_c_message_pack(request, body);
    envelope.method = (char *)(uintptr_t)METHODS[method].path;
    envelope.body = (ProtobufCBinaryData){size, body};
    size = protobuf_c_message_get_packed_size(&envelope.base);
    uint8_t *bytes = malloc(size);
    CHECK(bytes != NULL);
    protobuf_c_message_pack(&envelope.base, bytes);
    free(body);
    return slice(bytes, size);
}

Slice engine_request(enum MethodIndex method, const void *request, const char *operation_id,
                     int64_t timeout_ms)
{
    Request envelope = REQUEST__INIT;
    envelope.operation_id = (char *)(uintptr_t)(operation_id ? operation_id : "");
    envelope.timeout_ms = timeout_ms;
    return pack(envelope, method, request);
}

Slice engine_request_synced(enum MethodIndex method, const void *request)
{
    Request envelope = REQUEST__INIT;
    envelope.sync = true;
    return pack(envelope, method, request);
}

static void *decode_reply(enum MethodIndex method, Slice reply)
{
    WireField body = {.bytes = {NULL, 0}};
    (void)wire_find(reply, RESPONSE_FIELD_BODY, &body);
    void *response = protobuf_c_message_unpack(METHODS[method].response, NULL, body.bytes.size,
                                               body.bytes.bytes);
    CHECK(response != NULL);
    return response;
}

// Frees the request.
static Error run(Engine *engine, enum MethodIndex method, Slice bytes, void *out_response_pointer)
{
    Rpc rpc;
    rpc_init(&rpc);
    rpc_reset(&rpc);
    rpc.request = bytes;
    engine_run(engine, &rpc);
    Error error = rpc.error;
    if (out_response_pointer) {
        *(void **)out_response_pointer =
            error ? NULL : decode_reply(method, buffer_slice(&rpc.reply));
    }
    rpc_free(&rpc);
    free((void *)(uintptr_t)bytes.bytes);
    return error;
}

Error engine_call(Engine *engine, enum MethodIndex method, const void *request,
                  const char *operation_id, void *out_response_pointer)
{
    return run(engine, method, engine_request(method, request, operation_id, 0),
               out_response_pointer);
}

Error engine_call_synced(Engine *engine, enum MethodIndex method, const void *request)
{
    return run(engine, method, engine_request_synced(method, request), NULL);
}

void engine_free(void *response)
{
    if (response) protobuf_c_message_free_unpacked(response, NULL);
}

static void print_damage(void *context, const Damage *damage)
{
    (void)context;
    printf("%s: %s\n", damage_name(damage->kind), damage->text);
}

bool engine_is_clean(Engine *engine)
{
    StoreCheckOptions options = {.found = print_damage};
    StoreCheckResult result;
    CHECK_EQ(store_check(engine_store(engine), &options, &result), ERROR_NONE);
    return result.damage_count == 0;
}

void engine_new_session(Engine *engine, const char *parent, IdText out)
{
    CreateSessionRequest request = CREATE_SESSION_REQUEST__INIT;
    NewSession session = NEW_SESSION__INIT;
    ModelRef model = MODEL_REF__INIT;
    model.provider = "anthropic";
    model.name = "model-1";
    session.model = &model;
    session.project_dir = "/project";
    session.kind = parent ? SESSION_KIND_SUBAGENT : SESSION_KIND_PRIMARY;
    if (parent) session.parent_id = (char *)(uintptr_t)parent;
    request.session = &session;
    CreateSessionResponse *response;
    CHECK_EQ(engine_call(engine, METHOD_CREATE_SESSION, &request, NULL, &response), ERROR_NONE);
    snprintf(out, sizeof(IdText), "%s", response->session->id);
    engine_free(response);
}

void engine_append_text(Engine *engine, const char *session, const char *text, IdText out)
{
    AppendMessageRequest request = APPEND_MESSAGE_REQUEST__INIT;
    NewMessage message = NEW_MESSAGE__INIT;
    Part part = PART__INIT, *parts[] = {&part};
    Text content = TEXT__INIT;
    content.text = (char *)(uintptr_t)text;
    part.kind_case = PART__KIND_TEXT;
    part.text = &content;
    message.role = ROLE_USER;
    message.parts = parts;
    message.n_parts = 1;
    request.session_id = (char *)(uintptr_t)session;
    request.message = &message;
    AppendMessageResponse *response;
    CHECK_EQ(engine_call(engine, METHOD_APPEND_MESSAGE, &request, NULL, &response), ERROR_NONE);
    if (out) snprintf(out, sizeof(IdText), "%s", response->receipt->id);
    engine_free(response);
}

static uint64_t purges_pending(Engine *engine)
{
    StatsRequest request = STATS_REQUEST__INIT;
    StatsResponse *response;
    CHECK_EQ(engine_call(engine, METHOD_STATS, &request, NULL, &response), ERROR_NONE);
    uint64_t pending = response->purges_pending;
    engine_free(response);
    return pending;
}

void engine_finish_purges(Engine *engine)
{
    // A session that there is not: the writer looks, and writes nothing.
    RestoreSessionRequest nothing = RESTORE_SESSION_REQUEST__INIT;
    nothing.session_id = "00000000000000000000000001";
    for (int i = 0; i < PURGE_CALLS_MAX; i++) {
        Error error = engine_call(engine, METHOD_RESTORE_SESSION, &nothing, NULL, NULL);
        CHECK_EQ(error, ERROR_SESSION_NOT_FOUND);
        if (i > 0 && purges_pending(engine) == 0) return;
    }
    CHECK_STR("the purges never end", NULL);
}
