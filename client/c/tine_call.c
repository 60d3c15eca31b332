// Calls: tine_call and its variants, tine_ready, and the statistics of a client.
//
// Replies are received into memory that is used again. Otherwise each page of a history would be
// written to new pages, which the kernel must clear first.

#include "tine.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/limits.h"
#include "channel_direct.h"
#include "fields.h"
#include "invocation.h"
#include "status.h"
#include "tine_calls.h"
#include "unpack.h"
#include "wire/wire.h"

enum { LOOK_MS = 1000 }; // tine_ready with a timeout of 0 waits so long for the answer

static const TineCallOptions DEFAULTS = {.operation_id = NULL};

// Returns one of the client's buffers, or `own` if all are in use.
static Buffer *reply_take(Tine *tine, Buffer *own)
{
    for (size_t i = 0; i < REPLIES_KEPT; i++) {
        if (!atomic_exchange_explicit(&tine->replies[i].is_taken, true, memory_order_acquire)) {
            return &tine->replies[i].buffer;
        }
    }
    return own;
}

static void reply_give(Tine *tine, Buffer *reply, Buffer *own)
{
    if (reply == own || reply->capacity > BUFFER_KEEP_BYTES_MAX) buffer_free(reply);
    for (size_t i = 0; i < REPLIES_KEPT; i++) {
        if (reply != &tine->replies[i].buffer) continue;
        atomic_store_explicit(&tine->replies[i].is_taken, false, memory_order_release);
    }
}

int tine_call(Tine *tine, const TineCallOptions *options, const char *method,
              const ProtobufCMessage *request, const ProtobufCMessageDescriptor *response_type,
              ProtobufCMessage **out_response)
{
    Buffer own = {.bytes = NULL};
    Invocation invocation = {
        .options = options ? options : &DEFAULTS,
        .method = method,
        .request = request,
        .status = options ? options->out_status : NULL,
        .received = reply_take(tine, &own),
    };
    int code = invocation_run(&invocation, tine);
    if (!code) {
        ProtobufCMessage *response =
            unpack(response_type, invocation.options->allocator, invocation.body);
        if (response) {
            *out_response = response;
        } else {
            code = status_undecodable(invocation.status);
        }
    }
    reply_give(tine, invocation.received, &own);
    return code;
}

int tine_call_bytes(Tine *tine, const TineCallOptions *options, const char *method,
                    const ProtobufCMessage *request, TineBytes *reply)
{
    Buffer received = {.bytes = reply->memory, .capacity = reply->capacity};
    Invocation invocation = {
        .options = options ? options : &DEFAULTS,
        .method = method,
        .request = request,
        .status = options ? options->out_status : NULL,
        .received = &received,
    };
    int code = invocation_run(&invocation, tine);
    *reply = (TineBytes){.memory = received.bytes, .capacity = received.capacity};
    if (code) return code;
    reply->bytes = invocation.body.bytes;
    reply->size = invocation.body.size;
    return code;
}

int tine_ready(Tine *tine, int64_t timeout_ms, TineStatus *out_status)
{
    Tine__V1__HealthRequest request = TINE__V1__HEALTH_REQUEST__INIT;
    TineCallOptions options = {
        .timeout_ms = timeout_ms > 0 ? timeout_ms : 0,
        .no_retry = timeout_ms == 0,
        .out_status = out_status,
    };
    if (timeout_ms == 0) options.timeout_ms = LOOK_MS;
    Buffer received = {.bytes = NULL};
    Invocation invocation = {
        .options = &options,
        .method = TINE_METHOD_HEALTH,
        .request = &request.base,
        .is_patient = timeout_ms != 0,
        .status = out_status,
        .received = &received,
    };
    int code = invocation_run(&invocation, tine);
    buffer_free(&received);
    return code;
}

void tine_bytes_free(TineBytes *bytes)
{
    free(bytes->memory);
    *bytes = (TineBytes){.bytes = NULL};
}

// Lends the messages of a reply that came by a call, and reads its cursor. A direct read has lent
// its messages before and left only the cursor.
static int page_lend(Invocation *invocation, bool *is_enough,
                     char out_next_cursor[TINE_CURSOR_BYTES])
{
    Slice rest = invocation->body, cursor = {NULL, 0};
    WireField field;
    while (wire_next(&rest, &field)) {
        if (field.type != WIRE_BYTES) continue;
        if (field.number == FIELD_MESSAGES_FOR_SESSION_RESPONSE_NEXT_CURSOR) cursor = field.bytes;
        if (field.number != FIELD_MESSAGES_FOR_SESSION_RESPONSE_MESSAGES || *is_enough) continue;
        TinePiece piece = {field.bytes.bytes, field.bytes.size};
        TineLent lent = {&piece, 1, piece.size};
        *is_enough = !invocation->lender->read(invocation->lender->context, &lent);
    }
    if (rest.size > 0 || cursor.size >= TINE_CURSOR_BYTES)
        return status_undecodable(invocation->status);
    if (*is_enough) cursor.size = 0;
    if (!out_next_cursor) return STATUS_OK;
    if (cursor.size > 0) memcpy(out_next_cursor, cursor.bytes, cursor.size);
    out_next_cursor[cursor.size] = '\0';
    return STATUS_OK;
}

int tine_read_messages(Tine *tine, const TineCallOptions *options,
                       const Tine__V1__MessagesForSessionRequest *request, TineMessageReader read,
                       void *context, char out_next_cursor[TINE_CURSOR_BYTES])
{
    Buffer own = {.bytes = NULL};
    bool is_enough = false;
    Lender lender = {read, context, &is_enough};
    Invocation invocation = {
        .options = options ? options : &DEFAULTS,
        .method = TINE_METHOD_MESSAGES_FOR_SESSION,
        .request = &request->base,
        .lender = &lender,
        .status = options ? options->out_status : NULL,
        .received = reply_take(tine, &own),
    };
    int code = invocation_run(&invocation, tine);
    if (!code) code = page_lend(&invocation, &is_enough, out_next_cursor);
    reply_give(tine, invocation.received, &own);
    return code;
}

const char *tine_fallback_name(TineFallback fallback)
{
    static const char *const NAMES[] = {
        "ASKS_SERVER", "NO_SERVER", "NOT_OFFERED", "OTHER_USER", "OTHER_NAMESPACE", "OTHER_FORMAT",
        "OPEN_HERE",   "FORKED",    "REPLACED",    "MAP_GROWN",  "READERS_FULL",    "STORE_ERROR",
    };
    _Static_assert(sizeof(NAMES) / sizeof(*NAMES) == TINE_FALLBACK_COUNT, "one name each");
    return fallback < TINE_FALLBACK_COUNT ? NAMES[fallback] : "UNKNOWN";
}

void tine_client_stats(Tine *tine, TineClientStats *out_stats)
{
    *out_stats = (TineClientStats){.is_direct = false};
    uint64_t all = atomic_load_explicit(&tine->call_count, memory_order_relaxed);
    if (tine->reads_directly) channel_direct_stats(tine->channel, out_stats);
    out_stats->calls = all > out_stats->direct_reads ? all - out_stats->direct_reads : 0;
}
