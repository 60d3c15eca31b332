// The calls that concern the session itself: resolve, create, get, rewind, update.

#include "importers/pi/pi_session.h"

#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "importers/field.h"
#include "importers/iso_time.h"
#include "importers/pi/pi_entry.h"
#include "importers/pi/pi_known.h"
#include "text/json.h"
#include "text/json_walk.h"
#include "text/utf8.h"

// Sets the header as the store can hold it; "" if it cannot. In a file without entries the header
// includes the white space after it, which no entry's original would hold.
static int set_header(PiRun *run)
{
    PiFile *file = &run->file;
    Slice header = slice_of(file->header), rest = {NULL, 0};
    Error error = file->count > 0 ? ERROR_NONE : pi_file_rest(file, &rest);
    for (size_t i = 0; i < rest.size; i++) {
        if (!memchr(" \t\r\n", rest.bytes[i], 4)) rest.size = 0; // lines that are not entries
    }
    char *text = error ? NULL : arena_alloc(&run->arena, header.size + rest.size + 1);
    if (!text) return pi_run_fail(run, error ? error : arena_error(&run->arena), NULL);
    memcpy(text, header.bytes, header.size);
    if (rest.size > 0) memcpy(text + header.size, rest.bytes, rest.size);
    text[header.size + rest.size] = '\0';
    bool is_held = header.size + rest.size <= SESSION_DATA_JSON_BYTES_MAX &&
                   utf8_is_valid(header) && json_is_valid(header, NULL);
    if (!is_held) *text = '\0';
    run->header = text;
    return STATUS_OK;
}

// Fills the fields that the header has.
static int fill_session(PiRun *run, NewSession *session)
{
    enum { TIMESTAMP, CWD, PARENT, COUNT };
    static const char *const NAMES[] = {"timestamp", "cwd", "parentSession"};
    static char here[PATH_BYTES_MAX + 1];
    Slice values[COUNT], header = slice_of(run->file.header);
    const char *directory = run->importer->project_dir;
    if (json_members(header, NAMES, COUNT, values, NULL))
        return pi_run_fail(run, ERROR_OUT_OF_MEMORY, NULL);
    char *cwd = json_text(&run->arena, values[CWD]);
    session->source_parent = field_name(&run->arena, json_text(&run->arena, values[PARENT]));
    session->created_at = run->time_ms = iso_time_ms(values[TIMESTAMP]);
    if (!cwd || !session->source_parent) return pi_run_fail(run, arena_error(&run->arena), NULL);
    session->project_dir = directory ? (char *)(uintptr_t)directory : cwd;
    if (!*session->project_dir && getcwd(here, sizeof(here))) session->project_dir = here;
    session->data_json = run->header;
    session->data_version = run->version;
    return STATUS_OK;
}

static int make_session(PiRun *run, External *external)
{
    Importer *importer = run->importer;
    NewSession session = NEW_SESSION__INIT;
    ModelRef model = MODEL_REF__INIT;
    CreateSessionRequest request = CREATE_SESSION_REQUEST__INIT;
    CLEANUP(reply_freep) CreateSessionResponse *reply = NULL;
    int code = fill_session(run, &session);
    if (code) return code;
    static char unknown[] = PI_MODEL_UNKNOWN;
    model.provider = model.name = unknown;
    session.model = &model;
    session.external = external;
    request.session = &session;
    if (tine_create_session(importer->tine, &importer->call, &request, &reply)) {
        return pi_run_fail_call(run, ENTRY_NONE);
    }
    snprintf(run->session, sizeof(run->session), "%s", reply->session->id);
    Error error = pi_model_begin(&run->model, reply->session);
    return error ? pi_run_fail(run, error, NULL) : STATUS_OK;
}

// Finds out what the store has of a session, and whether the file was rewritten since: pi does so
// when it migrates a file to a later version, and then all lines are different.
static int look_at_session(PiRun *run)
{
    Importer *importer = run->importer;
    PiFile *file = &run->file;
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    CLEANUP(reply_freep) GetSessionResponse *reply = NULL;
    request.session_id = run->session;
    if (tine_get_session(importer->tine, &importer->call, &request, &reply))
        return pi_run_fail_call(run, ENTRY_NONE);
    const Session *session = reply->session;
    snprintf(run->last, sizeof(run->last), "%s", session->head_id);
    if (file->makes_ids && strcmp(session->data_version, "1") != 0) {
        return importer_fail(importer, STATUS_FAILED_PRECONDITION,
                             "%s: the store has a later version of it already", run->name);
    }
    Error error = pi_model_begin(&run->model, session);
    if (error) return pi_run_fail(run, error, NULL);
    if (pi_known(importer, run->session, file, &run->model))
        return pi_run_fail_call(run, ENTRY_NONE);
    run->is_rewritten = strcmp(session->data_version, run->version) != 0 ||
                        strcmp(session->data_json, run->header) != 0;
    for (uint32_t i = 0; run->is_rewritten && i < file->count; i++) {
        file->entries[i].has_original = false;
    }
    run->is_finished = file->count > 0 && file->entries[file->count - 1].has_original;
    return STATUS_OK;
}

int pi_session_find_or_make(PiRun *run)
{
    Importer *importer = run->importer;
    static char source[] = PI_SOURCE;
    External external = EXTERNAL__INIT;
    int code = set_header(run);
    if (code) return code;
    ResolveSessionRequest request = RESOLVE_SESSION_REQUEST__INIT;
    CLEANUP(reply_freep) ResolveSessionResponse *reply = NULL;
    external.source = source;
    external.id = field_name(&run->arena, run->file.id);
    if (!external.id) return pi_run_fail(run, arena_error(&run->arena), NULL);
    request.by_case = TINE__V1__RESOLVE_SESSION_REQUEST__BY_EXTERNAL;
    request.external = &external;
    if (tine_resolve_session(importer->tine, &importer->call, &request, &reply)) {
        return pi_run_fail_call(run, ENTRY_NONE);
    }
    if (reply->n_sessions == 0) {
        atomic_fetch_add(&run->importer->report.sessions_new, 1);
        return make_session(run, &external);
    }
    atomic_fetch_add(&run->importer->report.sessions_known, 1);
    snprintf(run->session, sizeof(run->session), "%s", reply->sessions[0]->id);
    return look_at_session(run);
}

// pi's leaf is the last entry of the file. If parents came late, another entry was appended last.
int pi_session_move_head(PiRun *run)
{
    Importer *importer = run->importer;
    RewindSessionRequest request = REWIND_SESSION_REQUEST__INIT;
    CLEANUP(reply_freep) RewindSessionResponse *reply = NULL;
    if (run->file.count == 0) return STATUS_OK;
    request.message_id = run->file.entries[run->file.count - 1].store_id;
    request.session_id = run->session;
    if (strcmp(request.message_id, run->last) == 0) return STATUS_OK;
    int status = tine_rewind_session(importer->tine, &importer->call, &request, &reply);
    return status ? pi_run_fail_call(run, ENTRY_NONE) : STATUS_OK;
}

int pi_session_update(PiRun *run)
{
    Importer *importer = run->importer;
    const PiModel *said = &run->model;
    SessionField mask[2];
    UpdateSessionRequest request = UPDATE_SESSION_REQUEST__INIT;
    CLEANUP(reply_freep) UpdateSessionResponse *reply = NULL;
    request.session_id = run->session;
    request.mask = mask;
    ModelRef model = MODEL_REF__INIT;
    if (said->name && said->is_wanted) {
        model.provider = said->provider;
        model.name = said->name;
        request.model = &model;
        mask[request.n_mask++] = SESSION_FIELD_MODEL;
    }
    if (run->is_rewritten) {
        request.data_json = run->header;
        request.data_version = run->version;
        mask[request.n_mask++] = SESSION_FIELD_DATA_JSON;
    }
    if (request.n_mask == 0) return STATUS_OK;
    int status = tine_update_session(importer->tine, &importer->call, &request, &reply);
    return status ? pi_run_fail_call(run, ENTRY_NONE) : STATUS_OK;
}
