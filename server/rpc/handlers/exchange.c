// Handler of AppendExchange: several messages and the call that produced them.

#include "store/exchange.h"

#include <stdio.h>

#include "rpc/call_check.h"
#include "rpc/handlers/handler.h"
#include "rpc/message_check.h"
#include "store/message_append.h"
#include "store/original.h"

static Error check_expected_head(Rpc *rpc, const AppendExchangeRequest *request, Exchange *exchange)
{
    const External *external = request->expected_head_external;
    switch (request->expected_head_case) {
    case APPEND_EXCHANGE_REQUEST__EXPECTED_HEAD__NOT_SET: return ERROR_NONE;
    case APPEND_EXCHANGE_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_ID:
        exchange->has_expected_head = true;
        return rpc_optional_id(rpc, "expected_head_id", request->expected_head_id,
                               &exchange->expected_head);
    case APPEND_EXCHANGE_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_EXTERNAL:
        exchange->has_expected_head = true;
        exchange->expected_external = external;
        return rpc_external(rpc, "", "expected_head_external", external);
    }
    return ERROR_INVALID_ARGUMENT;
}

static Error check_places(Rpc *rpc, const AppendExchangeRequest *request, Exchange *exchange)
{
    exchange->has_parent = request->parent_case == APPEND_EXCHANGE_REQUEST__PARENT_PARENT_ID;
    if (exchange->has_parent && exchange->is_replay) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                        "parent_id: not with replay, which goes on where the history ends");
    }
    Error error = ERROR_NONE;
    if (exchange->has_parent) {
        error = rpc_optional_id(rpc, "parent_id", request->parent_id, &exchange->parent);
    }
    return error ? error : check_expected_head(rpc, request, exchange);
}

static Error check_messages(Rpc *rpc, const AppendExchangeRequest *request)
{
    size_t part_count = 0;
    for (size_t i = 0; i < request->n_messages; i++) {
        NewMessage *message = request->messages[i];
        char name[32];
        snprintf(name, sizeof(name), "messages[%zu]", i);
        Error error = message_check(rpc, name, message);
        if (error) return error;
        if (request->replay && message->kind != MESSAGE_KIND_CONVERSATION &&
            message->kind != MESSAGE_KIND_INJECTED) {
            return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                            "%s.kind: a replay holds CONVERSATION and INJECTED alone", name);
        }
        part_count += message->n_parts;
        if (part_count > EXCHANGE_PART_COUNT_MAX) {
            return rpc_fail(rpc, ERROR_TOO_LONG, "messages: more than %d parts",
                            EXCHANGE_PART_COUNT_MAX);
        }
    }
    return ERROR_NONE;
}

// The assistant's messages at the end of the request were produced by the call.
static void await_call(const AppendExchangeRequest *request)
{
    if (!request->call) return;
    for (size_t i = request->n_messages; i > 0; i--) {
        NewMessage *message = request->messages[i - 1];
        if (message->role != ROLE_ASSISTANT) return;
        if (!*message->call_id) message_draft_await_call(message);
    }
}

static Error make_drafts(Rpc *rpc, const AppendExchangeRequest *request, Exchange *exchange)
{
    MessageDraft *drafts = arena_array(&rpc->arena, MessageDraft, request->n_messages);
    if (!drafts) return arena_error(&rpc->arena);
    exchange->drafts = drafts;
    exchange->count = request->n_messages;
    for (size_t i = 0; i < request->n_messages; i++) {
        Error error =
            message_draft_make(&rpc->arena, request->messages[i], &rpc->detail, &drafts[i]);
        if (error) return error;
    }
    return ERROR_NONE;
}

static Error check_originals(Rpc *rpc, const AppendExchangeRequest *request)
{
    if (request->n_originals == 0) return ERROR_NONE;
    if (request->replay || request->n_originals != request->n_messages) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                        "originals: as many as messages, or none; none with replay");
    }
    for (size_t i = 0; i < request->n_originals; i++) {
        size_t size = request->originals[i]->content.len;
        if (size <= ORIGINAL_BYTES_MAX) continue;
        return rpc_fail(rpc, ERROR_TOO_LONG, "originals[%zu].content: %zu bytes, the limit is %d",
                        i, size, ORIGINAL_BYTES_MAX);
    }
    return ERROR_NONE;
}

Error check_append_exchange(Rpc *rpc, AppendExchangeRequest *request)
{
    Exchange *exchange = arena_new(&rpc->arena, Exchange);
    if (!exchange) return arena_error(&rpc->arena);
    rpc->prepared = exchange;
    exchange->is_replay = request->replay;
    exchange->propagate_usage = request->propagate_usage;
    exchange->call = request->call;
    Error error = rpc_id(rpc, "session_id", request->session_id, &exchange->session);
    if (!error) error = check_places(rpc, request, exchange);
    if (error) return error;
    if (request->n_messages == 0) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                        "messages are required; RecordCall records a call alone");
    }
    error = check_messages(rpc, request);
    if (!error) error = check_originals(rpc, request);
    if (!error && request->call) error = new_call_check(rpc, "call", request->call);
    if (error) return error;
    await_call(request);
    return make_drafts(rpc, request, exchange);
}

// AppendExchange: appends messages and records their call, all or nothing.
Error handle_append_exchange(Rpc *rpc, const AppendExchangeRequest *request,
                             AppendExchangeResponse *response)
{
    const Exchange *exchange = rpc->prepared; // its drafts contain the messages
    Error error = exchange_append(rpc->txn, exchange, response);
    for (size_t i = 0; i < request->n_originals && !error; i++) {
        const ProtobufCBinaryData *bytes = &request->originals[i]->content;
        Slice content = {bytes->data, bytes->len};
        Ulid message;
        if (content.size == 0) continue;
        error = stored_id(rpc->txn, response->receipts[i]->id, &message);
        if (!error) error = original_put_new(rpc->txn, exchange->session, message, content);
    }
    return error;
}
