// Handlers: parts of open messages, and their end.

#include "store/message_open.h"

#include "rpc/handlers/handler.h"
#include "rpc/message_check.h"

typedef struct PartCall {
    Ulid message;
    PartDraft draft;
} PartCall;

typedef struct SealCall {
    Ulid message;
    MessageSeal seal;
} SealCall;

static Error new_receipt(Call *call, Receipt **out)
{
    Receipt *receipt = arena_new(&call->arena, Receipt);
    if (!receipt) return arena_error(&call->arena);
    tine__v1__receipt__init(receipt);
    *out = receipt;
    return ERROR_NONE;
}

Error check_append_part(Call *call, AppendPartRequest *request)
{
    PartCall *prepared = arena_new(&call->arena, PartCall);
    if (!prepared) return arena_error(&call->arena);
    call->prepared = prepared;
    if (!request->part) return call_fail(call, ERROR_INVALID_ARGUMENT, "part is required");
    Error error = call_id(call, "message_id", request->message_id, &prepared->message);
    if (!error) error = part_check(call, "part", request->part);
    if (error) return error;
    return part_draft_make(&call->arena, request->part, &prepared->draft);
}

// AppendPart: a new part behind the others, a known one in its place.
Error handle_append_part(Call *call, const AppendPartRequest *request, AppendPartResponse *response)
{
    (void)request; // the draft holds what is left of it
    const PartCall *prepared = call->prepared;
    Error error = new_receipt(call, &response->receipt);
    if (error) return error;
    return message_append_part(call->txn, prepared->message, &prepared->draft, response->receipt);
}

Error check_seal_message(Call *call, SealMessageRequest *request)
{
    SealCall *prepared = arena_new(&call->arena, SealCall);
    if (!prepared) return arena_error(&call->arena);
    call->prepared = prepared;
    if (request->status == MESSAGE_STATUS_UNSPECIFIED) request->status = MESSAGE_STATUS_COMPLETE;
    if (request->status == MESSAGE_STATUS_OPEN) {
        return call_fail(call, ERROR_INVALID_ARGUMENT,
                         "status: COMPLETE, INTERRUPTED or FAILED; OPEN is no end");
    }
    prepared->seal = (MessageSeal){
        .status = request->status,
        .completed_at = request->completed_at,
        .duration_ms = request->duration_ms,
        .usage = request->usage,
        .finish_reason = request->finish_reason,
        .error = request->error,
        .propagate_usage = request->propagate_usage,
    };
    return call_id(call, "message_id", request->message_id, &prepared->message);
}

// SealMessage: the message takes no more parts.
Error handle_seal_message(Call *call, const SealMessageRequest *request,
                          SealMessageResponse *response)
{
    (void)request;
    const SealCall *prepared = call->prepared;
    Error error = new_receipt(call, &response->receipt);
    if (error) return error;
    return message_seal(call->txn, prepared->message, &prepared->seal, response->receipt);
}
