// The envelope is read without protobuf-c, so a large body is never copied out of it. The body of a
// reply is built first, behind a gap into which the envelope is written last.

#include "rpc/dispatch.h"

#include <inttypes.h>

#include "base/limits.h"
#include "os/clock.h"
#include "report/activity.h"
#include "report/log.h"
#include "report/log_limit.h"
#include "rpc/field_rules.h"
#include "text/utf8.h"
#include "wire/encode.h"
#include "wire/envelope.h"

static void set_deadline(Rpc *rpc, int64_t timeout_ms)
{
    rpc->deadline_ns = INT64_MAX;
    if (timeout_ms == 0 || timeout_ms > TIME_MS_MAX / 1000) return;
    if (timeout_ms < 0) timeout_ms = -1; // the deadline has passed; not: there is none
    rpc->deadline_ns = rpc->submitted_ns + timeout_ms * 1000000;
}

static Error set_method(Rpc *rpc, Slice path)
{
    if (path.size == 0) return rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "method is required");
    if (path.size > METHOD_BYTES_MAX) {
        return rpc_fail(rpc, ERROR_TOO_LONG, "method: %zu bytes, the limit is %d", path.size,
                        METHOD_BYTES_MAX);
    }
    rpc->method = method_find((const char *)path.bytes, path.size);
    if (rpc->method && rpc->method->is_stream) {
        return rpc_fail(rpc, ERROR_UNIMPLEMENTED,
                        "%s is put together by the client's channel: catch up by ListEvents, then "
                        "listen to the event socket beside this one (docs/wire.md); over tcp call "
                        "ListEvents with wait_ms",
                        rpc->method->name);
    }
    if (rpc->method) return ERROR_NONE;
    bool is_text = utf8_is_valid(path) && !(path.size && memchr(path.bytes, 0, path.size));
    return rpc_fail(rpc, ERROR_UNIMPLEMENTED, "this server (version %s) has no method '%.*s'",
                    TINE_VERSION, is_text ? (int)path.size : 0, (const char *)path.bytes);
}

static Error set_operation_id(Rpc *rpc, Slice operation_id)
{
    if (operation_id.size > OPERATION_ID_BYTES_MAX) {
        return rpc_fail(rpc, ERROR_TOO_LONG, "operation_id: %zu bytes, the limit is %d",
                        operation_id.size, OPERATION_ID_BYTES_MAX);
    }
    if (!utf8_is_valid(operation_id) ||
        (operation_id.size && memchr(operation_id.bytes, 0, operation_id.size))) {
        return rpc_fail(rpc, ERROR_INVALID_UTF8,
                        "operation_id: not valid UTF-8, or it holds a NUL");
    }
    rpc->operation_id = operation_id;
    return ERROR_NONE;
}

// Takes the same time for each token of the right size, so that its time does not tell a part of
// it.
static Error check_token(const Rpc *rpc, Slice token)
{
    if (rpc->token_wanted.size == 0) return ERROR_NONE;
    if (token.size != rpc->token_wanted.size) return ERROR_UNAUTHENTICATED;
    unsigned difference = 0;
    for (size_t i = 0; i < token.size; i++) {
        difference |= token.bytes[i] ^ rpc->token_wanted.bytes[i];
    }
    return difference ? ERROR_UNAUTHENTICATED : ERROR_NONE;
}

static Error read_envelope(Rpc *rpc)
{
    if (rpc->request.size > REQUEST_BYTES_MAX) {
        return rpc_fail(rpc, ERROR_TOO_LONG, "the request has %zu bytes, the limit is %d",
                        rpc->request.size, REQUEST_BYTES_MAX);
    }
    RequestEnvelope envelope;
    if (!envelope_request_read(rpc->request, &envelope, &rpc->body)) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                        "the bytes are not a tine.v1.Request (rpc.proto)");
    }
    rpc->wants_sync = envelope.sync;
    set_deadline(rpc, envelope.timeout_ms);
    Error error = check_token(rpc, envelope.token);
    if (!error) error = set_method(rpc, envelope.method);
    if (error) return error;
    return set_operation_id(rpc, envelope.operation_id);
}

static size_t decode_budget(const Rpc *rpc)
{
    return DECODE_BUDGET_EXTRA_BYTES + DECODE_BUDGET_FACTOR * rpc->body.size;
}

Error dispatch_decode(Rpc *rpc, size_t decode_budget_bytes)
{
    Error error = read_envelope(rpc);
    if (error) return error;
    bool has_unknown;
    error = field_rules_check(rpc->method->request, rpc->body, &rpc->detail, &has_unknown);
    if (error) return error;

    rpc->arena.budget_bytes = decode_budget_bytes ? decode_budget_bytes : decode_budget(rpc);
    rpc->message = protobuf_c_message_unpack(rpc->method->request, &rpc->arena.allocator,
                                             rpc->body.size, rpc->body.bytes);
    if (!rpc->message) {
        if (rpc->arena.is_exhausted) {
            return rpc_fail(rpc, ERROR_TOO_LONG,
                            "the request takes more than %zu bytes once decoded; send fewer "
                            "fields or a larger request in several",
                            rpc->arena.budget_bytes);
        }
        if (rpc->arena.is_out_of_memory) {
            return rpc_fail(rpc, ERROR_OUT_OF_MEMORY, "no memory to decode a %s of %zu bytes",
                            rpc->method->request->short_name, rpc->body.size);
        }
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "the body cannot be decoded as %s",
                        rpc->method->request->short_name);
    }
    if (has_unknown) field_rules_drop_unknown(rpc->message);
    if (!decode_budget_bytes) rpc->arena.budget_bytes = RUN_BUDGET_BYTES;
    if (!rpc->method->is_write) return ERROR_NONE;
    if (rpc->operation_id.size > 0) {
        rpc->request_hash = hash_pair(slice(rpc->method->path, rpc->method->path_bytes), rpc->body);
    }
    return rpc->method->check(rpc, rpc->message);
}

// Memory that was given back would be faulted in again, page by page, by the next large reply.
static Error reply_empty(Rpc *rpc)
{
    loan_end(&rpc->loan);
    return rpc->keeps_reply ? buffer_empty(&rpc->reply, ENVELOPE_RESPONSE_GAP)
                            : buffer_reset(&rpc->reply, ENVELOPE_RESPONSE_GAP);
}

Error dispatch_run(Rpc *rpc, Txn *txn)
{
    const ProtobufCMessageDescriptor *descriptor = rpc->method->response;
    Error error = reply_empty(rpc);
    if (error) return error;
    ProtobufCMessage *response = arena_alloc(&rpc->arena, descriptor->sizeof_message);
    if (!response) return arena_error(&rpc->arena);
    protobuf_c_message_init(descriptor, response);

    rpc->txn = txn;
    activity = rpc->method->name;
    error = rpc->method->run(rpc, rpc->message, response);
    activity = "";
    rpc->txn = NULL;
    if (error) return error;

    // After what the handler has appended itself: the order of fields is free.
    size_t size = protobuf_c_message_get_packed_size(response);
    uint8_t *bytes;
    error = buffer_reserve(&rpc->reply, size, &bytes);
    if (error) return error;
    encode_before(bytes, bytes + size, response);
    buffer_grow(&rpc->reply, size);
    return ERROR_NONE;
}

static void finish_failed(Rpc *rpc, Error error)
{
    const char *message = rpc->detail.text[0] ? rpc->detail.text : error_text(error);
    ResponseStatus status = {
        .code = (int32_t)error_status(error),
        .message = slice_of(message),
        .reason = slice_of(error_reason(error)),
    };
    Error failed = reply_empty(rpc);
    if (!failed) failed = envelope_response_fail(&rpc->reply, &status);
    if (failed) log_write(LOG_ERROR, "no memory for a reply", NULL);
}

// Each kind of error has its own limit, so that a full disk does not hide a corrupt file.
static void log_failure(const Rpc *rpc, Error error)
{
    static LogLimit limits[ERROR_COUNT];
    uint64_t left_out;
    if (!log_limit_take(&limits[error], clock_monotonic_ns(), &left_out)) return;
    if (left_out > 0) {
        log_write(LOG_ERROR, "calls failed", "error=%s left_out=%" PRIu64, error_name(error),
                  left_out);
    }
    log_write(LOG_ERROR, "call failed", "method=%s error=%s detail=\"%s\"",
              rpc->method ? rpc->method->name : "", error_name(error), rpc->detail.text);
}

// Adds to the cause what the caller can do about it.
static Error advise(Rpc *rpc, Error error)
{
    const char *advice = "see the server's log";
    if (error == ERROR_STORE_FULL) advice = "nothing was stored; free some space and try again";
    if (error == ERROR_OUT_OF_MEMORY) advice = "try again later";
    return rpc_fail(rpc, error, "%s; %s", rpc->detail.text, advice);
}

void dispatch_finish(Rpc *rpc, Error error)
{
    rpc->error = error;
    if (error_is_environment(error)) {
        bool has_cause = rpc->detail.text[0] != '\0';
        if (!has_cause) error = rpc_fail(rpc, error, "%s", error_text(error));
        log_failure(rpc, error);
        if (has_cause) error = advise(rpc, error);
    }
    if (error) {
        finish_failed(rpc, error);
    } else {
        envelope_response_begin(&rpc->reply, loan_reply_bytes(&rpc->loan, &rpc->reply));
    }
}
