// Session changes. Each one that changes a row also sets updated_at and stores an event.

#include "store/session_update.h"

#include "store/event.h"
#include "store/message_append.h"
#include "store/origin.h"
#include "store/planted.h"
#include "store/preview.h"
#include "store/session_index.h"

// Stores changed settings and updates their index entries, then stores the head with an event.
static Error put_changed(Txn *txn, Ulid id, SessionIndexed before, const Session *settings,
                         Session *head, const char *event_type)
{
    Error error = session_put_settings(txn, id, settings);
    if (!error) {
        error = session_index_update(txn, id, before, (SessionIndexed){settings, head->status});
    }
    if (error) return error;
    Event event = EVENT__INIT;
    event.type = (char *)(uintptr_t)event_type;
    head->updated_at = txn->now_ms;
    error = event_put(txn, id, head, &event);
    if (error) return error;
    return session_put_head(txn, id, head);
}

Error session_rename(Txn *txn, Ulid id, const char *slug, SlugPolicy policy)
{
    Session *head, *settings;
    Error error = session_head_for_write(txn, id, &head);
    if (!error) error = session_settings(txn, id, &settings);
    if (error) return error;
    if (strcmp(settings->slug, slug) == 0) return ERROR_NONE;
    Session old_settings = *settings;
    SessionIndexed before = {&old_settings, head->status};
    error = session_index_settle_slug(txn, slug, policy, id, &settings->slug);
    if (error || strcmp(settings->slug, old_settings.slug) == 0) return error;
    return put_changed(txn, id, before, settings, head, EVENT_SESSION_UPDATED);
}

static bool mask_holds(const UpdateSessionRequest *request, SessionField field)
{
    for (size_t i = 0; i < request->n_mask; i++) {
        if (request->mask[i] == field) return true;
    }
    return false;
}

static void set_field(Session *settings, Session *head, const UpdateSessionRequest *request,
                      SessionField field, int64_t now_ms)
{
    switch (field) {
    case SESSION_FIELD_TITLE: settings->title = request->title; break;
    case SESSION_FIELD_STATUS:
        head->status = request->status;
        head->status_until = request->status_until;
        break;
    case SESSION_FIELD_SYSTEM_PROMPT: settings->system_prompt = request->system_prompt; break;
    case SESSION_FIELD_USER_NAME: settings->user_name = request->user_name; break;
    case SESSION_FIELD_MODEL: settings->model = request->model; break;
    case SESSION_FIELD_ROLE_NAME: settings->role_name = request->role_name; break;
    case SESSION_FIELD_EXECUTION: settings->execution = request->execution; break;
    case SESSION_FIELD_ACCOUNT_ID: settings->account_id = request->account_id; break;
    case SESSION_FIELD_PROJECT_ID: settings->project_id = request->project_id; break;
    case SESSION_FIELD_WORKSPACE_ID: settings->workspace_id = request->workspace_id; break;
    case SESSION_FIELD_METADATA_JSON: settings->metadata_json = request->metadata_json; break;
    case SESSION_FIELD_DATA_JSON:
        settings->data_json = request->data_json;
        settings->data_version = request->data_version;
        break;
    case SESSION_FIELD_ARCHIVED:
        if (!request->archived) settings->archived_at = 0;
        if (request->archived && settings->archived_at == 0) settings->archived_at = now_ms;
        break;
    case SESSION_FIELD_UNSPECIFIED: break;
    }
}

Error session_update(Txn *txn, Ulid id, const UpdateSessionRequest *request)
{
    SessionBrief brief;
    Session *head, *settings;
    Error error = session_brief(txn, id, &brief);
    if (error) return error;
    if (brief.is_deleted) return ERROR_SESSION_DELETED;
    if (brief.is_archived && !mask_holds(request, SESSION_FIELD_ARCHIVED)) {
        return ERROR_SESSION_ARCHIVED;
    }
    error = session_head(txn, id, &head);
    if (!error) error = session_settings(txn, id, &settings);
    if (error) return error;
    Session old_settings = *settings;
    SessionIndexed before = {&old_settings, head->status};
    for (size_t i = 0; i < request->n_mask; i++) {
        set_field(settings, head, request, request->mask[i], txn->now_ms);
    }
    return put_changed(txn, id, before, settings, head, EVENT_SESSION_UPDATED);
}

Error session_set_deleted(Txn *txn, Ulid id, bool is_deleted)
{
    Session *head, *settings;
    Error error = session_settings(txn, id, &settings);
    if (!error) error = session_head(txn, id, &head);
    if (error) return error;
    if ((settings->deleted_at != 0) == is_deleted) return ERROR_NONE;
    Session old_settings = *settings;
    SessionIndexed before = {&old_settings, head->status};
    settings->deleted_at = is_deleted ? txn->now_ms : 0;
    return put_changed(txn, id, before, settings, head,
                       is_deleted ? EVENT_SESSION_DELETED : EVENT_SESSION_RESTORED);
}

Error session_rewind(Txn *txn, const Rewind *rewind)
{
    Session *head;
    Error error = session_head_for_write(txn, rewind->session, &head);
    if (error) return error;
    if (rewind->has_expected_head) {
        error = head_expect(txn, head, rewind->expected_head);
        if (error) return error;
    }
    SessionOrigin target = {.is_set = true, .message = rewind->message};
    Ulid head_id;
    error = stored_id(txn, head->head_id, &head_id);
    if (!error && !ulid_is_zero(rewind->message)) {
        error = origin_resolve(txn, rewind->session, rewind->message, &target.session);
    }
    if (error || ulid_equal(head_id, rewind->message)) return error;

    error = origin_put(txn, rewind->session, txn_issue_id(txn), &target);
    bool is_stale = PLANTED(2, false, true);
    if (!error && is_stale) error = preview_recompute_last(txn, rewind->session, head);
    if (error) return error;
    head->head_id = txn_id_text(txn, rewind->message);
    if (!head->head_id) return arena_error(txn->arena);
    head->updated_at = txn->now_ms;
    Event event = EVENT__INIT;
    event.type = EVENT_SESSION_REWOUND;
    event.message_id = head->head_id;
    error = event_put(txn, rewind->session, head, &event);
    if (error) return error;
    return session_put_head(txn, rewind->session, head);
}
