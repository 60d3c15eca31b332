// Handlers: changing a session's settings and its place.

#include "store/session_update.h"

#include "rpc/handlers/handler.h"

Error check_rename_session(Call *call, RenameSessionRequest *request)
{
    if (request->slug_policy == SLUG_POLICY_FROM_TITLE) {
        return call_fail(call, ERROR_INVALID_ARGUMENT,
                         "slug_policy: FROM_TITLE is for new sessions; name the slug");
    }
    return check_session(call, request->session_id);
}

// RenameSession: gives a session a new slug; an empty one clears it.
Error handle_rename_session(Call *call, const RenameSessionRequest *request,
                            RenameSessionResponse *response)
{
    (void)response;
    Ulid session = session_of(call);
    Error error = session_rename(call->txn, session, request->slug, request->slug_policy);
    return error ? error : reply_session(call, session);
}

static Error check_masked_field(Call *call, UpdateSessionRequest *request, SessionField field)
{
    switch (field) {
    case SESSION_FIELD_UNSPECIFIED:
        return call_fail(call, ERROR_INVALID_ARGUMENT, "mask: UNSPECIFIED names no field");
    case SESSION_FIELD_STATUS:
        if (request->status == SESSION_STATUS_UNSPECIFIED) {
            request->status = SESSION_STATUS_IDLE;
        }
        return ERROR_NONE;
    case SESSION_FIELD_MODEL:
        if (request->model && *request->model->provider && *request->model->name) {
            return ERROR_NONE;
        }
        return call_fail(call, ERROR_INVALID_ARGUMENT,
                         "model: provider and name are required; a session always has a model");
    case SESSION_FIELD_TITLE:
    case SESSION_FIELD_SYSTEM_PROMPT:
    case SESSION_FIELD_USER_NAME:
    case SESSION_FIELD_ROLE_NAME:
    case SESSION_FIELD_EXECUTION:
    case SESSION_FIELD_ACCOUNT_ID:
    case SESSION_FIELD_PROJECT_ID:
    case SESSION_FIELD_WORKSPACE_ID:
    case SESSION_FIELD_METADATA_JSON:
    case SESSION_FIELD_DATA_JSON:
    case SESSION_FIELD_ARCHIVED: return ERROR_NONE;
    }
    return ERROR_NONE;
}

Error check_update_session(Call *call, UpdateSessionRequest *request)
{
    if (request->n_mask == 0) {
        return call_fail(call, ERROR_INVALID_ARGUMENT, "mask is required: name the fields to set");
    }
    for (size_t i = 0; i < request->n_mask; i++) {
        Error error = check_masked_field(call, request, request->mask[i]);
        if (error) return error;
    }
    return check_session(call, request->session_id);
}

// UpdateSession: sets the fields that the mask names.
Error handle_update_session(Call *call, const UpdateSessionRequest *request,
                            UpdateSessionResponse *response)
{
    (void)response;
    Ulid session = session_of(call);
    Error error = session_update(call->txn, session, request);
    return error ? error : reply_session(call, session);
}

Error check_soft_delete_session(Call *call, SoftDeleteSessionRequest *request)
{
    return check_session(call, request->session_id);
}

// SoftDeleteSession: deletes so that RestoreSession can bring back.
Error handle_soft_delete_session(Call *call, const SoftDeleteSessionRequest *request,
                                 SoftDeleteSessionResponse *response)
{
    (void)request;
    (void)response;
    Ulid session = session_of(call);
    Error error = session_set_deleted(call->txn, session, /* is_deleted= */ true);
    return error ? error : reply_session(call, session);
}

Error check_restore_session(Call *call, RestoreSessionRequest *request)
{
    return check_session(call, request->session_id);
}

// RestoreSession: undoes the soft delete.
Error handle_restore_session(Call *call, const RestoreSessionRequest *request,
                             RestoreSessionResponse *response)
{
    (void)request;
    (void)response;
    Ulid session = session_of(call);
    Error error = session_set_deleted(call->txn, session, /* is_deleted= */ false);
    return error ? error : reply_session(call, session);
}

Error check_rewind_session(Call *call, RewindSessionRequest *request)
{
    Rewind *rewind = arena_new(&call->arena, Rewind);
    if (!rewind) return arena_error(&call->arena);
    call->prepared = rewind;
    rewind->has_expected_head =
        request->expected_head_case == REWIND_SESSION_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_ID;
    Error error = call_id(call, "session_id", request->session_id, &rewind->session);
    if (!error) {
        error = call_optional_id(call, "message_id", request->message_id, &rewind->message);
    }
    if (!error && rewind->has_expected_head) {
        error = call_optional_id(call, "expected_head_id", request->expected_head_id,
                                 &rewind->expected_head);
    }
    return error;
}

// RewindSession: moves the head back to an entry of the tree, or to nothing.
Error handle_rewind_session(Call *call, const RewindSessionRequest *request,
                            RewindSessionResponse *response)
{
    (void)request;
    (void)response;
    const Rewind *rewind = call->prepared;
    Error error = session_rewind(call->txn, rewind);
    return error ? error : reply_session(call, rewind->session);
}
