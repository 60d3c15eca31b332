// Handler: several messages and the call that produced them.

#include "store/exchange.h"

#include <stdio.h>

#include "rpc/call_check.h"
#include "rpc/handlers/handler.h"
#include "rpc/message_check.h"
#include "store/message_append.h"
#include "store/original.h"

static Error check_expected_head(Call *call, const AppendExchangeRequest *request,
                                 Exchange *exchange)
{
    const External *external = request->expected_head_external;
    switch (request->expected_head_case) {
    case APPEND_EXCHANGE_REQUEST__EXPECTED_HEAD__NOT_SET: return ERROR_NONE;
    case APPEND_EXCHANGE_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_ID:
        exchange->has_expected_head = true;
        return call_optional_id(call, "expected_head_id", request->expected_head_id,
                                &exchange->expected_head);
    case APPEND_EXCHANGE_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_EXTERNAL:
        exchange->has_expected_head = true;
        exchange->expected_external = external;
        return call_external(call, "", "expected_head_external", external);
    }
    return ERROR_INVALID_ARGUMENT;
}

static Error check_places(Call *call, const AppendExchangeRequest *request, Exchange *exchange)
{
    exchange->has_parent = request->parent_case == APPEND_EXCHANGE_REQUEST__PARENT_PARENT_ID;
    if (exchange->has_parent && exchange->is_replay) {
        return call_fail(call, ERROR_INVALID_ARGUMENT,
                         "parent_id: not with replay, which goes on where the history ends");
    }
    Error error = ERROR_NONE;
    if (exchange->has_parent) {
        error = call_optional_id(call, "parent_id", request->parent_id, &exchange->parent);
    }
    return error ? error : check_expected_head(call, request, exchange);
}

static Error check_messages(Call *call, const AppendExchangeRequest *request)
{
    size_t part_count = 0;
    for (size_t i = 0; i < request->n_messages; i++) {
        NewMessage *message = request->messages[i];
        char name[32];
        snprintf(name, sizeof(name), "messages[%zu]", i);
        Error error = message_check(call, name, message);
        if (error) return error;
        if (request->replay && message->kind != MESSAGE_KIND_CONVERSATION &&
            message->kind != MESSAGE_KIND_INJECTED) {
            return call_fail(call, ERROR_INVALID_ARGUMENT,
                             "%s.kind: a replay holds CONVERSATION and INJECTED alone", name);
        }
        part_count += message->n_parts;
        if (part_count > EXCHANGE_PART_COUNT_MAX) {
            return call_fail(call, ERROR_TOO_LONG, "messages: more than %d parts",
                             EXCHANGE_PART_COUNT_MAX);
        }
    }
    return ERROR_NONE;
}

// The answers at the request's end are the call's.
static void await_call(const AppendExchangeRequest *request)
{
    if (!request->call) return;
    for (size_t i = request->n_messages; i > 0; i--) {
        NewMessage *message = request->messages[i - 1];
        if (message->role != ROLE_ASSISTANT) return;
        if (!*message->call_id) message_draft_await_call(message);
    }
}

static Error make_drafts(Call *call, const AppendExchangeRequest *request, Exchange *exchange)
{
    MessageDraft *drafts = arena_array(&call->arena, MessageDraft, request->n_messages);
    if (!drafts) return arena_error(&call->arena);
    exchange->drafts = drafts;
    exchange->count = request->n_messages;
    for (size_t i = 0; i < request->n_messages; i++) {
        Error error =
            message_draft_make(&call->arena, request->messages[i], &call->detail, &drafts[i]);
        if (error) return error;
    }
    return ERROR_NONE;
}

static Error check_originals(Call *call, const AppendExchangeRequest *request)
{
    if (request->n_originals == 0) return ERROR_NONE;
    if (request->replay || request->n_originals != request->n_messages) {
        return call_fail(call, ERROR_INVALID_ARGUMENT,
                         "originals: as many as messages, or none; none with replay");
    }
    for (size_t i = 0; i < request->n_originals; i++) {
        size_t size = request->originals[i]->content.len;
        if (size <= ORIGINAL_BYTES_MAX) continue;
        return call_fail(call, ERROR_TOO_LONG, "originals[%zu].content: %zu bytes, the limit is %d",
                         i, size, ORIGINAL_BYTES_MAX);
    }
    return ERROR_NONE;
}

Error check_append_exchange(Call *call, AppendExchangeRequest *request)
{
    Exchange *exchange = arena_new(&call->arena, Exchange);
    if (!exchange) return arena_error(&call->arena);
    call->prepared = exchange;
    exchange->is_replay = request->replay;
    exchange->propagate_usage = request->propagate_usage;
    exchange->call = request->call;
    Error error = call_id(call, "session_id", request->session_id, &exchange->session);
    if (!error) error = check_places(call, request, exchange);
    if (error) return error;
    if (request->n_messages == 0) {
        return call_fail(call, ERROR_INVALID_ARGUMENT,
                         "messages are required; RecordCall records a call alone");
    }
    error = check_messages(call, request);
    if (!error) error = check_originals(call, request);
    if (!error && request->call) error = new_call_check(call, "call", request->call);
    if (error) return error;
    await_call(request);
    return make_drafts(call, request, exchange);
}

// AppendExchange: appends messages and records their call, all or nothing.
Error handle_append_exchange(Call *call, const AppendExchangeRequest *request,
                             AppendExchangeResponse *response)
{
    const Exchange *exchange = call->prepared; // its drafts hold what is left of the messages
    Error error = exchange_append(call->txn, exchange, response);
    for (size_t i = 0; i < request->n_originals && !error; i++) {
        const ProtobufCBinaryData *bytes = &request->originals[i]->content;
        Slice content = {bytes->data, bytes->len};
        Ulid message;
        if (content.size == 0) continue;
        error = stored_id(call->txn, response->receipts[i]->id, &message);
        if (!error) error = original_put_new(call->txn, exchange->session, message, content);
    }
    return error;
}
