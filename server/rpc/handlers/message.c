// Handlers: appending, reading and removing one message.

#include "rpc/handlers/handler.h"
#include "rpc/message_check.h"
#include "store/message_append.h"
#include "store/message_remove.h"

typedef struct AppendCall {
    MessageAppend append;
    MessageDraft draft;
} AppendCall;

static Error prepare(Call *call, AppendCall **out)
{
    AppendCall *prepared = arena_new(&call->arena, AppendCall);
    if (!prepared) return arena_error(&call->arena);
    prepared->append.draft = &prepared->draft;
    call->prepared = prepared;
    *out = prepared;
    return ERROR_NONE;
}

Error check_append_message(Call *call, AppendMessageRequest *request)
{
    AppendCall *prepared = NULL;
    Error error = prepare(call, &prepared);
    if (error) return error;
    if (!request->message) return call_fail(call, ERROR_INVALID_ARGUMENT, "message is required");
    MessageAppend *append = &prepared->append;
    append->propagate_usage = request->propagate_usage;
    append->has_parent = request->parent_case == APPEND_MESSAGE_REQUEST__PARENT_PARENT_ID;
    append->has_expected_head =
        request->expected_head_case == APPEND_MESSAGE_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_ID;
    error = call_id(call, "session_id", request->session_id, &append->session);
    if (!error && append->has_parent) {
        error = call_optional_id(call, "parent_id", request->parent_id, &append->parent);
    }
    if (!error && append->has_expected_head) {
        error = call_optional_id(call, "expected_head_id", request->expected_head_id,
                                 &append->expected_head);
    }
    if (!error) error = message_check(call, "message", request->message);
    if (error) return error;
    return message_draft_make(&call->arena, request->message, &call->detail, &prepared->draft);
}

// AppendMessage: appends one entry and returns its receipt.
Error handle_append_message(Call *call, const AppendMessageRequest *request,
                            AppendMessageResponse *response)
{
    (void)request; // the draft holds what is left of it
    const AppendCall *prepared = call->prepared;
    Receipt *receipt = arena_new(&call->arena, Receipt);
    if (!receipt) return arena_error(&call->arena);
    tine__v1__receipt__init(receipt);
    response->receipt = receipt;
    Ulid id;
    return message_append(call->txn, &prepared->append, receipt, &id);
}

Error check_add_compaction_marker(Call *call, AddCompactionMarkerRequest *request)
{
    AppendCall *prepared = NULL;
    Error error = prepare(call, &prepared);
    if (error) return error;
    if (!request->marker) return call_fail(call, ERROR_INVALID_ARGUMENT, "marker is required");
    MessageAppend *append = &prepared->append;
    append->has_expected_head = request->expected_head_case ==
                                ADD_COMPACTION_MARKER_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_ID;
    error = call_id(call, "session_id", request->session_id, &append->session);
    if (!error && append->has_expected_head) {
        error = call_optional_id(call, "expected_head_id", request->expected_head_id,
                                 &append->expected_head);
    }
    if (!error) error = marker_check(call, "marker", request->marker, /* is_cut_required= */ true);
    if (error) return error;
    NewMessage *message = arena_new(&call->arena, NewMessage);
    if (!message) return arena_error(&call->arena);
    tine__v1__new_message__init(message);
    message->kind = MESSAGE_KIND_COMPACTION;
    message->marker = request->marker;
    error = message_check(call, "message", message);
    if (error) return error;
    return message_draft_make(&call->arena, message, &call->detail, &prepared->draft);
}

// AddCompactionMarker: appends an entry that carries the marker, and returns it.
Error handle_add_compaction_marker(Call *call, const AddCompactionMarkerRequest *request,
                                   AddCompactionMarkerResponse *response)
{
    (void)request;
    (void)response;
    const AppendCall *prepared = call->prepared;
    Receipt receipt = RECEIPT__INIT;
    Ulid id;
    Error error = message_append(call->txn, &prepared->append, &receipt, &id);
    if (error) return error;
    return message_append_to(call->txn, prepared->append.session, id, REPLY_RECORD, &call->reply);
}

static Error message_of_request(Call *call, const GetMessageRequest *request, Ulid *out_session,
                                Ulid *out_message)
{
    if (request->by_case == GET_MESSAGE_REQUEST__BY_MESSAGE_ID) {
        Error error = call_id(call, "message_id", request->message_id, out_message);
        return error ? error : message_owner(call->txn, *out_message, out_session);
    }
    const SessionExternal *by = request->session_external;
    if (request->by_case != GET_MESSAGE_REQUEST__BY_SESSION_EXTERNAL || !by->external) {
        return call_fail(call, ERROR_INVALID_ARGUMENT,
                         "message_id, or session_external with session_id and external, is "
                         "required");
    }
    Error error = read_session(call, by->session_id, out_session);
    if (!error) error = message_by_external(call->txn, *out_session, by->external, out_message);
    if (error || !ulid_is_zero(*out_message)) return error;
    return call_fail(call, ERROR_MESSAGE_NOT_FOUND,
                     "session %s has no message with external '%s' of '%s'", by->session_id,
                     by->external->id, by->external->source);
}

// GetMessage: by id, or by session and external id; a deleted one too.
Error handle_get_message(Call *call, const GetMessageRequest *request, GetMessageResponse *response)
{
    (void)response;
    Ulid session, message;
    Error error = message_of_request(call, request, &session, &message);
    if (error) return error;
    return message_append_to(call->txn, session, message, REPLY_RECORD, &call->reply);
}

static Error check_message_id(Call *call, const char *message_id)
{
    Ulid *message = arena_new(&call->arena, Ulid);
    if (!message) return arena_error(&call->arena);
    call->prepared = message;
    return call_id(call, "message_id", message_id, message);
}

static Error remove_message(Call *call, Receipt **out,
                            Error (*remove)(Txn *txn, Ulid message, Receipt *out_receipt))
{
    Receipt *receipt = arena_new(&call->arena, Receipt);
    if (!receipt) return arena_error(&call->arena);
    tine__v1__receipt__init(receipt);
    *out = receipt;
    return remove(call->txn, *(const Ulid *)call->prepared, receipt);
}

Error check_delete_message(Call *call, DeleteMessageRequest *request)
{
    return check_message_id(call, request->message_id);
}

// DeleteMessage: histories leave it out, GetMessage still returns it.
Error handle_delete_message(Call *call, const DeleteMessageRequest *request,
                            DeleteMessageResponse *response)
{
    (void)request;
    return remove_message(call, &response->receipt, message_delete);
}

Error check_purge_message(Call *call, PurgeMessageRequest *request)
{
    return check_message_id(call, request->message_id);
}

// PurgeMessage: its content goes for good, its place stays.
Error handle_purge_message(Call *call, const PurgeMessageRequest *request,
                           PurgeMessageResponse *response)
{
    (void)request;
    return remove_message(call, &response->receipt, message_purge);
}
