// Comparing sums of the ledger with the calls that the model has.

#include "compare.h"
#include "operate.h"

enum { DAY_MS = 24 * 3600 * 1000, PAGE_COUNT_MAX = 10000 };

typedef struct Sums {
    CostSum *rows;
    size_t count;
} Sums;

static bool is_same_group(const CostSum *a, const CostSum *b)
{
    if (strcmp(a->session_id, b->session_id) != 0 || strcmp(a->project_dir, b->project_dir) != 0 ||
        a->day_at != b->day_at || (a->model != NULL) != (b->model != NULL)) {
        return false;
    }
    return !a->model || (strcmp(a->model->provider, b->model->provider) == 0 &&
                         strcmp(a->model->name, b->model->name) == 0);
}

// Adds a row to that of its group, which may be new. There must be room.
static void sums_add(Run *run, Sums *sums, const CostSum *row)
{
    size_t i = 0;
    while (i < sums->count && !is_same_group(&sums->rows[i], row))
        i++;
    CostSum *sum = &sums->rows[i];
    if (i == sums->count) {
        *sum = *row;
        sum->call_count = 0;
        sum->totals = RUN_NEW(run, Totals);
        tine__v1__totals__init(sum->totals);
        sums->count++;
    }
    sum->call_count += row->call_count;
    if (row->totals) totals_plus(sum->totals, row->totals);
}

static bool is_below(const ModelSession *session, const char *id, bool with_descendants)
{
    const ModelSession *at = session;
    while (with_descendants && at && strcmp(at->id, id) != 0)
        at = at->parent;
    return at && strcmp(at->id, id) == 0;
}

static bool session_counts(const SummarizeCostRequest *request, const ModelSession *session)
{
    if (session->is_tombstone) return false;
    bool is_of_project =
        !*request->project_dir || strcmp(request->project_dir, session->record->project_dir) == 0;
    return is_of_project && (!*request->session_id ||
                             is_below(session, request->session_id, request->with_descendants));
}

static void call_sum(Run *run, const SummarizeCostRequest *request, const ModelSession *session,
                     const CallRecord *call, Sums *sums)
{
    int64_t at = call->created_at;
    if (request->created_since && at < request->created_since) return;
    if (request->created_until && at >= request->created_until) return;
    CostSum row = COST_SUM__INIT;
    Totals totals = TOTALS__INIT;
    row.call_count = 1;
    if (call->usage) {
        totals.input_tokens = call->usage->input_tokens;
        totals.output_tokens = call->usage->output_tokens;
        totals.cache_read_tokens = call->usage->cache_read_tokens;
        totals.cache_write_tokens = call->usage->cache_write_tokens;
        totals.cost_nano_usd = call->usage->cost_nano_usd;
    }
    row.totals = &totals;
    if (request->by == COST_GROUP_SESSION) row.session_id = text_of(session->id);
    if (request->by == COST_GROUP_TREE) row.session_id = session->record->root_id;
    if (request->by == COST_GROUP_PROJECT) row.project_dir = session->record->project_dir;
    if (request->by == COST_GROUP_MODEL) row.model = call->resolved;
    if (request->by == COST_GROUP_MODEL && !row.model) row.model = call->requested;
    if (request->by == COST_GROUP_DAY) row.day_at = at / DAY_MS * DAY_MS;
    sums_add(run, sums, &row);
}

static Sums sums_expected(Run *run, const SummarizeCostRequest *request)
{
    size_t count = 0;
    for (size_t i = 0; i < run->model.count; i++)
        count += run->model.sessions[i]->call_count;
    Sums sums = {.rows = run_alloc(run, count * sizeof(CostSum))};
    for (size_t i = 0; i < run->model.count; i++) {
        const ModelSession *session = run->model.sessions[i];
        if (!session_counts(request, session)) continue;
        for (size_t j = 0; j < session->call_count; j++)
            call_sum(run, request, session, session->calls[j], &sums);
    }
    return sums;
}

static void random_request(Run *run, SummarizeCostRequest *request)
{
    request->by = (CostGroup)(1 + run_below(run, 5));
    const ModelSession *session = pick_live(run);
    if (!session) return;
    if (run_chance(run, 40)) {
        request->session_id = text_of(session->id);
        request->with_descendants = run_chance(run, 70);
    }
    if (run_chance(run, 20)) request->project_dir = session->record->project_dir;
    if (session->call_count == 0) return;
    int64_t at = session->calls[run_below(run, session->call_count)]->created_at;
    if (run_chance(run, 20)) request->created_since = at;
    if (run_chance(run, 20)) request->created_until = at;
}

void compare_cost(Run *run)
{
    SummarizeCostRequest request = SUMMARIZE_COST_REQUEST__INIT;
    random_request(run, &request);
    Sums expected = sums_expected(run, &request);
    Sums actual = {.rows = run_alloc(run, (expected.count + 1) * sizeof(CostSum))};
    for (size_t pages = 0;; pages++) {
        if (pages == PAGE_COUNT_MAX) run_differs(run, "SummarizeCost has no end");
        request.page_bytes = run_chance(run, 50) ? 0 : 200 + (uint32_t)run_below(run, 3000);
        SummarizeCostResponse *response =
            RUN_CALL(run, SUMMARIZE_COST, SummarizeCost, &request, "");
        for (size_t i = 0; i < response->n_rows; i++) {
            if (actual.count > expected.count) run_differs(run, "SummarizeCost has too many rows");
            sums_add(run, &actual, response->rows[i]);
        }
        if (!*response->next_cursor) break;
        request.cursor = response->next_cursor;
    }
    if (actual.count != expected.count) {
        run_differs(run, "SummarizeCost by %d has %zu groups, not %zu", (int)request.by,
                    actual.count, expected.count);
    }
    for (size_t i = 0; i < expected.count; i++) {
        size_t at = 0;
        while (at < actual.count && !is_same_group(&actual.rows[at], &expected.rows[i]))
            at++;
        if (at == actual.count) run_differs(run, "SummarizeCost lacks a group");
        run_compare(run, "cost", &actual.rows[at].base, &expected.rows[i].base);
    }
}
