// One call and its attempts.
//
// A call whose connection broke is sent again if it cannot run twice: it was not sent, it only
// reads, or it carries an operation_id that the server remembers. A call that the server refused
// with UNAVAILABLE is also sent again, because nothing was done.

#include "invocation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/limits.h"
#include "os/clock.h"
#include "os/random.h"
#include "status.h"
#include "tine_calls.h"
#include "wait.h"
#include "wire/encode.h"
#include "wire/envelope.h"

static void invocation_begin(Invocation *invocation, const Tine *tine);
static bool empty_oneofs_keep(const ProtobufCMessage *request, ProtobufCMessage **out_copy);
static int invocation_try(Invocation *invocation, Tine *tine);
static bool retry_wait(Invocation *invocation);
static Error request_pack(const Invocation *invocation, const Tine *tine, Buffer *out);
static int reply_read(Invocation *invocation);

int invocation_run(Invocation *invocation, Tine *tine)
{
    ProtobufCMessage *copy = NULL;
    if (!empty_oneofs_keep(invocation->request, &copy))
        return status_out_of_memory(invocation->status);
    if (copy) invocation->request = copy;
    invocation_begin(invocation, tine);
    atomic_fetch_add_explicit(&tine->call_count, 1, memory_order_relaxed);
    int code;
    do {
        code = invocation_try(invocation, tine);
    } while (code && invocation->may_retry && retry_wait(invocation));
    free(copy);
    return code;
}

// protobuf-c leaves out a string of a oneof that points at protobuf-c's own "": an empty id that
// was copied from a decoded reply would silently count as absent. A copy of the message points at
// another "". Returns false if there is no memory.
static bool empty_oneofs_keep(const ProtobufCMessage *request, ProtobufCMessage **out_copy)
{
    static char empty[] = "";
    const ProtobufCMessageDescriptor *descriptor = request->descriptor;
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        if (field->type != PROTOBUF_C_TYPE_STRING) continue;
        if (!(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)) continue;
        const uint8_t *base = (const uint8_t *)request;
        if (*(const uint32_t *)(const void *)(base + field->quantifier_offset) != field->id)
            continue;
        const char *text = *(char *const *)(const void *)(base + field->offset);
        if (text && *text) continue;
        if (!*out_copy) {
            *out_copy = malloc(descriptor->sizeof_message);
            if (!*out_copy) return false;
            memcpy(*out_copy, request, descriptor->sizeof_message);
        }
        *(char **)(void *)((uint8_t *)*out_copy + field->offset) = empty;
    }
    return true;
}

static void operation_id_make(char out[2 * OPERATION_ID_RANDOM_BYTES + 1])
{
    // Asks the kernel each time: a process and its fork must not make the same id.
    Random random;
    random_seed_system(&random);
    for (size_t i = 0; i < OPERATION_ID_RANDOM_BYTES / 8; i++) {
        snprintf(out + 16 * i, 17, "%016llx", (unsigned long long)random_next(&random));
    }
}

static void invocation_begin(Invocation *invocation, const Tine *tine)
{
    const TineCallOptions *options = invocation->options;
    int64_t now_ns = clock_monotonic_ns();
    unsigned traits = tine_method_traits(invocation->method);
    invocation->is_read = traits & TINE_TRAIT_READS;
    invocation->operation_id = options->operation_id ? options->operation_id : "";
    bool makes_id = tine->channel->is_remote && !tine->makes_no_ids;
    if (!options->operation_id && !invocation->is_read && makes_id) {
        operation_id_make(invocation->made_id);
        invocation->operation_id = invocation->made_id;
    }
    // A broadcast stores nothing, so the server does not remember its operation_id.
    bool is_broadcast = traits & TINE_TRAIT_BROADCASTS;
    invocation->is_repeatable = invocation->is_read || (*invocation->operation_id && !is_broadcast);
    invocation->deadline_ns = INT64_MAX;
    if (options->timeout_ms > 0 && options->timeout_ms < TIME_MS_MAX / 1000) {
        invocation->deadline_ns = now_ns + options->timeout_ms * 1000000;
    }
    if (!options->no_retry && tine->channel->is_remote) {
        bool is_bounded = invocation->deadline_ns != INT64_MAX || invocation->is_patient;
        invocation->retry_until_ns =
            is_bounded ? invocation->deadline_ns : now_ns + tine->retry_ms * 1000000;
    }
}

static int invocation_try(Invocation *invocation, Tine *tine)
{
    invocation->may_retry = false;
    Buffer sent = {.bytes = NULL};
    Error error = request_pack(invocation, tine, &sent);
    int code = error ? status_set(invocation->status, (int)error_status(error), error_reason(error),
                                  error == ERROR_TOO_LONG
                                      ? "the request is longer than 16 MiB; send it in several"
                                      : "the client is out of memory")
                     : STATUS_OK;
    if (!code) {
        ChannelCall call = {
            .request = buffer_slice(&sent),
            .is_read = invocation->is_read,
            .lender = invocation->lender,
            .deadline_ns = invocation->deadline_ns,
            .connect_until_ns = invocation->retry_until_ns,
            .waits_at_first = tine->wait_for_server || invocation->is_patient,
            .response = invocation->received,
        };
        if (call.deadline_ns != INT64_MAX) call.deadline_ns += REPLY_GRACE_MS * INT64_C(1000000);
        code = tine->channel->call(tine->channel, &call, invocation->status);
        invocation->may_retry = call.is_broken && (!call.was_sent || invocation->is_repeatable);
    }
    if (!code) code = reply_read(invocation);
    buffer_free(&sent);
    return code;
}

// Waits before the next attempt. Returns false if it is too late for one. The second attempt
// follows at once, because a server that was restarted is there again; later ones wait, because the
// server is in trouble.
static bool retry_wait(Invocation *invocation)
{
    int64_t wait_ns = backoff_ns(BACKOFF_MS_MIN, invocation->failures++);
    if (clock_monotonic_ns() + wait_ns >= invocation->retry_until_ns) return false;
    struct timespec left = {.tv_sec = wait_ns / 1000000000, .tv_nsec = wait_ns % 1000000000};
    while (wait_ns > 0 && nanosleep(&left, &left) != 0)
        continue;
    return true;
}

// Returns what is left of the timeout, at least a millisecond; 0 if there is no timeout.
static int64_t timeout_left_ms(const Invocation *invocation)
{
    if (invocation->deadline_ns == INT64_MAX) return 0;
    int64_t left_ns = invocation->deadline_ns - clock_monotonic_ns();
    return left_ns > 1000000 ? (left_ns + 999999) / 1000000 : 1;
}

// Packs the Request. The body comes last and is encoded straight into it.
static Error request_pack(const Invocation *invocation, const Tine *tine, Buffer *out)
{
    RequestEnvelope envelope = {
        .method = slice_of(invocation->method),
        .operation_id = slice_of(invocation->operation_id),
        .timeout_ms = timeout_left_ms(invocation),
        .traceparent = slice_of(invocation->options->traceparent),
        .token = slice_of(tine->token),
        .sync = invocation->options->sync,
    };
    size_t size = protobuf_c_message_get_packed_size(invocation->request);
    Error error = buffer_reset(out, 0);
    if (!error) error = envelope_request_write(out, &envelope, size);
    if (error) return error;
    // A daemon closes the connection on a longer message; an engine in this process returns an
    // error.
    if (tine->channel->is_remote && buffer_size(out) + size > REQUEST_BYTES_MAX) {
        return ERROR_TOO_LONG;
    }
    uint8_t *bytes;
    error = buffer_reserve(out, size, &bytes);
    if (error) return error;
    encode_before(bytes, bytes + size, invocation->request);
    buffer_grow(out, size);
    return ERROR_NONE;
}

static int reply_read(Invocation *invocation)
{
    int code = status_of_response(buffer_slice(invocation->received), invocation->status,
                                  &invocation->body);
    if (code) {
        invocation->may_retry = code == STATUS_UNAVAILABLE && invocation->retry_until_ns > 0;
        if (invocation->failures == 0) invocation->failures = 1; // the server is not ready: wait
    }
    return code;
}
