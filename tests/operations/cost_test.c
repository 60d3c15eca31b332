// SummarizeCost: the ledger summed by session, tree, project, model and day.

#include <stdio.h>

#include "base/limits.h"
#include "entries.h"

static const int64_t DAY = INT64_C(86400000);

// Records a call of model `name` that cost `cost` and took as many input tokens.
static void spend(Fixture *f, const char *session, const char *name, int64_t cost, int64_t at)
{
    ModelRef model = {.provider = "p", .name = CHARS(name)};
    Usage usage = {.input_tokens = cost, .cost_nano_usd = cost};
    NewCall call = {.requested = &model, .usage = &usage, .created_at = at};
    CALL_OK(f, record_call, RecordCall, {.session_id = CHARS(session), .call = &call});
}

static const char *named(const CostSum *row, CostGroup by, char text[64])
{
    if (by == COST_GROUP_PROJECT) return row->project_dir;
    if (by == COST_GROUP_MODEL) return row->model->name;
    if (by == COST_GROUP_DAY) {
        snprintf(text, 64, "%lld", (long long)row->day_at);
        return text;
    }
    return row->session_id;
}

// "name:count:cost …" of all pages, each row as it came.
static const char *summed(Fixture *f, SummarizeCostRequest request)
{
    char *joined = fixture_alloc(f, 4096);
    do {
        SummarizeCostResponse *page = CALL_OK(f, summarize_cost, SummarizeCost, request);
        for (size_t i = 0; i < page->n_rows; i++) {
            const CostSum *row = page->rows[i];
            char text[64];
            size_t used = strlen(joined);
            snprintf(joined + used, 4096 - used, "%s%s:%llu:%lld", used ? " " : "",
                     named(row, request.by, text), (unsigned long long)row->call_count,
                     (long long)row->totals->cost_nano_usd);
            CHECK_EQ(row->totals->input_tokens, row->totals->cost_nano_usd);
        }
        request.cursor = page->next_cursor;
    } while (*request.cursor);
    return joined;
}

static const char *in_project(Fixture *f, const char *project_dir)
{
    NewSession wanted = new_session();
    wanted.project_dir = CHARS(project_dir);
    return create_ok(f, &wanted)->id;
}

TEST(cost_is_summed_by_model_project_and_day)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *a = in_project(f, "/a"), *b = in_project(f, "/b"), *c = in_project(f, "/a");
    spend(f, a, "m", 1, DAY);
    spend(f, a, "n", 10, 2 * DAY - 1);
    spend(f, b, "m", 100, 2 * DAY);
    spend(f, c, "m", 1000, DAY + 5);
    CHECK_STR(summed(f, (SummarizeCostRequest){.by = COST_GROUP_MODEL}), "m:3:1101 n:1:10");
    CHECK_STR(summed(f, (SummarizeCostRequest){.by = COST_GROUP_PROJECT}), "/a:3:1011 /b:1:100");
    CHECK_STR(summed(f, (SummarizeCostRequest){.by = COST_GROUP_DAY}),
              "86400000:3:1011 172800000:1:100");
    CHECK_STR(summed(f, (SummarizeCostRequest){.by = COST_GROUP_MODEL, .project_dir = "/a"}),
              "m:2:1001 n:1:10");
    CHECK_STR(summed(f, (SummarizeCostRequest){.by = COST_GROUP_MODEL, .project_dir = "/none"}),
              "");
    CHECK_STR(summed(f, (SummarizeCostRequest){.by = COST_GROUP_MODEL,
                                               .created_since = DAY + 5,
                                               .created_until = 2 * DAY}),
              "n:1:10 m:1:1000");
}

TEST(cost_of_a_tree_is_that_of_forks_and_subagents_alike)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *other = session_ok(f), *root = session_ok(f);
    append_ok(f, root, ROLE_USER, "m1");
    const char *agent = subagent_ok(f, root);
    const char *fork = fork_ok(f, root, NULL);
    const char *deep = subagent_ok(f, agent), *deeper = subagent_ok(f, deep);
    const char *last = subagent_ok(f, fork);
    const char *sessions[] = {other, root, agent, fork, deep, deeper, last};
    int64_t cost = 1;
    for (size_t i = 0; i < 7; i++, cost *= 10) {
        spend(f, sessions[i], "m", cost, 0);
        spend(f, sessions[i], "m", cost, 0);
    }
    delete_ok(f, deep);
    SummarizeCostRequest request = {
        .by = COST_GROUP_TREE, .session_id = CHARS(root), .with_descendants = true};
    char wanted[512];
    snprintf(wanted, sizeof(wanted), "%s:12:2222220", root);
    CHECK_STR(summed(f, request), wanted);
    request.by = COST_GROUP_SESSION; // in preorder
    snprintf(wanted, sizeof(wanted),
             "%s:2:20 %s:2:200 %s:2:20000 %s:2:200000 %s:2:2000 %s:2:2000000", root, agent, deep,
             deeper, fork, last);
    CHECK_STR(summed(f, request), wanted);
    request.page_bytes = 1; // a row a page
    CHECK_STR(summed(f, request), wanted);
    request.session_id = CHARS(agent);
    snprintf(wanted, sizeof(wanted), "%s:2:200 %s:2:20000 %s:2:200000", agent, deep, deeper);
    CHECK_STR(summed(f, request), wanted);
    request.with_descendants = false;
    snprintf(wanted, sizeof(wanted), "%s:2:200", agent);
    CHECK_STR(summed(f, request), wanted);
    request = (SummarizeCostRequest){.by = COST_GROUP_TREE};
    snprintf(wanted, sizeof(wanted), "%s:2:2 %s:12:2222220", other, root);
    CHECK_STR(summed(f, request), wanted);
}

TEST(cost_is_of_calls_and_not_of_messages_or_totals)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    NewMessage *message = text_message(f, ROLE_ASSISTANT, "a");
    Usage usage = {.cost_nano_usd = 5};
    message->usage = &usage;
    entry_ok(f, session, message);
    Totals delta = {.cost_nano_usd = 7};
    CALL_OK(f, propagate_totals, PropagateTotals, {.session_id = CHARS(session), .delta = &delta});
    SummarizeCostRequest request = {.by = COST_GROUP_MODEL};
    CHECK_STR(summed(f, request), "");
    spend(f, session, "m", 3, 0);
    CHECK_STR(summed(f, request), "m:1:3");
    purge_ok(f, session, false);
    CHECK_STR(summed(f, request), "");
}

TEST(cost_prefers_the_model_that_answered)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    ModelRef requested = {.provider = "router", .name = "auto"};
    ModelRef resolved = {.provider = "p", .name = "m"};
    NewCall call = {.requested = &requested, .resolved = &resolved};
    CALL_OK(f, record_call, RecordCall, {.session_id = CHARS(session), .call = &call});
    CHECK_STR(summed(f, (SummarizeCostRequest){.by = COST_GROUP_MODEL}), "m:1:0");
}

TEST(cost_pages_end_after_so_many_scanned_records)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    for (size_t i = 0; i < SCANNED_RECORDS_MAX + 5; i++)
        spend(f, session, "m", 1, 0);
    SummarizeCostRequest request = {.by = COST_GROUP_MODEL};
    char wanted[64]; // the session counts too
    snprintf(wanted, sizeof(wanted), "m:%d:%d m:6:6", SCANNED_RECORDS_MAX - 1,
             SCANNED_RECORDS_MAX - 1);
    CHECK_STR(summed(f, request), wanted);
}

TEST(cost_wants_a_group_and_sessions_that_exist)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    CALL_FAILS(f, summarize_cost, SummarizeCost, "INVALID_ARGUMENT", {.by = 0});
    CHECK(strstr(f->status.message, "by is required"));
    CALL_FAILS(f, summarize_cost, SummarizeCost, "SESSION_NOT_FOUND",
               {.by = COST_GROUP_DAY, .session_id = UNKNOWN_ID});
    CALL_FAILS(f, summarize_cost, SummarizeCost, "INVALID_ARGUMENT",
               {.by = COST_GROUP_DAY, .with_descendants = true});
    CALL_FAILS(f, summarize_cost, SummarizeCost, "INVALID_ARGUMENT",
               {.by = COST_GROUP_DAY, .cursor = "x"});
    CALL_FAILS(f, summarize_cost, SummarizeCost, "INVALID_ARGUMENT",
               {.by = COST_GROUP_DAY, .page_bytes = PAGE_BYTES_MAX + 1});
}

TEST(cost_goes_on_when_the_session_that_a_page_ended_in_is_purged)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *root = session_ok(f), *first = subagent_ok(f, root), *second = subagent_ok(f, root);
    spend(f, root, "m", 1, 0);
    spend(f, first, "m", 10, 0);
    spend(f, second, "m", 100, 0);
    SummarizeCostRequest request = {.by = COST_GROUP_SESSION,
                                    .session_id = CHARS(root),
                                    .with_descendants = true,
                                    .page_bytes = 1};
    request.cursor = CALL_OK(f, summarize_cost, SummarizeCost, request)->next_cursor;
    purge_ok(f, first, false);
    purges_settle(f);
    char wanted[64];
    snprintf(wanted, sizeof(wanted), "%s:1:100", second);
    CHECK_STR(summed(f, request), wanted);
}
