// Operations on sessions: creating, forking, changing.

#include <stdlib.h>

#include "operate.h"

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

static const char *const SLUGS[] = {"alpha", "beta", "gamma", "delta", "alpha-2", "beta-3",
                                    "Äpfel", "zeta", "eta",   "theta", "iota",    "kappa"};
static const char *const TITLES[] = {"Fix the Parser", "größe", "ÜBER", "tests", "alpha work"};
static const char *const DIRECTORIES[] = {"/src/tine", "/src/Other", "/home/é"};
static const char *const NAMES[] = {"ann", "bob", "Zoë"};
static const char *const ACCOUNTS[] = {"a-1", "a-2"};
static const char *const PROJECTS[] = {"p-1", "p-2"};
static const char *const SPACES[] = {"w-1", "w-2", "w-3"};
static const char *const ROLES[] = {"coder", "critic"};
static const char *const SOURCES[] = {"pi", "hecate"};
static const char *const JSONS[] = {"{}", "{\"a\":[1,2]}"};

static const Session *model_slug_holder(const Run *run, const char *slug, const ModelSession *self)
{
    for (size_t i = 0; i < run->model.count; i++) {
        const ModelSession *session = run->model.sessions[i];
        if (session == self || session->is_tombstone) continue;
        if (strcmp(session->record->slug, slug) == 0) return session->record;
    }
    return NULL;
}

static bool external_is_held(const Run *run, const External *external)
{
    for (size_t i = 0; external && i < run->model.count; i++) {
        const ModelSession *session = run->model.sessions[i];
        const External *other = session->record->external;
        if (session->is_tombstone || !other || strcmp(other->source, external->source)) continue;
        if (strcmp(other->id, external->id) == 0) return true;
    }
    return false;
}

static bool slug_is_refused(const Run *run, const char *slug, SlugPolicy policy,
                            const ModelSession *self)
{
    return *slug && policy == SLUG_POLICY_UNIQUE && model_slug_holder(run, slug, self);
}

// Checks the slug that a session got: with a suffix, any number from 2 on may be added.
static void slug_check(Run *run, const char *got, const char *wanted, SlugPolicy policy,
                       const ModelSession *self)
{
    if (policy != SLUG_POLICY_UNIQUE_SUFFIX || !*wanted || !model_slug_holder(run, wanted, self)) {
        if (strcmp(got, wanted) != 0) run_differs(run, "the slug is '%s', not '%s'", got, wanted);
        return;
    }
    size_t size = strlen(wanted);
    if (strncmp(got, wanted, size) != 0 || got[size] != '-') {
        run_differs(run, "the slug '%s' is not '%s' with a suffix", got, wanted);
    }
    unsigned number = (unsigned)strtoul(got + size + 1, NULL, 10);
    if (number < 2 || model_slug_holder(run, got, self)) {
        run_differs(run, "the suffix of slug '%s' is not one that was free", got);
    }
}

typedef struct ForkPlace {
    const char *reason;
    bool is_fork;
    Entry *head; // what the new session begins after
    char *id;    // to send; NULL: at_head
    bool is_before;
} ForkPlace;

static ForkPlace pick_fork_place(Run *run, ModelSession *source)
{
    ForkPlace place = {.reason = "", .is_fork = true};
    if (run_chance(run, 35)) {
        place.head = source ? source->head : NULL;
        return place;
    }
    place.is_before = run_chance(run, 40);
    EntryPick pick = pick_entry(run, source);
    place.id = text_of(pick.id);
    place.reason = pick.reason;
    if (!pick.entry || !source) return place;
    if (!model_in_tree(&run->model, source, pick.entry)) {
        place.reason = "NOT_IN_TREE";
        return place;
    }
    place.head = place.is_before ? pick.entry->parent : pick.entry;
    return place;
}

static bool is_too_deep(Run *run, const ForkPlace *place)
{
    uint32_t depth_max = run->engine_options.store.fork_depth_max;
    return depth_max && place->is_fork && place->head &&
           model_history_owners(&run->model, place->head) > depth_max;
}

static char *pick_slug(Run *run, SlugPolicy *out_policy)
{
    *out_policy = (SlugPolicy)run_below(run, 4);
    return text_of(run_chance(run, 50) ? "" : CONTENT_PICK(run, SLUGS));
}

static NewSession *random_session(Run *run)
{
    NewSession *session = RUN_NEW(run, NewSession);
    tine__v1__new_session__init(session);
    session->project_dir = text_of(DIRECTORIES[run_below(run, LENGTH(DIRECTORIES))]);
    session->model = content_model(run);
    session->title = text_of(CONTENT_PICK(run, TITLES));
    session->user_name = text_of(CONTENT_PICK(run, NAMES));
    session->account_id = text_of(CONTENT_PICK(run, ACCOUNTS));
    session->project_id = text_of(CONTENT_PICK(run, PROJECTS));
    session->workspace_id = text_of(CONTENT_PICK(run, SPACES));
    session->role_name = text_of(CONTENT_PICK(run, ROLES));
    if (run_chance(run, 20)) session->created_at = run->now_ms - (int64_t)run_below(run, 100000000);
    if (run_chance(run, 20)) {
        session->execution = text_of("local");
        session->data_version = text_of("v2");
        session->source_parent = text_of("elsewhere");
        session->parent_tool_use_id = text_of("call-7");
        session->metadata_json = text_of(CONTENT_PICK(run, JSONS));
        session->data_json = text_of(CONTENT_PICK(run, JSONS));
        session->system_prompt = content_text(run);
    }
    if (run_chance(run, 15)) {
        session->external = RUN_NEW(run, External);
        tine__v1__external__init(session->external);
        session->external->source = text_of(SOURCES[run_below(run, LENGTH(SOURCES))]);
        session->external->id = run_text(run, "x-%llu", (unsigned long long)run_below(run, 60));
    }
    return session;
}

// Makes a request invalid whatever it names.
static void break_session(Run *run, NewSession *session, const char **reason)
{
    if (run_below(run, 30) != 0) return;
    *reason = "INVALID_ARGUMENT";
    switch (run_below(run, 4)) {
    case 0: session->project_dir = text_of(""); break;
    case 1: session->model = NULL; break;
    case 2:
        session->metadata_json = text_of("{'single':1}");
        *reason = "INVALID_JSON";
        break;
    default:
        session->title = run_alloc(run, 1026);
        memset(session->title, 't', 1025);
        *reason = "TOO_LONG";
        break;
    }
}

ModelSession *operate_session_created(Run *run, const Session *told, const NewSession *wanted,
                                      ModelSession *parent, Entry *head, bool is_fork)
{
    run_new_id(run, told->id);
    Session record = SESSION__INIT;
    Totals totals = TOTALS__INIT;
    record.id = told->id;
    record.kind = wanted->kind ? wanted->kind : SESSION_KIND_PRIMARY;
    record.parent_id = text_of(parent ? parent->id : "");
    record.root_id = parent ? parent->record->root_id : told->id;
    record.created_at = wanted->created_at ? wanted->created_at : run->now_ms;
    record.slug = told->slug; // checked by the caller
    record.title = wanted->title;
    record.project_dir = wanted->project_dir;
    record.model = wanted->model;
    record.fork_message_id = text_of(is_fork && head ? head->id : "");
    record.parent_tool_use_id = wanted->parent_tool_use_id;
    record.user_name = wanted->user_name;
    record.account_id = wanted->account_id;
    record.project_id = wanted->project_id;
    record.workspace_id = wanted->workspace_id;
    record.role_name = wanted->role_name;
    record.execution = wanted->execution;
    record.data_version = wanted->data_version;
    record.external = wanted->external;
    record.source_parent = wanted->source_parent;
    record.metadata_json = wanted->metadata_json;
    record.system_prompt = wanted->system_prompt;
    record.data_json = wanted->data_json;
    record.updated_at = run->now_ms;
    record.status = SESSION_STATUS_IDLE;
    record.totals = &totals;
    size_t size = tine__v1__session__get_packed_size(&record);
    uint8_t *bytes = run_alloc(run, size);
    tine__v1__session__pack(&record, bytes);
    Session *copy = tine__v1__session__unpack(NULL, size, bytes);
    CHECK(copy);
    ModelSession *session = model_session_add(&run->model, copy, parent);
    session->head = is_fork ? head : NULL;
    model_read_add(session, session->head);
    ExpectedEvent *event = run_event(run, session, session->id, "session.created");
    snprintf(event->record_id, sizeof(event->record_id), "%s", record.parent_id);
    run_compare_session(run, told, session, /* is_brief= */ true);
    return session;
}

// Fills a request's fork point, which has the same shape in both requests.
static void place_create(CreateSessionRequest *request, const ForkPlace *place)
{
    if (!place->is_fork) return;
    request->fork_point_case = CREATE_SESSION_REQUEST__FORK_POINT_AT_HEAD;
    request->at_head = true;
    if (!place->id) return;
    request->fork_point_case = place->is_before
                                   ? CREATE_SESSION_REQUEST__FORK_POINT_BEFORE_MESSAGE_ID
                                   : CREATE_SESSION_REQUEST__FORK_POINT_THROUGH_MESSAGE_ID;
    if (place->is_before) {
        request->before_message_id = place->id;
    } else {
        request->through_message_id = place->id;
    }
}

void operate_create_session(Run *run)
{
    CreateSessionRequest request = CREATE_SESSION_REQUEST__INIT;
    NewSession *wanted = random_session(run);
    SessionPick parent = {.id = "", .reason = ""};
    ForkPlace place = {.reason = ""};
    if (run_chance(run, 60)) {
        parent = pick_session(run);
        wanted->parent_id = text_of(parent.id);
        wanted->kind = run_chance(run, 70) ? SESSION_KIND_SUBAGENT : SESSION_KIND_PRIMARY;
    }
    bool has_parent = *parent.id != '\0';
    if (has_parent ? run_chance(run, 40) : run_below(run, 50) == 0) {
        place = pick_fork_place(run, parent.session);
    }
    request.session = wanted;
    place_create(&request, &place);
    wanted->slug = pick_slug(run, &request.slug_policy);

    const char *reason = strcmp(parent.reason, "SESSION_NOT_FOUND") ? "" : parent.reason;
    if (!*reason) reason = place.reason;
    if (!*reason && external_is_held(run, wanted->external)) reason = "EXTERNAL_TAKEN";
    if (!*reason && is_too_deep(run, &place)) reason = "FORK_CHAIN_TOO_DEEP";
    bool is_refused = slug_is_refused(run, wanted->slug, request.slug_policy, NULL);
    if (!*reason && is_refused) reason = "SLUG_TAKEN";
    bool is_orphan_fork = place.is_fork && !has_parent;
    bool is_aimless = has_parent && !place.is_fork && wanted->kind == SESSION_KIND_PRIMARY;
    bool is_malformed = strcmp(place.reason, "INVALID_ARGUMENT") == 0 ||
                        (has_parent && strcmp(parent.reason, "INVALID_ARGUMENT") == 0);
    if (is_orphan_fork || is_aimless || is_malformed) reason = "INVALID_ARGUMENT";
    break_session(run, wanted, &reason);

    CreateSessionResponse *response =
        RUN_CALL(run, CREATE_SESSION, CreateSession, &request, reason);
    if (!response) return;
    slug_check(run, response->session->slug, wanted->slug, request.slug_policy, NULL);
    operate_session_created(run, response->session, wanted, parent.session, place.head,
                            place.is_fork);
}

void operate_fork_session(Run *run)
{
    ForkSessionRequest request = FORK_SESSION_REQUEST__INIT;
    SessionPick source = pick_session(run);
    request.session_id = text_of(source.id);
    ForkPlace place = pick_fork_place(run, source.session);
    if (!place.id) {
        request.fork_point_case = FORK_SESSION_REQUEST__FORK_POINT_AT_HEAD;
        request.at_head = true;
    } else if (place.is_before) {
        request.fork_point_case = FORK_SESSION_REQUEST__FORK_POINT_BEFORE_MESSAGE_ID;
        request.before_message_id = place.id;
    } else {
        request.fork_point_case = FORK_SESSION_REQUEST__FORK_POINT_THROUGH_MESSAGE_ID;
        request.through_message_id = place.id;
    }
    if (run_chance(run, 20)) request.model = content_model(run);
    request.slug = pick_slug(run, &request.slug_policy);
    const char *reason = source.reason;
    if (!*reason || strcmp(place.reason, "INVALID_ARGUMENT") == 0) reason = place.reason;
    if (!*reason && is_too_deep(run, &place)) reason = "FORK_CHAIN_TOO_DEEP";
    bool is_refused = slug_is_refused(run, request.slug, request.slug_policy, NULL);
    if (!*reason && is_refused) reason = "SLUG_TAKEN";
    if (strcmp(source.reason, "INVALID_ARGUMENT") == 0) reason = source.reason;
    if (run_below(run, 40) == 0) {
        request.fork_point_case = FORK_SESSION_REQUEST__FORK_POINT__NOT_SET;
        reason = "INVALID_ARGUMENT";
    }

    ForkSessionResponse *response = RUN_CALL(run, FORK_SESSION, ForkSession, &request, reason);
    if (!response) return;
    slug_check(run, response->session->slug, request.slug, request.slug_policy, NULL);
    const Session *from = source.session->record;
    NewSession wanted = NEW_SESSION__INIT;
    wanted.project_dir = from->project_dir;
    wanted.model = request.model ? request.model : from->model;
    wanted.title = from->title;
    wanted.system_prompt = from->system_prompt;
    wanted.user_name = from->user_name;
    wanted.account_id = from->account_id;
    wanted.project_id = from->project_id;
    wanted.workspace_id = from->workspace_id;
    wanted.role_name = from->role_name;
    wanted.execution = from->execution;
    operate_session_created(run, response->session, &wanted, source.session, place.head,
                            /* is_fork= */ true);
}

static void apply_field(Run *run, ModelSession *session, const UpdateSessionRequest *request,
                        SessionField field)
{
    Session *record = session->record;
    switch (field) {
    case SESSION_FIELD_TITLE: record_set(&record->title, request->title); break;
    case SESSION_FIELD_STATUS:
        record->status = request->status ? request->status : SESSION_STATUS_IDLE;
        record->status_until = request->status_until;
        break;
    case SESSION_FIELD_SYSTEM_PROMPT:
        record_set(&record->system_prompt, request->system_prompt);
        break;
    case SESSION_FIELD_USER_NAME: record_set(&record->user_name, request->user_name); break;
    case SESSION_FIELD_MODEL:
        record_set(&record->model->provider, request->model->provider);
        record_set(&record->model->name, request->model->name);
        break;
    case SESSION_FIELD_ROLE_NAME: record_set(&record->role_name, request->role_name); break;
    case SESSION_FIELD_EXECUTION: record_set(&record->execution, request->execution); break;
    case SESSION_FIELD_ACCOUNT_ID: record_set(&record->account_id, request->account_id); break;
    case SESSION_FIELD_PROJECT_ID: record_set(&record->project_id, request->project_id); break;
    case SESSION_FIELD_WORKSPACE_ID:
        record_set(&record->workspace_id, request->workspace_id);
        break;
    case SESSION_FIELD_METADATA_JSON:
        record_set(&record->metadata_json, request->metadata_json);
        break;
    case SESSION_FIELD_DATA_JSON:
        record_set(&record->data_json, request->data_json);
        record_set(&record->data_version, request->data_version);
        break;
    case SESSION_FIELD_ARCHIVED:
        if (!request->archived) {
            record->archived_at = 0;
        } else if (!record->archived_at) {
            record->archived_at = run->now_ms;
        }
        break;
    case SESSION_FIELD_UNSPECIFIED: break;
    }
}

static void fill_update(Run *run, UpdateSessionRequest *request)
{
    request->title = text_of(CONTENT_PICK(run, TITLES));
    request->status = (SessionStatus)run_below(run, 4);
    if (run_chance(run, 60)) {
        request->status_until = run->now_ms;
        if (run_chance(run, 70)) request->status_until += (int64_t)run_below(run, 20000) - 10000;
    }
    request->system_prompt = content_text(run);
    request->user_name = text_of(CONTENT_PICK(run, NAMES));
    request->model = run_chance(run, 90) ? content_model(run) : NULL;
    request->role_name = text_of(CONTENT_PICK(run, ROLES));
    request->execution = text_of(run_chance(run, 50) ? "remote" : "");
    request->account_id = text_of(CONTENT_PICK(run, ACCOUNTS));
    request->project_id = text_of(CONTENT_PICK(run, PROJECTS));
    request->workspace_id = text_of(CONTENT_PICK(run, SPACES));
    request->metadata_json = text_of(CONTENT_PICK(run, JSONS));
    request->data_json = text_of(CONTENT_PICK(run, JSONS));
    request->data_version = text_of(run_chance(run, 50) ? "v3" : "");
    request->archived = run_chance(run, 25);
}

void operate_update_session(Run *run)
{
    UpdateSessionRequest request = UPDATE_SESSION_REQUEST__INIT;
    SessionPick pick = pick_session(run);
    if (pick.session && run_chance(run, 40)) { // an archived one: they are few
        for (size_t i = 0; i < run->model.count; i++) {
            ModelSession *session = run->model.sessions[i];
            if (session->is_tombstone || !session->record->archived_at) continue;
            pick = (SessionPick){session->id, session, ""};
        }
    }
    request.session_id = text_of(pick.id);
    fill_update(run, &request);
    SessionField mask[6];
    request.mask = mask;
    request.n_mask = run_below(run, 40) ? 1 + run_below(run, LENGTH(mask)) : 0;
    const char *reason = pick.reason;
    bool is_archived = pick.session && pick.session->record->archived_at;
    if (is_archived) reason = "SESSION_ARCHIVED";
    bool is_valid = request.n_mask > 0;
    bool holds_archived = false;
    for (size_t i = 0; i < request.n_mask; i++) {
        mask[i] = run_below(run, 100) ? (SessionField)(1 + run_below(run, 13))
                                      : SESSION_FIELD_UNSPECIFIED;
        if (i == 0 && is_archived && run_chance(run, 80)) mask[i] = SESSION_FIELD_ARCHIVED;
        if (mask[i] == SESSION_FIELD_UNSPECIFIED) is_valid = false;
        if (mask[i] == SESSION_FIELD_MODEL && !request.model) is_valid = false;
        if (mask[i] == SESSION_FIELD_ARCHIVED) holds_archived = true;
    }
    if (holds_archived && strcmp(reason, "SESSION_ARCHIVED") == 0) reason = "";
    if (pick.session && pick.session->record->deleted_at) reason = "SESSION_DELETED";
    if (!is_valid) reason = "INVALID_ARGUMENT";

    UpdateSessionResponse *response =
        RUN_CALL(run, UPDATE_SESSION, UpdateSession, &request, reason);
    if (!response) return;
    for (size_t i = 0; i < request.n_mask; i++)
        apply_field(run, pick.session, &request, mask[i]);
    pick.session->record->updated_at = run->now_ms;
    run_event(run, pick.session, pick.id, "session.updated");
    run_compare_session(run, response->session, pick.session, /* is_brief= */ true);
}

void operate_rename_session(Run *run)
{
    RenameSessionRequest request = RENAME_SESSION_REQUEST__INIT;
    SessionPick pick = pick_session(run);
    request.session_id = text_of(pick.id);
    request.slug_policy = (SlugPolicy)run_below(run, 4);
    request.slug = text_of(run_chance(run, 10) ? "" : CONTENT_PICK(run, SLUGS));
    const char *reason = pick_refusal(&pick);
    bool is_same = pick.session && strcmp(pick.session->record->slug, request.slug) == 0;
    bool is_refused = slug_is_refused(run, request.slug, request.slug_policy, pick.session);
    if (!*reason && !is_same && is_refused) reason = "SLUG_TAKEN";
    RenameSessionResponse *response =
        RUN_CALL(run, RENAME_SESSION, RenameSession, &request, reason);
    if (!response) return;
    const char *slug = response->session->slug;
    if (!is_same) slug_check(run, slug, request.slug, request.slug_policy, pick.session);
    if (strcmp(pick.session->record->slug, slug) != 0) {
        record_set(&pick.session->record->slug, slug);
        pick.session->record->updated_at = run->now_ms;
        run_event(run, pick.session, pick.id, "session.updated");
    }
    run_compare_session(run, response->session, pick.session, /* is_brief= */ true);
}
