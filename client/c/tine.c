// The client above its channel: the envelope around a request and a reply.

#include "tine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/wire.h"
#include "channel.h"
#include "channel_local.h"
#include "tine/v1/rpc.pb-c.h"

struct Tine {
    Channel *channel; // owned
};

static const char EMBEDDED[] = "embedded:";

int status_set(TineStatus *status, int code, const char *reason, const char *message)
{
    if (!status) return code;
    status->code = code;
    snprintf(status->reason, sizeof(status->reason), "%s", reason);
    snprintf(status->message, sizeof(status->message), "%s", message);
    return code;
}

static int status_of(TineStatus *status, Error error)
{
    return status_set(status, (int)error_status(error), error_reason(error), error_text(error));
}

int tine_from_channel(Channel *channel, Tine **out_tine)
{
    Tine *tine = calloc(1, sizeof(Tine));
    if (!tine) {
        channel->close(channel);
        return STATUS_RESOURCE_EXHAUSTED;
    }
    tine->channel = channel;
    *out_tine = tine;
    return STATUS_OK;
}

int tine_open(const char *url, TineStatus *out_status, Tine **out_tine)
{
    if (strncmp(url, EMBEDDED, sizeof(EMBEDDED) - 1) == 0) {
        Channel *channel;
        int code = channel_local_open(url + sizeof(EMBEDDED) - 1, out_status, &channel);
        return code ? code : tine_from_channel(channel, out_tine);
    }
    return status_set(out_status, STATUS_INVALID_ARGUMENT, "INVALID_ARGUMENT",
                      "the URL is not one that this version opens: embedded:PATH");
}

void tine_close(Tine *tine)
{
    if (!tine) return;
    tine->channel->close(tine->channel);
    free(tine);
}

static Slice text_or_empty(const char *text)
{
    return slice_of(text ? text : "");
}

// protobuf-c leaves out a oneof's string that points at its own default "": an empty id taken over
// from a decoded reply would silently mean "not said". In a copy of the message it points
// elsewhere.
static ProtobufCMessage *copy_with_empty_oneofs(const ProtobufCMessage *request)
{
    static char empty[] = "";
    const ProtobufCMessageDescriptor *descriptor = request->descriptor;
    ProtobufCMessage *copy = malloc(descriptor->sizeof_message);
    if (!copy) return NULL;
    memcpy(copy, request, descriptor->sizeof_message);
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        if (field->type != PROTOBUF_C_TYPE_STRING) continue;
        if (!(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)) continue;
        uint8_t *base = (uint8_t *)copy;
        if (*(uint32_t *)(void *)(base + field->quantifier_offset) != field->id) continue;
        char **text = (char **)(void *)(base + field->offset);
        if (!*text || !**text) *text = empty;
    }
    return copy;
}

// Packs the Request with the body last, straight from the message.
static Error request_pack(const TineCallOptions *options, const char *method,
                          const ProtobufCMessage *request, Buffer *out)
{
    Error error = buffer_reset(out, 0);
    if (!error) error = wire_append_bytes(out, 1, slice_of(method));
    if (!error && options && options->operation_id) {
        error = wire_append_bytes(out, 2, text_or_empty(options->operation_id));
    }
    if (!error && options && options->timeout_ms > 0) {
        error = wire_append_varint(out, 3, (uint64_t)options->timeout_ms);
    }
    if (!error && options && options->traceparent) {
        error = wire_append_bytes(out, 4, text_or_empty(options->traceparent));
    }
    size_t size = protobuf_c_message_get_packed_size(request);
    if (!error) error = wire_append_header(out, 15, size);
    uint8_t *bytes;
    if (!error) error = buffer_reserve(out, size, &bytes);
    if (error) return error;
    protobuf_c_message_pack(request, bytes);
    buffer_grow(out, size);
    return ERROR_NONE;
}

static int response_unpack(Slice bytes, const ProtobufCMessageDescriptor *response_type,
                           TineStatus *status, ProtobufCMessage **out_response)
{
    WireField field;
    if (wire_find(bytes, 1, &field)) {
        Tine__V1__Status *said =
            tine__v1__status__unpack(NULL, field.bytes.size, field.bytes.bytes);
        if (said && said->code != STATUS_OK) {
            int code = status_set(status, said->code, said->reason, said->message);
            tine__v1__status__free_unpacked(said, NULL);
            return code;
        }
        if (said) tine__v1__status__free_unpacked(said, NULL);
    }
    Slice body = {NULL, 0};
    if (wire_find(bytes, 15, &field)) body = field.bytes;
    ProtobufCMessage *response =
        protobuf_c_message_unpack(response_type, NULL, body.size, body.bytes);
    if (!response) {
        return status_set(status, STATUS_INTERNAL, "INTERNAL", "the reply cannot be decoded");
    }
    status_set(status, STATUS_OK, "", "");
    *out_response = response;
    return STATUS_OK;
}

int tine_call(Tine *tine, const TineCallOptions *options, const char *method,
              const ProtobufCMessage *request, const ProtobufCMessageDescriptor *response_type,
              ProtobufCMessage **out_response)
{
    TineStatus *status = options ? options->out_status : NULL;
    Buffer sent = {.bytes = NULL}, received = {.bytes = NULL};
    ProtobufCMessage *copy = copy_with_empty_oneofs(request);
    Error error = copy ? request_pack(options, method, copy, &sent) : ERROR_OUT_OF_MEMORY;
    free(copy);
    int code = error ? status_of(status, error) : STATUS_OK;
    if (!code) {
        code = tine->channel->call(tine->channel, buffer_slice(&sent), &received, status);
    }
    if (!code) code = response_unpack(buffer_slice(&received), response_type, status, out_response);
    buffer_free(&sent);
    buffer_free(&received);
    return code;
}
