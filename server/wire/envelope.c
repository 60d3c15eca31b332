// The envelope. The body is the last field, so its header is the last thing that is written before
// it.

#include "wire/envelope.h"

#include "fields.h"
#include "text/utf8.h"
#include "wire/wire.h"

static Error append_text(Buffer *out, uint32_t number, Slice text)
{
    return text.size > 0 ? wire_append_bytes(out, number, text) : ERROR_NONE;
}

Error envelope_request_write(Buffer *out, const RequestEnvelope *envelope, size_t body_bytes)
{
    Error error = append_text(out, FIELD_REQUEST_METHOD, envelope->method);
    if (!error) error = append_text(out, FIELD_REQUEST_OPERATION_ID, envelope->operation_id);
    if (!error && envelope->timeout_ms != 0) {
        error = wire_append_varint(out, FIELD_REQUEST_TIMEOUT_MS, (uint64_t)envelope->timeout_ms);
    }
    if (!error) error = append_text(out, FIELD_REQUEST_TRACEPARENT, envelope->traceparent);
    if (!error) error = append_text(out, FIELD_REQUEST_TOKEN, envelope->token);
    if (!error && envelope->sync) error = wire_append_varint(out, FIELD_REQUEST_SYNC, 1);
    if (!error && body_bytes > 0) error = wire_append_header(out, FIELD_REQUEST_BODY, body_bytes);
    return error;
}

bool envelope_request_read(Slice request, RequestEnvelope *out, Slice *out_body)
{
    *out = (RequestEnvelope){.timeout_ms = 0};
    *out_body = (Slice){NULL, 0};
    WireField field;
    while (wire_next(&request, &field)) {
        if (field.type == WIRE_VARINT) {
            if (field.number == FIELD_REQUEST_TIMEOUT_MS) out->timeout_ms = (int64_t)field.value;
            if (field.number == FIELD_REQUEST_SYNC) out->sync = field.value != 0;
        }
        if (field.type != WIRE_BYTES) continue;
        if (field.number == FIELD_REQUEST_METHOD) out->method = field.bytes;
        if (field.number == FIELD_REQUEST_OPERATION_ID) out->operation_id = field.bytes;
        if (field.number == FIELD_REQUEST_TRACEPARENT) out->traceparent = field.bytes;
        if (field.number == FIELD_REQUEST_TOKEN) out->token = field.bytes;
        if (field.number == FIELD_REQUEST_BODY) *out_body = field.bytes;
    }
    return request.size == 0;
}

void envelope_response_begin(Buffer *reply, size_t body_bytes)
{
    uint8_t header[ENVELOPE_RESPONSE_GAP];
    size_t size = wire_put_tag(header, FIELD_RESPONSE_BODY, WIRE_BYTES);
    size += wire_put_varint(header + size, body_bytes);
    buffer_prepend(reply, slice(header, size));
}

Error envelope_response_fail(Buffer *reply, const ResponseStatus *status)
{
    uint64_t code = (uint64_t)(int64_t)status->code;
    uint8_t code_field[WIRE_TAG_BYTES_MAX + WIRE_VARINT_BYTES_MAX];
    size_t code_bytes = wire_put_varint_field(code_field, FIELD_STATUS_CODE, code);
    size_t content_bytes = code_bytes +
                           wire_bytes_field_size(FIELD_STATUS_MESSAGE, status->message.size) +
                           wire_bytes_field_size(FIELD_STATUS_REASON, status->reason.size);
    uint8_t *out;
    size_t size = wire_bytes_field_size(FIELD_RESPONSE_STATUS, content_bytes);
    Error error = buffer_reserve(reply, size, &out);
    if (error) return error;

    out += wire_put_tag(out, FIELD_RESPONSE_STATUS, WIRE_BYTES);
    out += wire_put_varint(out, content_bytes);
    memcpy(out, code_field, code_bytes);
    out += code_bytes;
    out += wire_put_bytes_field(out, FIELD_STATUS_MESSAGE, status->message);
    (void)wire_put_bytes_field(out, FIELD_STATUS_REASON, status->reason);
    buffer_grow(reply, size);
    return ERROR_NONE;
}

// A status that comes twice is one message in two pieces: what the second piece leaves out stays,
// so it cannot turn a failure into a success. Each text is checked, also one that a later one
// replaces.
static bool status_read(Slice bytes, ResponseStatus *status)
{
    WireField field;
    while (wire_next(&bytes, &field)) {
        if (field.number == FIELD_STATUS_CODE && field.type == WIRE_VARINT) {
            status->code = (int32_t)(uint32_t)field.value;
        }
        bool is_message = field.number == FIELD_STATUS_MESSAGE;
        if (field.type != WIRE_BYTES || (!is_message && field.number != FIELD_STATUS_REASON)) {
            continue;
        }
        if (!utf8_is_valid(field.bytes)) return false;
        *(is_message ? &status->message : &status->reason) = field.bytes;
    }
    return bytes.size == 0;
}

bool envelope_response_read(Slice response, ResponseStatus *out, Slice *out_body)
{
    *out = (ResponseStatus){.code = 0};
    *out_body = (Slice){NULL, 0};
    bool is_good = response.size > 0; // even a success has a status or a body
    WireField field;
    while (is_good && wire_next(&response, &field)) {
        if (field.type != WIRE_BYTES) continue;
        if (field.number == FIELD_RESPONSE_STATUS) is_good = status_read(field.bytes, out);
        if (field.number == FIELD_RESPONSE_BODY) *out_body = field.bytes;
    }
    return is_good && response.size == 0;
}
