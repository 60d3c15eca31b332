// Handlers that create and fork sessions.

#include "store/session_create.h"

#include "rpc/handlers/handler.h"
#include "store/slug.h"

typedef struct CreateCall {
    Ulid parent; // zero: none
    ForkPoint point;
} CreateCall;

static Error check_model(Rpc *rpc, const char *field, const ModelRef *model)
{
    if (model && *model->provider && *model->name) return ERROR_NONE;
    return rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "%s: provider and name are required", field);
}

// Reads the fork point, which CreateSession and ForkSession name in the same way.
static Error check_fork_point(Rpc *rpc, const char *through, const char *before,
                              const bool *at_head, ForkPoint *out)
{
    *out = (ForkPoint){.kind = FORK_NONE};
    if (through) {
        out->kind = FORK_THROUGH;
        return rpc_id(rpc, "through_message_id", through, &out->message);
    }
    if (before) {
        out->kind = FORK_BEFORE;
        return rpc_id(rpc, "before_message_id", before, &out->message);
    }
    if (!at_head) return ERROR_NONE;
    if (!*at_head)
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "at_head must be true if it is set");
    out->kind = FORK_AT_HEAD;
    return ERROR_NONE;
}

static Error check_slug_is_empty(Rpc *rpc, const char *field, const char *slug, SlugPolicy policy)
{
    if (policy != SLUG_POLICY_FROM_TITLE || !*slug) return ERROR_NONE;
    return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                    "%s: must be empty with slug_policy FROM_TITLE, which makes it", field);
}

// Makes the slug from the title, if the policy asks for it.
static Error settle_title_slug(Rpc *rpc, const char *title, char **slug, SlugPolicy *policy)
{
    if (*policy != SLUG_POLICY_FROM_TITLE) return ERROR_NONE;
    if (!*title) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                        "title is required with slug_policy FROM_TITLE");
    }
    *policy = SLUG_POLICY_UNIQUE_SUFFIX;
    return slug_of_title(&rpc->arena, title, slug);
}

static Error check_lineage(Rpc *rpc, const NewSession *session, const CreateCall *create)
{
    bool has_parent = !ulid_is_zero(create->parent), has_point = create->point.kind != FORK_NONE;
    if (has_point && !has_parent) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "a fork point needs session.parent_id");
    }
    if (has_parent && !has_point && session->kind == SESSION_KIND_PRIMARY) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                        "a PRIMARY session with a parent needs a fork point: through_message_id, "
                        "before_message_id or at_head; or create it with kind SUBAGENT");
    }
    return ERROR_NONE;
}

Error check_create_session(Rpc *rpc, CreateSessionRequest *request)
{
    NewSession *session = request->session;
    if (!session) return rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "session is required");
    CreateCall *create = arena_new(&rpc->arena, CreateCall);
    if (!create) return arena_error(&rpc->arena);
    rpc->prepared = create;
    if (session->kind == SESSION_KIND_UNSPECIFIED) session->kind = SESSION_KIND_PRIMARY;

    Error error = rpc_required(rpc, "session.project_dir", session->project_dir);
    if (!error) error = check_model(rpc, "session.model", session->model);
    if (!error) {
        error = rpc_optional_id(rpc, "session.parent_id", session->parent_id, &create->parent);
    }
    if (!error) {
        error = check_slug_is_empty(rpc, "session.slug", session->slug, request->slug_policy);
    }
    if (!error) {
        error = settle_title_slug(rpc, session->title, &session->slug, &request->slug_policy);
    }
    if (!error) error = rpc_external(rpc, "session", "external", session->external);
    if (error) return error;
    bool is_through =
        request->fork_point_case == CREATE_SESSION_REQUEST__FORK_POINT_THROUGH_MESSAGE_ID;
    bool is_before =
        request->fork_point_case == CREATE_SESSION_REQUEST__FORK_POINT_BEFORE_MESSAGE_ID;
    bool is_head = request->fork_point_case == CREATE_SESSION_REQUEST__FORK_POINT_AT_HEAD;
    bool at_head = is_head && request->at_head;
    error = check_fork_point(rpc, is_through ? request->through_message_id : NULL,
                             is_before ? request->before_message_id : NULL,
                             is_head ? &at_head : NULL, &create->point);
    return error ? error : check_lineage(rpc, session, create);
}

static Error create_and_reply(Rpc *rpc, Session *settings, SlugPolicy slug_policy,
                              const CreateCall *create)
{
    SessionOrigin origin = {.is_set = false};
    if (create->point.kind != FORK_NONE) {
        Error error = session_fork_origin(rpc->txn, create->parent, &create->point, &origin);
        if (error) return error;
    }
    Ulid id;
    Error error = session_create(rpc->txn, settings, slug_policy, &origin, &id);
    return error ? error : reply_session(rpc, id);
}

// CreateSession: see store.proto.
Error handle_create_session(Rpc *rpc, const CreateSessionRequest *request,
                            CreateSessionResponse *response)
{
    (void)response; // the record is appended to the reply
    const CreateCall *create = rpc->prepared;
    if (!ulid_is_zero(create->parent)) {
        SessionBrief brief;
        Error error = session_brief(rpc->txn, create->parent, &brief);
        if (error) return error;
    }
    const NewSession *wanted = request->session;
    Session settings = SESSION__INIT;
    settings.kind = wanted->kind;
    settings.parent_id = wanted->parent_id;
    settings.created_at = wanted->created_at;
    settings.slug = wanted->slug;
    settings.title = wanted->title;
    settings.project_dir = wanted->project_dir;
    settings.model = wanted->model;
    settings.parent_tool_use_id = wanted->parent_tool_use_id;
    settings.user_name = wanted->user_name;
    settings.account_id = wanted->account_id;
    settings.project_id = wanted->project_id;
    settings.workspace_id = wanted->workspace_id;
    settings.role_name = wanted->role_name;
    settings.execution = wanted->execution;
    settings.data_version = wanted->data_version;
    settings.external = wanted->external;
    settings.source_parent = wanted->source_parent;
    settings.metadata_json = wanted->metadata_json;
    settings.system_prompt = wanted->system_prompt;
    settings.data_json = wanted->data_json;
    return create_and_reply(rpc, &settings, request->slug_policy, create);
}

Error check_fork_session(Rpc *rpc, ForkSessionRequest *request)
{
    CreateCall *create = arena_new(&rpc->arena, CreateCall);
    if (!create) return arena_error(&rpc->arena);
    rpc->prepared = create;
    Error error = rpc_id(rpc, "session_id", request->session_id, &create->parent);
    if (!error && request->model) error = check_model(rpc, "model", request->model);
    if (!error) error = check_slug_is_empty(rpc, "slug", request->slug, request->slug_policy);
    if (error) return error;
    bool is_through =
        request->fork_point_case == FORK_SESSION_REQUEST__FORK_POINT_THROUGH_MESSAGE_ID;
    bool is_before = request->fork_point_case == FORK_SESSION_REQUEST__FORK_POINT_BEFORE_MESSAGE_ID;
    bool is_head = request->fork_point_case == FORK_SESSION_REQUEST__FORK_POINT_AT_HEAD;
    bool at_head = is_head && request->at_head;
    error = check_fork_point(rpc, is_through ? request->through_message_id : NULL,
                             is_before ? request->before_message_id : NULL,
                             is_head ? &at_head : NULL, &create->point);
    if (error || create->point.kind != FORK_NONE) return error;
    return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                    "a fork point is required: through_message_id, before_message_id or at_head");
}

// ForkSession: see store.proto.
Error handle_fork_session(Rpc *rpc, const ForkSessionRequest *request,
                          ForkSessionResponse *response)
{
    (void)response;
    const CreateCall *create = rpc->prepared;
    Session *source;
    Error error = session_settings(rpc->txn, create->parent, &source);
    if (error) return error;
    Session settings = SESSION__INIT;
    settings.kind = SESSION_KIND_PRIMARY;
    settings.parent_id = request->session_id;
    settings.slug = request->slug;
    settings.project_dir = source->project_dir;
    settings.model = request->model ? request->model : source->model;
    settings.title = source->title;
    settings.system_prompt = source->system_prompt;
    settings.user_name = source->user_name;
    settings.account_id = source->account_id;
    settings.project_id = source->project_id;
    settings.workspace_id = source->workspace_id;
    settings.role_name = source->role_name;
    settings.execution = source->execution;
    SlugPolicy policy = request->slug_policy;
    error = settle_title_slug(rpc, settings.title, &settings.slug, &policy);
    return error ? error : create_and_reply(rpc, &settings, policy, create);
}
