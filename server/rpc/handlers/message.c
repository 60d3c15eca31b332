// Handlers that append, read and remove one message.

#include "rpc/handlers/handler.h"
#include "rpc/message_check.h"
#include "store/message_append.h"
#include "store/message_remove.h"

typedef struct AppendCall {
    MessageAppend append;
    MessageDraft draft;
} AppendCall;

static Error prepare(Rpc *rpc, AppendCall **out)
{
    AppendCall *prepared = arena_new(&rpc->arena, AppendCall);
    if (!prepared) return arena_error(&rpc->arena);
    prepared->append.draft = &prepared->draft;
    rpc->prepared = prepared;
    *out = prepared;
    return ERROR_NONE;
}

Error check_append_message(Rpc *rpc, AppendMessageRequest *request)
{
    AppendCall *prepared = NULL;
    Error error = prepare(rpc, &prepared);
    if (error) return error;
    if (!request->message) return rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "message is required");
    MessageAppend *append = &prepared->append;
    append->propagate_usage = request->propagate_usage;
    append->has_parent = request->parent_case == APPEND_MESSAGE_REQUEST__PARENT_PARENT_ID;
    append->has_expected_head =
        request->expected_head_case == APPEND_MESSAGE_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_ID;
    error = rpc_id(rpc, "session_id", request->session_id, &append->session);
    if (!error && append->has_parent) {
        error = rpc_optional_id(rpc, "parent_id", request->parent_id, &append->parent);
    }
    if (!error && append->has_expected_head) {
        error = rpc_optional_id(rpc, "expected_head_id", request->expected_head_id,
                                &append->expected_head);
    }
    if (!error) error = message_check(rpc, "message", request->message);
    if (error) return error;
    return message_draft_make(&rpc->arena, request->message, &rpc->detail, &prepared->draft);
}

// AppendMessage: appends one entry and returns its receipt.
Error handle_append_message(Rpc *rpc, const AppendMessageRequest *request,
                            AppendMessageResponse *response)
{
    (void)request; // the draft contains it
    const AppendCall *prepared = rpc->prepared;
    Receipt *receipt = arena_new(&rpc->arena, Receipt);
    if (!receipt) return arena_error(&rpc->arena);
    tine__v1__receipt__init(receipt);
    response->receipt = receipt;
    Ulid id;
    return message_append(rpc->txn, &prepared->append, receipt, &id);
}

Error check_add_compaction_marker(Rpc *rpc, AddCompactionMarkerRequest *request)
{
    AppendCall *prepared = NULL;
    Error error = prepare(rpc, &prepared);
    if (error) return error;
    if (!request->marker) return rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "marker is required");
    MessageAppend *append = &prepared->append;
    append->has_expected_head = request->expected_head_case ==
                                ADD_COMPACTION_MARKER_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_ID;
    error = rpc_id(rpc, "session_id", request->session_id, &append->session);
    if (!error && append->has_expected_head) {
        error = rpc_optional_id(rpc, "expected_head_id", request->expected_head_id,
                                &append->expected_head);
    }
    if (!error) error = marker_check(rpc, "marker", request->marker, /* is_cut_required= */ true);
    if (error) return error;
    NewMessage *message = arena_new(&rpc->arena, NewMessage);
    if (!message) return arena_error(&rpc->arena);
    tine__v1__new_message__init(message);
    message->kind = MESSAGE_KIND_COMPACTION;
    message->marker = request->marker;
    error = message_check(rpc, "message", message);
    if (error) return error;
    return message_draft_make(&rpc->arena, message, &rpc->detail, &prepared->draft);
}

// AddCompactionMarker: appends an entry with the marker and returns it.
Error handle_add_compaction_marker(Rpc *rpc, const AddCompactionMarkerRequest *request,
                                   AddCompactionMarkerResponse *response)
{
    (void)request;
    (void)response;
    const AppendCall *prepared = rpc->prepared;
    Receipt receipt = RECEIPT__INIT;
    Ulid id;
    Error error = message_append(rpc->txn, &prepared->append, &receipt, &id);
    if (error) return error;
    return message_append_to(rpc->txn, prepared->append.session, id, reply_record_field(rpc),
                             &rpc->reply);
}

static Error message_of_request(Rpc *rpc, const GetMessageRequest *request, Ulid *out_session,
                                Ulid *out_message)
{
    if (request->by_case == GET_MESSAGE_REQUEST__BY_MESSAGE_ID) {
        Error error = rpc_id(rpc, "message_id", request->message_id, out_message);
        return error ? error : message_owner(rpc->txn, *out_message, out_session);
    }
    const SessionExternal *by = request->session_external;
    if (request->by_case != GET_MESSAGE_REQUEST__BY_SESSION_EXTERNAL || !by->external) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                        "message_id, or session_external with session_id and external, is "
                        "required");
    }
    Error error = read_session(rpc, by->session_id, out_session);
    if (!error) error = message_by_external(rpc->txn, *out_session, by->external, out_message);
    if (error || !ulid_is_zero(*out_message)) return error;
    return rpc_fail(rpc, ERROR_MESSAGE_NOT_FOUND,
                    "session %s has no message with external '%s' of '%s'", by->session_id,
                    by->external->id, by->external->source);
}

// GetMessage: finds a message, even a deleted one, by ID or by session and external ID.
Error handle_get_message(Rpc *rpc, const GetMessageRequest *request, GetMessageResponse *response)
{
    (void)response;
    Ulid session, message;
    Error error = message_of_request(rpc, request, &session, &message);
    if (error) return error;
    return message_append_to(rpc->txn, session, message, reply_record_field(rpc), &rpc->reply);
}

static Error check_message_id(Rpc *rpc, const char *message_id)
{
    Ulid *message = arena_new(&rpc->arena, Ulid);
    if (!message) return arena_error(&rpc->arena);
    rpc->prepared = message;
    return rpc_id(rpc, "message_id", message_id, message);
}

static Error remove_message(Rpc *rpc, Receipt **out,
                            Error (*remove)(Txn *txn, Ulid message, Receipt *out_receipt))
{
    Receipt *receipt = arena_new(&rpc->arena, Receipt);
    if (!receipt) return arena_error(&rpc->arena);
    tine__v1__receipt__init(receipt);
    *out = receipt;
    return remove(rpc->txn, *(const Ulid *)rpc->prepared, receipt);
}

Error check_delete_message(Rpc *rpc, DeleteMessageRequest *request)
{
    return check_message_id(rpc, request->message_id);
}

// DeleteMessage: removes a message from histories; GetMessage still returns it.
Error handle_delete_message(Rpc *rpc, const DeleteMessageRequest *request,
                            DeleteMessageResponse *response)
{
    (void)request;
    return remove_message(rpc, &response->receipt, message_delete);
}

Error check_purge_message(Rpc *rpc, PurgeMessageRequest *request)
{
    return check_message_id(rpc, request->message_id);
}

// PurgeMessage: destroys the content of a message; its place remains.
Error handle_purge_message(Rpc *rpc, const PurgeMessageRequest *request,
                           PurgeMessageResponse *response)
{
    (void)request;
    return remove_message(rpc, &response->receipt, message_purge);
}
