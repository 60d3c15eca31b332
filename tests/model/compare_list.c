// Comparing listings of sessions and of events.

#include <stdlib.h>

#include "base/limits.h"
#include "compare.h"

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

static bool text_matches(const char *wanted, const char *actual)
{
    return !*wanted || strcmp(wanted, actual) == 0;
}

// Lower case of ASCII and of the two-byte letters that the generator uses.
static void fold(const char *text, char *out)
{
    size_t i = 0;
    for (; text[i]; i++) {
        unsigned char byte = (unsigned char)text[i];
        bool is_latin = i > 0 && (unsigned char)text[i - 1] == 0xC3;
        if (byte >= 'A' && byte <= 'Z') byte = (unsigned char)(byte + 32);
        if (is_latin && byte >= 0x80 && byte <= 0x9E && byte != 0x97) {
            byte = (unsigned char)(byte + 32);
        }
        out[i] = (char)byte;
    }
    out[i] = '\0';
}

static bool contains(const char *text, const char *folded_query)
{
    char folded[TITLE_BYTES_MAX + 1]; // the longest of what is looked at
    fold(text, folded);
    return strstr(folded, folded_query) != NULL;
}

static bool query_matches(const ModelSession *session, const char *query)
{
    if (!*query) return true;
    char folded[300], preview[300];
    fold(query, folded);
    model_first_preview(session, preview);
    const Session *record = session->record;
    return contains(record->slug, folded) || contains(record->title, folded) ||
           contains(record->project_dir, folded) || contains(preview, folded);
}

static bool listing_shows(const Run *run, const ListSessionsRequest *request,
                          const ModelSession *session)
{
    const Session *record = session->record;
    if (session->is_tombstone) return false;
    bool is_deleted = record->deleted_at != 0;
    if (request->deleted == DELETED_FILTER_ONLY && !is_deleted) return false;
    bool hides_deleted = request->deleted == DELETED_FILTER_UNSPECIFIED ||
                         request->deleted == DELETED_FILTER_EXCLUDE;
    if (hides_deleted && is_deleted) return false;
    bool is_archived = record->archived_at != 0;
    if (request->archived == ARCHIVED_FILTER_ONLY && !is_archived) return false;
    if (request->archived == ARCHIVED_FILTER_EXCLUDE && is_archived) return false;
    if (request->kind && request->kind != record->kind) return false;
    if (request->status && request->status != model_status(session, run->now_ms)) return false;
    if (model_last_active_at(session) < request->active_since) return false;
    const char *source = record->external ? record->external->source : "";
    return text_matches(request->project_dir, record->project_dir) &&
           text_matches(request->parent_id, record->parent_id) &&
           text_matches(request->workspace_id, record->workspace_id) &&
           text_matches(request->account_id, record->account_id) &&
           text_matches(request->project_id, record->project_id) &&
           text_matches(request->role_name, record->role_name) &&
           text_matches(request->external_source, source) && query_matches(session, request->query);
}

typedef struct Row {
    ModelSession *session;
    int64_t order; // last_active_at, or 0
} Row;

static int newest_first(const void *a, const void *b)
{
    const Row *x = a, *y = b;
    if (x->order != y->order) return x->order < y->order ? 1 : -1;
    return -strcmp(x->session->id, y->session->id);
}

static void random_filters(Run *run, ListSessionsRequest *request, const Session *like)
{
    static const char *const QUERIES[] = {"ALPHA", "ß", "über", "tine", "word", "é", "a", "Ä"};
    if (run_chance(run, 20)) request->project_dir = like->project_dir;
    if (run_chance(run, 15)) request->kind = like->kind;
    if (run_chance(run, 15)) request->parent_id = like->parent_id;
    if (run_chance(run, 15)) request->status = (SessionStatus)(1 + run_below(run, 3));
    if (run_chance(run, 15)) request->workspace_id = like->workspace_id;
    if (run_chance(run, 15)) request->account_id = like->account_id;
    if (run_chance(run, 15)) request->project_id = like->project_id;
    if (run_chance(run, 15)) request->role_name = like->role_name;
    if (run_chance(run, 10) && like->external) request->external_source = like->external->source;
    if (run_chance(run, 50)) request->deleted = (DeletedFilter)run_below(run, 4);
    if (run_chance(run, 20)) request->archived = (ArchivedFilter)run_below(run, 4);
    if (run_chance(run, 20)) request->query = text_of(CONTENT_PICK(run, QUERIES));
}

static void check_rows(Run *run, const Row *rows, size_t count, Session *const *sessions,
                       size_t actual)
{
    for (size_t i = 0; i < count && i < actual; i++) {
        if (strcmp(sessions[i]->id, rows[i].session->id) != 0) {
            run_differs(run, "session %s is listed where %s should be", sessions[i]->id,
                        rows[i].session->id);
        }
        if (run_below(run, 8) == 0) {
            run_compare_session(run, sessions[i], rows[i].session, /* is_brief= */ true);
        }
    }
    if (actual != count) run_differs(run, "%zu sessions are listed, not %zu", actual, count);
}

void compare_listing(Run *run)
{
    ListSessionsRequest request = LIST_SESSIONS_REQUEST__INIT;
    Model *model = &run->model;
    if (model->count == 0) return;
    ModelSession *like = model->sessions[run_below(run, model->count)];
    random_filters(run, &request, like->record);
    request.order = (SessionOrder)run_below(run, 3);
    if (run_chance(run, 15)) request.active_since = model_last_active_at(like);
    Row *rows = run_alloc(run, model->count * sizeof(Row));
    size_t count = 0;
    for (size_t i = 0; i < model->count; i++) {
        ModelSession *session = model->sessions[i];
        if (!listing_shows(run, &request, session)) continue;
        bool is_by_active = request.order == SESSION_ORDER_LAST_ACTIVE;
        rows[count++] = (Row){session, is_by_active ? model_last_active_at(session) : 0};
    }
    qsort(rows, count, sizeof(Row), newest_first);
    Pages pages = compare_read_pages(run, RUN_LIST_SESSIONS, &request.base, count);
    check_rows(run, rows, count, (Session *const *)pages.records, pages.count);
    run_forget(run);
}

static bool resolve_finds(const ResolveSessionRequest *request, const ModelSession *session)
{
    const Session *record = session->record;
    if (session->is_tombstone) return false;
    if (request->by_case == RESOLVE_SESSION_REQUEST__BY_ID_PREFIX) {
        return strncmp(session->id, request->id_prefix, strlen(request->id_prefix)) == 0;
    }
    if (request->by_case == RESOLVE_SESSION_REQUEST__BY_SLUG) {
        return strcmp(record->slug, request->slug) == 0;
    }
    return record->external && strcmp(record->external->source, request->external->source) == 0 &&
           strcmp(record->external->id, request->external->id) == 0;
}

void compare_resolve(Run *run)
{
    ResolveSessionRequest request = RESOLVE_SESSION_REQUEST__INIT;
    Model *model = &run->model;
    if (model->count == 0) return;
    ModelSession *like = model->sessions[run_below(run, model->count)];
    request.by_case = RESOLVE_SESSION_REQUEST__BY_ID_PREFIX;
    request.id_prefix = run_text(run, "%.*s", (int)(4 + run_below(run, 23)), like->id);
    if (*like->record->slug && run_chance(run, 40)) {
        request.by_case = RESOLVE_SESSION_REQUEST__BY_SLUG;
        request.slug = like->record->slug;
    } else if (like->record->external && run_chance(run, 60)) {
        request.by_case = RESOLVE_SESSION_REQUEST__BY_EXTERNAL;
        request.external = like->record->external;
    }
    Row *rows = run_alloc(run, model->count * sizeof(Row));
    size_t count = 0;
    for (size_t i = 0; i < model->count; i++) {
        if (resolve_finds(&request, model->sessions[i])) rows[count++].session = model->sessions[i];
    }
    qsort(rows, count, sizeof(Row), newest_first);
    request.limit = (uint32_t)run_below(run, 30);
    size_t shown = request.limit ? request.limit : 20;
    ResolveSessionResponse *response = RUN_CALL(run, RESOLVE_SESSION, ResolveSession, &request, "");
    check_rows(run, rows, shown < count ? shown : count, response->sessions, response->n_sessions);
    RUN_CHECK(run, (response->ambiguous != 0) == (count > 1));
    run_forget(run);
}

static void check_event(Run *run, const Event *actual, const ExpectedEvent *wanted)
{
    Event expected = EVENT__INIT;
    expected.sequence = wanted->sequence;
    expected.previous_session_sequence = wanted->previous;
    expected.instance_id = actual->instance_id;
    expected.session_id = text_of(wanted->session_id);
    expected.type = text_of(wanted->type);
    expected.message_id = text_of(wanted->message_id);
    expected.record_id = text_of(wanted->record_id);
    expected.operation_id = text_of(wanted->operation_id);
    expected.role = wanted->role;
    expected.created_at = wanted->created_at;
    expected.totals = wanted->totals;
    expected.n_totals = wanted->total_count;
    expected.data_json = text_of(wanted->data_json);
    run_compare(run, "event", &actual->base, &expected.base);
}

// Published events go with their session.
static bool event_may_be_gone(const Run *run, const ExpectedEvent *event)
{
    bool is_published = strchr(event->type, '.') == NULL ||
                        strncmp(event->type, "agent.", 6) == 0 ||
                        strncmp(event->type, "tool.", 5) == 0;
    return is_published && *event->session_id && !model_session(&run->model, event->session_id);
}

// Passes over what was purged and compares the next that must be there.
static void check_next_event(Run *run, const Event *actual, size_t *next)
{
    while (*next < run->event_count && run->events[*next].sequence != actual->sequence &&
           event_may_be_gone(run, &run->events[*next])) {
        (*next)++;
    }
    if (*next == run->event_count) {
        run_differs(run, "event %llu (%s) is too much", (unsigned long long)actual->sequence,
                    actual->type);
    }
    check_event(run, actual, &run->events[(*next)++]);
}

// One session's events alone.
static void check_session_events(Run *run)
{
    if (run->event_count == 0) return;
    const char *id = run->events[run_below(run, run->event_count)].session_id;
    if (!model_session(&run->model, id)) return;
    ListEventsRequest request = LIST_EVENTS_REQUEST__INIT;
    request.after_sequence = run->compared_event_sequence;
    request.session_id = text_of(id);
    ListEventsResponse *response = RUN_CALL(run, LIST_EVENTS, ListEvents, &request, "");
    size_t at = 0;
    for (size_t i = 0; i < run->event_count; i++) {
        if (strcmp(run->events[i].session_id, id) != 0) continue;
        if (at == response->n_events) {
            run_differs(run, "event %llu of session %s is missing",
                        (unsigned long long)run->events[i].sequence, id);
        }
        check_event(run, response->events[at++], &run->events[i]);
    }
    RUN_CHECK(run, at == response->n_events);
}

void compare_events(Run *run)
{
    ListEventsRequest request = LIST_EVENTS_REQUEST__INIT;
    request.after_sequence = run->compared_event_sequence;
    size_t next = 0;
    ListEventsResponse *response;
    do {
        request.limit = (uint32_t)run_below(run, 300);
        response = RUN_CALL(run, LIST_EVENTS, ListEvents, &request, "");
        for (size_t i = 0; i < response->n_events; i++) {
            check_next_event(run, response->events[i], &next);
        }
        request.after_sequence = response->next_after_sequence;
    } while (response->more);
    for (; next < run->event_count; next++) {
        if (event_may_be_gone(run, &run->events[next])) continue;
        run_differs(run, "event %llu (%s) is missing",
                    (unsigned long long)run->events[next].sequence, run->events[next].type);
    }
    check_session_events(run);
    RUN_CHECK(run, response->newest_sequence == run->last_event_sequence);
    RUN_CHECK(run, request.after_sequence == run->last_event_sequence);
    for (size_t i = 0; i < run->event_count; i++)
        free(run->events[i].totals);
    run->event_count = 0;
    run->compared_event_sequence = run->last_event_sequence;
    run_forget(run);
}
