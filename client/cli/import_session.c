// Imports a session: finds or makes it, and sets its state after its entries.

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "import.h"
#include "os/clock.h"

enum {
    OPERATION_BYTES_MAX = 64,
    STEP_BYTES_MAX = 24,
    REPEATABLE_MS = 23 * 3600 * 1000, // an hour less than the store keeps operation IDs by default
};

// Finds out whether the session with this ID is in this store.
static int find_own(Import *import, const char *id, bool *out_found)
{
    Cli *cli = import->cli;
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    CLEANUP(message_freep) GetSessionResponse *reply = NULL;
    request.session_id = (char *)(uintptr_t)id;
    int status = tine_get_session(cli->tine, &cli->call, &request, &reply);
    *out_found = status == STATUS_OK;
    if (status && status != STATUS_NOT_FOUND) return import_fail_call(import);
    if (!status) snprintf(import->id, sizeof(import->id), "%s", id);
    return EXIT_OK;
}

static int find_external(Import *import, External *external, bool *out_found)
{
    Cli *cli = import->cli;
    ResolveSessionRequest request = RESOLVE_SESSION_REQUEST__INIT;
    CLEANUP(message_freep) ResolveSessionResponse *reply = NULL;
    request.by_case = TINE__V1__RESOLVE_SESSION_REQUEST__BY_EXTERNAL;
    request.external = external;
    if (tine_resolve_session(cli->tine, &cli->call, &request, &reply)) {
        return import_fail_call(import);
    }
    *out_found = reply->n_sessions > 0;
    if (*out_found) snprintf(import->id, sizeof(import->id), "%s", reply->sessions[0]->id);
    return EXIT_OK;
}

// Finds the first entry of the oldest ancestor: a fork of the empty history is a fork from before
// it. None if no ancestor has entries.
static int find_beginning(Import *import, const char *parent_id, char out[ID_BYTES])
{
    Cli *cli = import->cli;
    char id[ID_BYTES];
    snprintf(id, sizeof(id), "%s", parent_id);
    for (;;) {
        GetSessionRequest request = GET_SESSION_REQUEST__INIT;
        CLEANUP(message_freep) GetSessionResponse *reply = NULL;
        request.session_id = id;
        if (tine_get_session(cli->tine, &cli->call, &request, &reply)) {
            return import_fail_call(import);
        }
        if (!*reply->session->fork_message_id || !*reply->session->parent_id) break;
        snprintf(id, sizeof(id), "%s", reply->session->parent_id);
    }
    ListMessagesRequest request = LIST_MESSAGES_REQUEST__INIT;
    CLEANUP(message_freep) ListMessagesResponse *reply = NULL;
    request.session_id = id;
    request.limit = 1;
    request.deleted = DELETED_FILTER_INCLUDE;
    if (tine_list_messages(cli->tine, &cli->call, &request, &reply)) {
        return import_fail_call(import);
    }
    snprintf(out, ID_BYTES, "%s", reply->n_messages > 0 ? reply->messages[0]->id : "");
    return EXIT_OK;
}

static int choose_fork_point(Import *import, const Session *session, CreateSessionRequest *request,
                             char point[ID_BYTES])
{
    if (*session->fork_message_id) {
        import_mapped(import, session->fork_message_id, point);
        if (!*point) {
            return import_fail(import, "the file has no entry %s, where the session was forked",
                               session->fork_message_id);
        }
        request->fork_point_case = TINE__V1__CREATE_SESSION_REQUEST__FORK_POINT_THROUGH_MESSAGE_ID;
        request->through_message_id = point;
        return EXIT_OK;
    }
    if (session->kind != SESSION_KIND_PRIMARY) return EXIT_OK;
    int code = find_beginning(import, request->session->parent_id, point);
    if (code) return code;
    if (*point) {
        request->fork_point_case = TINE__V1__CREATE_SESSION_REQUEST__FORK_POINT_BEFORE_MESSAGE_ID;
        request->before_message_id = point;
    } else {
        request->fork_point_case = TINE__V1__CREATE_SESSION_REQUEST__FORK_POINT_AT_HEAD;
        request->at_head = true;
    }
    return EXIT_OK;
}

static void fill_new(const Import *import, const Session *session, NewSession *new)
{
    *new = (NewSession)NEW_SESSION__INIT;
    new->kind = session->kind;
    new->created_at = session->created_at;
    new->slug = session->slug;
    new->title = session->title;
    new->project_dir =
        import->project_dir ? (char *)(uintptr_t)import->project_dir : session->project_dir;
    new->model = session->model;
    new->parent_tool_use_id = session->parent_tool_use_id;
    new->user_name = session->user_name;
    new->account_id = session->account_id;
    new->project_id = session->project_id;
    new->workspace_id = session->workspace_id;
    new->role_name = session->role_name;
    new->execution = session->execution;
    new->data_version = session->data_version;
    new->source_parent = session->source_parent;
    new->metadata_json = session->metadata_json;
    new->system_prompt = session->system_prompt;
    new->data_json = session->data_json;
}

static int make(Import *import, Session *session, External *external)
{
    Cli *cli = import->cli;
    NewSession new;
    char parent[ID_BYTES], point[ID_BYTES];
    CreateSessionRequest request = CREATE_SESSION_REQUEST__INIT;
    CLEANUP(message_freep) CreateSessionResponse *reply = NULL;
    fill_new(import, session, &new);
    new.external = external;
    new.parent_id = (char *)(uintptr_t)import_mapped(import, session->parent_id, parent);
    request.session = &new;
    if (*parent) {
        int code = choose_fork_point(import, session, &request, point);
        if (code) return code;
    } else if (!*new.source_parent) {
        new.source_parent = session->parent_id; // the parent is not in the file
    }
    if (tine_create_session(cli->tine, &cli->call, &request, &reply)) {
        return import_fail_call(import);
    }
    snprintf(import->id, sizeof(import->id), "%s", reply->session->id);
    return EXIT_OK;
}

int import_session(Import *import, Session *session)
{
    External made, *external = import_external(session->external, &made, session->id);
    bool is_found = false;
    import->is_own = import->is_new = import->has_name = false;
    import->last[0] = import->file_last[0] = '\0';
    int code = find_own(import, session->id, &import->is_own);
    if (!code && !import->is_own) code = find_external(import, external, &is_found);
    if (!code && !import->is_own && !is_found) {
        code = make(import, session, external);
        import->is_new = true;
    }
    if (code) return code;
    if (id_map_put(&import->ids, session->id, import->id)) {
        return import_fail(import, "session.id: '%s' is not an ID", session->id);
    }
    atomic_fetch_add(
        import->is_new ? &import->report->sessions_new : &import->report->sessions_known, 1);
    import->session = session;
    return EXIT_OK;
}

// The last steps have operation IDs made from the session's ID, so running one again changes
// nothing, and the next import completes one that was interrupted.
static TineCallOptions step_options(const Import *import, const char *step,
                                    char operation_id[OPERATION_BYTES_MAX])
{
    TineCallOptions options = import->cli->call;
    snprintf(operation_id, OPERATION_BYTES_MAX, "tine-import/%s/%s", step, import->id);
    options.operation_id = operation_id;
    return options;
}

static int end_head(Import *import)
{
    char operation_id[OPERATION_BYTES_MAX], head[ID_BYTES];
    RewindSessionRequest request = REWIND_SESSION_REQUEST__INIT;
    CLEANUP(message_freep) RewindSessionResponse *reply = NULL;
    if (strcmp(import->session->head_id, import->file_last) == 0) return EXIT_OK;
    if (!*import->file_last &&
        strcmp(import->session->head_id, import->session->fork_message_id) == 0)
        return EXIT_OK;
    import_mapped(import, import->session->head_id, head);
    if (*import->session->head_id && !*head) {
        return import_fail(import, "the file has no entry %s, the session's head",
                           import->session->head_id);
    }
    request.session_id = import->id;
    request.message_id = head;
    TineCallOptions options = step_options(import, "head", operation_id);
    int status = tine_rewind_session(import->cli->tine, &options, &request, &reply);
    return status ? import_fail_call(import) : EXIT_OK;
}

// The title may have changed after the last entry that set it. Its hash is in the operation id,
// because an export that was made later may have another one.
static int end_title(Import *import)
{
    static SessionField mask[] = {TINE__V1__SESSION_FIELD__SESSION_FIELD_TITLE};
    char operation_id[OPERATION_BYTES_MAX], step[STEP_BYTES_MAX];
    UpdateSessionRequest request = UPDATE_SESSION_REQUEST__INIT;
    CLEANUP(message_freep) UpdateSessionResponse *reply = NULL;
    if (!import->has_name) return EXIT_OK;
    request.session_id = import->id;
    request.mask = mask;
    request.n_mask = 1;
    request.title = import->session->title;
    Hash hash = hash_bytes(slice_of(request.title));
    snprintf(step, sizeof(step), "title-%016" PRIx64, bytes_get_u64(hash.bytes));
    TineCallOptions options = step_options(import, step, operation_id);
    int status = tine_update_session(import->cli->tine, &options, &request, &reply);
    return status ? import_fail_call(import) : EXIT_OK;
}

static int end_totals(Import *import)
{
    char operation_id[OPERATION_BYTES_MAX];
    UpdateSessionTotalsRequest request = UPDATE_SESSION_TOTALS_REQUEST__INIT;
    CLEANUP(message_freep) UpdateSessionTotalsResponse *reply = NULL;
    Totals *totals = import->session->totals;
    if (!totals || protobuf_c_message_get_packed_size(&totals->base) == 0) return EXIT_OK;
    request.session_id = import->id;
    request.delta = totals;
    TineCallOptions options = step_options(import, "totals", operation_id);
    int status = tine_update_session_totals(import->cli->tine, &options, &request, &reply);
    return status ? import_fail_call(import) : EXIT_OK;
}

static int end_archived(Import *import)
{
    static SessionField mask[] = {TINE__V1__SESSION_FIELD__SESSION_FIELD_ARCHIVED};
    char operation_id[OPERATION_BYTES_MAX];
    UpdateSessionRequest request = UPDATE_SESSION_REQUEST__INIT;
    CLEANUP(message_freep) UpdateSessionResponse *reply = NULL;
    if (!import->session->archived_at) return EXIT_OK;
    request.session_id = import->id;
    request.mask = mask;
    request.n_mask = 1;
    request.archived = true;
    TineCallOptions options = step_options(import, "archive", operation_id);
    int status = tine_update_session(import->cli->tine, &options, &request, &reply);
    return status ? import_fail_call(import) : EXIT_OK;
}

static int end_deleted(Import *import)
{
    char operation_id[OPERATION_BYTES_MAX];
    SoftDeleteSessionRequest request = SOFT_DELETE_SESSION_REQUEST__INIT;
    CLEANUP(message_freep) SoftDeleteSessionResponse *reply = NULL;
    if (!import->session->deleted_at) return EXIT_OK;
    request.session_id = import->id;
    TineCallOptions options = step_options(import, "delete", operation_id);
    int status = tine_soft_delete_session(import->cli->tine, &options, &request, &reply);
    return status ? import_fail_call(import) : EXIT_OK;
}

// A session that was imported long ago keeps the changes that were made since.
static bool may_repeat(const Import *import)
{
    Ulid id;
    Clock clock = clock_system();
    return ulid_parse(slice_of(import->id), &id) &&
           clock_now_ms(&clock) - ulid_time_ms(id) < REPEATABLE_MS;
}

int import_session_end(Import *import)
{
    int code = EXIT_OK;
    if (!import->session) return EXIT_OK;
    if (!import->is_own && (import->is_new || may_repeat(import))) {
        code = end_head(import);
        if (!code) code = end_title(import);
        if (!code) code = end_totals(import);
        if (!code) code = end_archived(import);
        if (!code) code = end_deleted(import);
    }
    protobuf_c_message_free_unpacked(&import->session->base, NULL);
    import->session = NULL;
    return code;
}
