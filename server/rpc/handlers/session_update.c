// Handlers that change, delete and rewind a session.

#include "store/session_update.h"

#include "rpc/handlers/handler.h"

Error check_rename_session(Rpc *rpc, RenameSessionRequest *request)
{
    if (request->slug_policy == SLUG_POLICY_FROM_TITLE) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                        "slug_policy: FROM_TITLE is for new sessions; name the slug");
    }
    return check_session(rpc, request->session_id);
}

// RenameSession: gives a session a new slug; an empty one clears it.
Error handle_rename_session(Rpc *rpc, const RenameSessionRequest *request,
                            RenameSessionResponse *response)
{
    (void)response;
    Ulid session = session_of(rpc);
    Error error = session_rename(rpc->txn, session, request->slug, request->slug_policy);
    return error ? error : reply_session(rpc, session);
}

static Error check_masked_field(Rpc *rpc, UpdateSessionRequest *request, SessionField field)
{
    switch (field) {
    case SESSION_FIELD_UNSPECIFIED:
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "mask: UNSPECIFIED names no field");
    case SESSION_FIELD_STATUS:
        if (request->status == SESSION_STATUS_UNSPECIFIED) {
            request->status = SESSION_STATUS_IDLE;
        }
        return ERROR_NONE;
    case SESSION_FIELD_MODEL:
        if (request->model && *request->model->provider && *request->model->name) {
            return ERROR_NONE;
        }
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
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

Error check_update_session(Rpc *rpc, UpdateSessionRequest *request)
{
    if (request->n_mask == 0) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "mask is required: name the fields to set");
    }
    for (size_t i = 0; i < request->n_mask; i++) {
        Error error = check_masked_field(rpc, request, request->mask[i]);
        if (error) return error;
    }
    return check_session(rpc, request->session_id);
}

// UpdateSession: sets the fields that the mask names.
Error handle_update_session(Rpc *rpc, const UpdateSessionRequest *request,
                            UpdateSessionResponse *response)
{
    (void)response;
    Ulid session = session_of(rpc);
    Error error = session_update(rpc->txn, session, request);
    return error ? error : reply_session(rpc, session);
}

Error check_soft_delete_session(Rpc *rpc, SoftDeleteSessionRequest *request)
{
    return check_session(rpc, request->session_id);
}

// SoftDeleteSession: deletes a session so that RestoreSession can bring it back.
Error handle_soft_delete_session(Rpc *rpc, const SoftDeleteSessionRequest *request,
                                 SoftDeleteSessionResponse *response)
{
    (void)request;
    (void)response;
    Ulid session = session_of(rpc);
    Error error = session_set_deleted(rpc->txn, session, /* is_deleted= */ true);
    return error ? error : reply_session(rpc, session);
}

Error check_restore_session(Rpc *rpc, RestoreSessionRequest *request)
{
    return check_session(rpc, request->session_id);
}

// RestoreSession: undoes the soft delete.
Error handle_restore_session(Rpc *rpc, const RestoreSessionRequest *request,
                             RestoreSessionResponse *response)
{
    (void)request;
    (void)response;
    Ulid session = session_of(rpc);
    Error error = session_set_deleted(rpc->txn, session, /* is_deleted= */ false);
    return error ? error : reply_session(rpc, session);
}

Error check_rewind_session(Rpc *rpc, RewindSessionRequest *request)
{
    Rewind *rewind = arena_new(&rpc->arena, Rewind);
    if (!rewind) return arena_error(&rpc->arena);
    rpc->prepared = rewind;
    rewind->has_expected_head =
        request->expected_head_case == REWIND_SESSION_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_ID;
    Error error = rpc_id(rpc, "session_id", request->session_id, &rewind->session);
    if (!error) {
        error = rpc_optional_id(rpc, "message_id", request->message_id, &rewind->message);
    }
    if (!error && rewind->has_expected_head) {
        error = rpc_optional_id(rpc, "expected_head_id", request->expected_head_id,
                                &rewind->expected_head);
    }
    return error;
}

// RewindSession: moves the head back to an entry of the tree, or to nothing.
Error handle_rewind_session(Rpc *rpc, const RewindSessionRequest *request,
                            RewindSessionResponse *response)
{
    (void)request;
    (void)response;
    const Rewind *rewind = rpc->prepared;
    Error error = session_rewind(rpc->txn, rewind);
    return error ? error : reply_session(rpc, rewind->session);
}
