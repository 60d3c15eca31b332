// Dispatch. The envelope is read by hand, so that a large body is never copied out of it; the reply
// is built body first, with a gap in front into which the envelope is written last.

#include "rpc/dispatch.h"

#include <inttypes.h>

#include "base/limits.h"
#include "os/clock.h"
#include "report/log.h"
#include "report/log_limit.h"
#include "rpc/field_rules.h"
#include "text/utf8.h"
#include "wire/encode.h"
#include "wire/wire.h"

// Fields of Request, Response and Status by number.
enum {
    REQUEST_FIELD_METHOD = 1,
    REQUEST_FIELD_OPERATION_ID = 2,
    REQUEST_FIELD_TIMEOUT_MS = 3,
    REQUEST_FIELD_TOKEN = 5,
    REQUEST_FIELD_SYNC = 6,
    REQUEST_FIELD_BODY = 15,
    RESPONSE_FIELD_STATUS = 1,
    RESPONSE_FIELD_BODY = 15,
    STATUS_FIELD_CODE = 1,
    STATUS_FIELD_MESSAGE = 2,
    STATUS_FIELD_REASON = 3,
};

static void envelope_deadline(Call *call, int64_t timeout_ms)
{
    call->deadline_ns = INT64_MAX;
    if (timeout_ms == 0 || timeout_ms > TIME_MS_MAX / 1000) return;
    if (timeout_ms < 0) timeout_ms = -1; // a client whose deadline has passed, not one without
    call->deadline_ns = call->submitted_ns + timeout_ms * 1000000;
}

static Error envelope_method(Call *call, Slice path)
{
    if (path.size == 0) return call_fail(call, ERROR_INVALID_ARGUMENT, "method is required");
    if (path.size > METHOD_BYTES_MAX) {
        return call_fail(call, ERROR_TOO_LONG, "method: %zu bytes, the limit is %d", path.size,
                         METHOD_BYTES_MAX);
    }
    call->method = method_find((const char *)path.bytes, path.size);
    if (call->method && call->method->is_stream) {
        return call_fail(call, ERROR_UNIMPLEMENTED,
                         "%s is put together by the client's channel: catch up by ListEvents, then "
                         "listen to the event socket beside this one (docs/wire.md); over tcp call "
                         "ListEvents with wait_ms",
                         call->method->name);
    }
    if (call->method) return ERROR_NONE;
    bool is_text = utf8_is_valid(path) && !(path.size && memchr(path.bytes, 0, path.size));
    return call_fail(call, ERROR_UNIMPLEMENTED, "this server (version %s) has no method '%.*s'",
                     TINE_VERSION, is_text ? (int)path.size : 0, (const char *)path.bytes);
}

static Error envelope_operation_id(Call *call, Slice operation_id)
{
    if (operation_id.size > OPERATION_ID_BYTES_MAX) {
        return call_fail(call, ERROR_TOO_LONG, "operation_id: %zu bytes, the limit is %d",
                         operation_id.size, OPERATION_ID_BYTES_MAX);
    }
    if (!utf8_is_valid(operation_id) ||
        (operation_id.size && memchr(operation_id.bytes, 0, operation_id.size))) {
        return call_fail(call, ERROR_INVALID_UTF8,
                         "operation_id: not valid UTF-8, or it holds a NUL");
    }
    call->operation_id = operation_id;
    return ERROR_NONE;
}

// Takes as long for a wrong token as for the right one, whatever they have in common.
static Error envelope_token(const Call *call, Slice token)
{
    if (call->token_wanted.size == 0) return ERROR_NONE;
    if (token.size != call->token_wanted.size) return ERROR_UNAUTHENTICATED;
    unsigned difference = 0;
    for (size_t i = 0; i < token.size; i++) {
        difference |= token.bytes[i] ^ call->token_wanted.bytes[i];
    }
    return difference ? ERROR_UNAUTHENTICATED : ERROR_NONE;
}

static Error envelope_read(Call *call)
{
    if (call->request.size > REQUEST_BYTES_MAX) {
        return call_fail(call, ERROR_TOO_LONG, "the request has %zu bytes, the limit is %d",
                         call->request.size, REQUEST_BYTES_MAX);
    }
    Slice rest = call->request, path = {NULL, 0}, operation_id = {NULL, 0}, token = {NULL, 0};
    int64_t timeout_ms = 0;
    WireField field;
    while (wire_next(&rest, &field)) {
        if (field.type == WIRE_VARINT) {
            if (field.number == REQUEST_FIELD_TIMEOUT_MS) timeout_ms = (int64_t)field.value;
            if (field.number == REQUEST_FIELD_SYNC) call->wants_sync = field.value != 0;
        }
        if (field.type != WIRE_BYTES) continue; // with another type it is an unknown field
        if (field.number == REQUEST_FIELD_METHOD) path = field.bytes;
        if (field.number == REQUEST_FIELD_OPERATION_ID) operation_id = field.bytes;
        if (field.number == REQUEST_FIELD_TOKEN) token = field.bytes;
        if (field.number == REQUEST_FIELD_BODY) call->body = field.bytes;
    }
    if (rest.size > 0) {
        return call_fail(call, ERROR_INVALID_ARGUMENT,
                         "the bytes are not a tine.v1.Request (rpc.proto)");
    }
    envelope_deadline(call, timeout_ms);
    Error error = envelope_token(call, token);
    if (!error) error = envelope_method(call, path);
    if (error) return error;
    return envelope_operation_id(call, operation_id);
}

static size_t decode_budget(const Call *call)
{
    return DECODE_BUDGET_EXTRA_BYTES + DECODE_BUDGET_FACTOR * call->body.size;
}

Error dispatch_decode(Call *call, size_t decode_budget_bytes)
{
    Error error = envelope_read(call);
    if (error) return error;
    bool has_unknown;
    error = field_rules_check(call->method->request, call->body, &call->detail, &has_unknown);
    if (error) return error;

    call->arena.budget_bytes = decode_budget_bytes ? decode_budget_bytes : decode_budget(call);
    call->message = protobuf_c_message_unpack(call->method->request, &call->arena.allocator,
                                              call->body.size, call->body.bytes);
    if (!call->message) {
        if (call->arena.is_exhausted) {
            return call_fail(call, ERROR_TOO_LONG,
                             "the request takes more than %zu bytes once decoded; send fewer "
                             "fields or a larger request in several",
                             call->arena.budget_bytes);
        }
        return call_fail(call, ERROR_INVALID_ARGUMENT, "the body cannot be decoded as %s",
                         call->method->request->short_name);
    }
    if (has_unknown) field_rules_drop_unknown(call->message);
    if (!decode_budget_bytes) call->arena.budget_bytes = RUN_BUDGET_BYTES;
    if (!call->method->is_write) return ERROR_NONE;
    if (call->operation_id.size > 0) {
        call->request_hash =
            hash_pair(slice(call->method->path, call->method->path_bytes), call->body);
    }
    return call->method->check(call, call->message);
}

// A page of megabytes into memory that was given back would be faulted in, page by page, each time.
static Error reply_empty(Call *call)
{
    return call->keeps_reply ? buffer_empty(&call->reply, REPLY_GAP)
                             : buffer_reset(&call->reply, REPLY_GAP);
}

Error dispatch_run(Call *call, Txn *txn)
{
    const ProtobufCMessageDescriptor *descriptor = call->method->response;
    Error error = reply_empty(call);
    if (error) return error;
    ProtobufCMessage *response = arena_alloc(&call->arena, descriptor->sizeof_message);
    if (!response) return arena_error(&call->arena);
    protobuf_c_message_init(descriptor, response);

    call->txn = txn;
    error = call->method->run(call, call->message, response);
    call->txn = NULL;
    if (error) return error;

    // What the handler appended itself stands in front; the order of fields is free.
    size_t size = protobuf_c_message_get_packed_size(response);
    uint8_t *bytes;
    error = buffer_reserve(&call->reply, size, &bytes);
    if (error) return error;
    encode_before(bytes, bytes + size, response);
    buffer_grow(&call->reply, size);
    return ERROR_NONE;
}

static void finish_ok(Call *call)
{
    uint8_t header[REPLY_GAP];
    size_t size = wire_put_tag(header, RESPONSE_FIELD_BODY, WIRE_BYTES);
    size += wire_put_varint(header + size, buffer_size(&call->reply));
    buffer_prepend(&call->reply, slice(header, size));
}

static void finish_failed(Call *call, Error error)
{
    const char *message = call->detail.text[0] ? call->detail.text : error_text(error);
    uint8_t status[ERROR_DETAIL_BYTES_MAX + 128];
    size_t size = wire_put_varint_field(status, STATUS_FIELD_CODE, (uint64_t)error_status(error));
    size += wire_put_bytes_field(status + size, STATUS_FIELD_MESSAGE, slice_of(message));
    size += wire_put_bytes_field(status + size, STATUS_FIELD_REASON, slice_of(error_reason(error)));
    Error failed = reply_empty(call);
    if (!failed) {
        failed = wire_append_bytes(&call->reply, RESPONSE_FIELD_STATUS, slice(status, size));
    }
    if (failed) log_write(LOG_ERROR, "no memory for a reply", NULL);
}

// Each kind of error has a limit of its own: that of a full disk must not hide a corrupt file.
static void log_failure(const Call *call, Error error)
{
    static LogLimit limits[ERROR_COUNT];
    uint64_t left_out;
    if (!log_limit_take(&limits[error], clock_monotonic_ns(), &left_out)) return;
    if (left_out > 0) {
        log_write(LOG_ERROR, "calls failed", "error=%s left_out=%" PRIu64, error_reason(error),
                  left_out);
    }
    log_write(LOG_ERROR, "call failed", "method=%s error=%s detail=\"%s\"",
              call->method ? call->method->name : "", error_reason(error), call->detail.text);
}

void dispatch_finish(Call *call, Error error)
{
    call->error = error;
    if (error_is_environment(error)) log_failure(call, error);
    if (error) {
        finish_failed(call, error);
    } else {
        finish_ok(call);
    }
}
