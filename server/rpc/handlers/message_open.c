// Handlers that append parts to open messages, and seal them.

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

static Error new_receipt(Rpc *rpc, Receipt **out)
{
    Receipt *receipt = arena_new(&rpc->arena, Receipt);
    if (!receipt) return arena_error(&rpc->arena);
    tine__v1__receipt__init(receipt);
    *out = receipt;
    return ERROR_NONE;
}

Error check_append_part(Rpc *rpc, AppendPartRequest *request)
{
    PartCall *prepared = arena_new(&rpc->arena, PartCall);
    if (!prepared) return arena_error(&rpc->arena);
    rpc->prepared = prepared;
    if (!request->part) return rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "part is required");
    Error error = rpc_id(rpc, "message_id", request->message_id, &prepared->message);
    if (!error) error = part_check(rpc, "part", request->part);
    if (error) return error;
    return part_draft_make(&rpc->arena, request->part, &prepared->draft);
}

// AppendPart: appends a new part, or replaces a known one.
Error handle_append_part(Rpc *rpc, const AppendPartRequest *request, AppendPartResponse *response)
{
    (void)request; // the draft contains it
    const PartCall *prepared = rpc->prepared;
    Error error = new_receipt(rpc, &response->receipt);
    if (error) return error;
    return message_append_part(rpc->txn, prepared->message, &prepared->draft, response->receipt);
}

Error check_seal_message(Rpc *rpc, SealMessageRequest *request)
{
    SealCall *prepared = arena_new(&rpc->arena, SealCall);
    if (!prepared) return arena_error(&rpc->arena);
    rpc->prepared = prepared;
    if (request->status == MESSAGE_STATUS_UNSPECIFIED) request->status = MESSAGE_STATUS_COMPLETE;
    if (request->status == MESSAGE_STATUS_OPEN) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
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
    return rpc_id(rpc, "message_id", request->message_id, &prepared->message);
}

// SealMessage: ends a message, which accepts no more parts.
Error handle_seal_message(Rpc *rpc, const SealMessageRequest *request,
                          SealMessageResponse *response)
{
    (void)request;
    const SealCall *prepared = rpc->prepared;
    Error error = new_receipt(rpc, &response->receipt);
    if (error) return error;
    return message_seal(rpc->txn, prepared->message, &prepared->seal, response->receipt);
}
