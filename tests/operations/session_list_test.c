// ListSessions: filters, queries and orders. Pages are in session_list_page_test.c.

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "os/random.h"
#include "session_steps.h"

TEST(sessions_are_listed_newest_first)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    slug_session_ok(f, "a");
    f->now_ms -= 5000; // ids rise all the same
    slug_session_ok(f, "b");
    f->now_ms += 9000;
    slug_session_ok(f, "c");
    ListSessionsRequest all = {.limit = 0};
    CHECK_STR(listed_slugs(f, all), "c b a");
}

TEST(an_empty_store_lists_nothing)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    for (int order = SESSION_ORDER_UNSPECIFIED; order <= SESSION_ORDER_LAST_ACTIVE; order++) {
        ListSessionsResponse *page =
            CALL_OK(f, list_sessions, ListSessions, {.order = (SessionOrder)order});
        CHECK_EQ(page->n_sessions, 0);
        CHECK_STR(page->next_cursor, "");
    }
}

TEST(listed_sessions_carry_totals_and_previews_but_not_system_prompt_and_data)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    NewSession wanted = new_session();
    wanted.system_prompt = "be good";
    wanted.data_json = "{}";
    wanted.metadata_json = "{}";
    const char *s = create_ok(f, &wanted)->id;
    Usage usage = {.input_tokens = 3, .cost_nano_usd = 7};
    NewMessage *message = text_message(f, ROLE_USER, "u1");
    message->usage = &usage;
    CALL_OK(f, append_message, AppendMessage, {.session_id = CHARS(s), .message = message});
    append_ok(f, s, ROLE_ASSISTANT, "a1");
    append_ok(f, s, ROLE_USER, "u2");
    Session *listed = CALL_OK(f, list_sessions, ListSessions, {.limit = 1})->sessions[0];
    CHECK_STR(listed->id, s);
    check_totals(listed->own_totals, 3, 0, 0, 0, 7);
    CHECK_STR(listed->first_message_preview, "u1");
    CHECK_STR(listed->last_user_message, "u2");
    CHECK_STR(listed->last_agent_message, "a1");
    CHECK_STR(listed->metadata_json, "{}");
    CHECK_STR(listed->system_prompt, "");
    CHECK_STR(listed->data_json, "");
    CHECK_EQ(listed->message_count, 3);
}

// Four sessions that differ in every field that can be filtered.
static const char *fill_for_filters(Fixture *f)
{
    const char *a = slug_session_ok(f, "a");
    External external = {.source = "pi", .id = "1"};
    NewSession wanted = new_session();
    wanted.slug = "b";
    wanted.project_dir = "/other";
    wanted.kind = SESSION_KIND_SUBAGENT;
    wanted.parent_id = CHARS(a);
    wanted.workspace_id = "w";
    wanted.account_id = "acc";
    wanted.project_id = "p";
    wanted.role_name = "r";
    wanted.external = &external;
    create_ok(f, &wanted);
    wanted = new_session();
    wanted.slug = "c";
    wanted.project_dir = "/other";
    wanted.workspace_id = "w";
    wanted.created_at = 1000;
    const char *c = create_ok(f, &wanted)->id;
    SessionField mask = SESSION_FIELD_STATUS;
    CALL_OK(f, update_session, UpdateSession,
            {.session_id = CHARS(c), .n_mask = 1, .mask = &mask, .status = SESSION_STATUS_BUSY});
    const char *d = slug_session_ok(f, "d");
    delete_ok(f, d);
    return a;
}

TEST(each_filter_alone)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *a = fill_for_filters(f);
    const struct {
        ListSessionsRequest request;
        const char *expected;
    } rows[] = {
        {{.limit = 0}, "c b a"},
        {{.project_dir = "/other"}, "c b"},
        {{.project_dir = "/oth"}, ""},
        {{.kind = SESSION_KIND_SUBAGENT}, "b"},
        {{.kind = SESSION_KIND_PRIMARY}, "c a"},
        {{.parent_id = CHARS(a)}, "b"},
        {{.parent_id = UNKNOWN_ID}, ""},
        {{.status = SESSION_STATUS_BUSY}, "c"},
        {{.status = SESSION_STATUS_IDLE}, "b a"},
        {{.status = SESSION_STATUS_RETRY}, ""},
        {{.workspace_id = "w"}, "c b"},
        {{.account_id = "acc"}, "b"},
        {{.project_id = "p"}, "b"},
        {{.role_name = "r"}, "b"},
        {{.role_name = "R"}, ""},
        {{.external_source = "pi"}, "b"},
        {{.external_source = "hecate"}, ""},
        {{.deleted = DELETED_FILTER_EXCLUDE}, "c b a"},
        {{.deleted = DELETED_FILTER_INCLUDE}, "d c b a"},
        {{.deleted = DELETED_FILTER_ONLY}, "d"},
        {{.active_since = 1001}, "b a"},
        {{.active_since = 1000}, "c b a"},
        {{.query = "OTHER"}, "c b"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        CHECK_STR(listed_slugs(f, rows[i].request), rows[i].expected);
    }
}

TEST(filters_are_anded)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *a = fill_for_filters(f);
    const struct {
        ListSessionsRequest request;
        const char *expected;
    } rows[] = {
        {{.workspace_id = "w", .status = SESSION_STATUS_BUSY}, "c"},
        {{.workspace_id = "w", .account_id = "acc"}, "b"},
        {{.workspace_id = "w", .project_dir = "/project"}, ""},
        {{.parent_id = CHARS(a), .kind = SESSION_KIND_PRIMARY}, ""},
        {{.parent_id = CHARS(a), .deleted = DELETED_FILTER_ONLY}, ""},
        {{.project_dir = "/project", .deleted = DELETED_FILTER_ONLY}, "d"},
        {{.project_dir = "/project", .deleted = DELETED_FILTER_INCLUDE}, "d a"},
        {{.external_source = "pi", .query = "b"}, "b"},
        {{.external_source = "pi", .query = "c"}, ""},
        {{.project_dir = "/other", .active_since = 1001}, "b"},
        {{.project_dir = "/other",
          .kind = SESSION_KIND_SUBAGENT,
          .parent_id = CHARS(a),
          .status = SESSION_STATUS_IDLE,
          .workspace_id = "w",
          .account_id = "acc",
          .project_id = "p",
          .role_name = "r",
          .external_source = "pi",
          .active_since = 2000,
          .query = "other"},
         "b"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        ListSessionsRequest request = rows[i].request;
        CHECK_STR(listed_slugs(f, request), rows[i].expected);
        request.order = SESSION_ORDER_LAST_ACTIVE; // another source of candidates, the same rules
        if (!strchr(rows[i].expected, ' ')) {
            CHECK_STR(listed_slugs(f, request), rows[i].expected);
        }
    }
}

TEST(a_filter_follows_an_update_of_its_field)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *s = slug_session_ok(f, "s");
    SessionField mask[] = {SESSION_FIELD_WORKSPACE_ID, SESSION_FIELD_ROLE_NAME};
    CALL_OK(f, update_session, UpdateSession,
            {.session_id = CHARS(s),
             .n_mask = 2,
             .mask = mask,
             .workspace_id = "w1",
             .role_name = "r"});
    CALL_OK(f, update_session, UpdateSession,
            {.session_id = CHARS(s), .n_mask = 1, .mask = mask, .workspace_id = "w2"});
    ListSessionsRequest old = {.workspace_id = "w1"}, new = {.workspace_id = "w2"},
                        other = {.role_name = "r"};
    CHECK_STR(listed_slugs(f, old), "");
    CHECK_STR(listed_slugs(f, new), "s");
    CHECK_STR(listed_slugs(f, other), "s");
}

TEST(a_query_looks_into_slug_title_project_dir_and_first_preview)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    NewSession wanted = new_session();
    wanted.slug = "needle-slug";
    create_ok(f, &wanted);
    wanted.slug = "by-title";
    wanted.title = "a NEEDLE in hay";
    create_ok(f, &wanted);
    wanted.title = "";
    wanted.slug = "by-dir";
    wanted.project_dir = "/home/Needle/x";
    create_ok(f, &wanted);
    const char *by_text = slug_session_ok(f, "by-text");
    append_ok(f, by_text, ROLE_USER, "find the needle");
    append_ok(f, slug_session_ok(f, "not-assistant"), ROLE_ASSISTANT, "needle");
    const char *second = slug_session_ok(f, "not-second");
    append_ok(f, second, ROLE_USER, "first");
    append_ok(f, second, ROLE_USER, "needle");
    ListSessionsRequest query = {.query = "nEEdle"};
    CHECK_STR(listed_slugs(f, query), "by-text by-dir by-title needle-slug");
    query.query = "";
    CHECK_STR(listed_slugs(f, query),
              "not-second not-assistant by-text by-dir by-title needle-slug");
    query.query = "nothing like it";
    CHECK_STR(listed_slugs(f, query), "");
}

TEST(a_query_ignores_case_beyond_ascii)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    NewSession wanted = new_session();
    wanted.slug = "upper";
    wanted.title = "CAF\xC3\x89 \xD0\x96"; // CAFÉ Ж
    create_ok(f, &wanted);
    wanted.slug = "lower";
    wanted.title = "caf\xC3\xA9 \xD0\xB6"; // café ж
    create_ok(f, &wanted);
    wanted.slug = "plain";
    wanted.title = "cafe";
    create_ok(f, &wanted);
    const char *queries[] = {"caf\xC3\xA9", "CAF\xC3\x89", "\xC3\x89 \xD0\x96", "\xD0\xB6"};
    for (size_t i = 0; i < sizeof(queries) / sizeof(*queries); i++) {
        ListSessionsRequest request = {.query = CHARS(queries[i])};
        CHECK_STR(listed_slugs(f, request), "lower upper");
    }
    ListSessionsRequest request = {.query = "CAFE"};
    CHECK_STR(listed_slugs(f, request), "plain");
}

TEST(a_query_that_folds_to_more_bytes_still_finds)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    NewSession wanted = new_session();
    char title[QUERY_BYTES_MAX + 1];
    for (size_t i = 0; i < QUERY_BYTES_MAX; i += 2)
        memcpy(title + i, "\xC8\xBA", 2); // Ⱥ → ⱥ
    title[QUERY_BYTES_MAX] = '\0';
    wanted.slug = "s";
    wanted.title = title;
    create_ok(f, &wanted);
    ListSessionsRequest request = {.query = title};
    CHECK_STR(listed_slugs(f, request), "s");
}

TEST(the_filter_comes_before_the_limit)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    NewSession wanted = new_session();
    wanted.title = "needle";
    wanted.slug = "old";
    create_ok(f, &wanted);
    for (int i = 0; i < 60; i++)
        session_ok(f); // more than the default limit
    ListSessionsResponse *page =
        CALL_OK(f, list_sessions, ListSessions, {.query = "needle", .limit = 1});
    CHECK_EQ(page->n_sessions, 1);
    CHECK_STR(page->sessions[0]->slug, "old");
    CHECK_STR(page->next_cursor, "");
}

TEST(filters_see_sessions_with_long_settings)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    External external = {.source = "pi", .id = "1"};
    NewSession wanted = new_session(); // so long that later fields are in later chunks
    wanted.slug = "long";
    wanted.title = text_of_size(TITLE_BYTES_MAX);
    wanted.project_dir = text_of_size(PATH_BYTES_MAX);
    wanted.workspace_id = "w";
    wanted.external = &external;
    create_ok(f, &wanted);
    ListSessionsRequest by_workspace = {.workspace_id = "w"}, by_source = {.external_source = "pi"},
                        all = {.limit = 0};
    CHECK_STR(listed_slugs(f, by_workspace), "long");
    CHECK_STR(listed_slugs(f, by_source), "long");
    CHECK_STR(listed_slugs(f, all), "long");
    free(wanted.title);
    free(wanted.project_dir);
}

TEST(last_active_order_follows_appends)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *a = slug_session_ok(f, "a"), *b = slug_session_ok(f, "b");
    slug_session_ok(f, "c");
    ListSessionsRequest active = {.order = SESSION_ORDER_LAST_ACTIVE};
    CHECK_STR(listed_slugs(f, active), "c b a"); // the same time: by id
    f->now_ms += 1000;
    append_ok(f, a, ROLE_USER, "m");
    CHECK_STR(listed_slugs(f, active), "a c b");
    f->now_ms += 1000;
    append_ok(f, a, ROLE_USER, "m"); // the last already
    append_ok(f, b, ROLE_USER, "m");
    CHECK_STR(listed_slugs(f, active), "b a c");
}

TEST(an_import_of_old_entries_is_old_although_its_session_is_new)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *slugs[] = {"live", "imported"};
    const char *ids[2];
    for (int i = 0; i < 2; i++) {
        NewSession wanted = new_session();
        wanted.slug = CHARS(slugs[i]);
        ids[i] = create_ok(f, &wanted)->id;
        NewMessage *message = text_message(f, ROLE_USER, "m");
        message->created_at = i == 0 ? f->now_ms - 10 : 1000;
        CALL_OK(f, append_message, AppendMessage,
                {.session_id = CHARS(ids[i]), .message = message});
    }
    ListSessionsRequest active = {.order = SESSION_ORDER_LAST_ACTIVE};
    CHECK_STR(listed_slugs(f, active), "live imported");
    CHECK_EQ(get_ok(f, ids[1])->last_active_at, 1000);
}

TEST(last_active_is_the_greatest_created_at_whatever_order_it_comes_in)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const int64_t times[] = {5000, 2000, 9000, 1000, 7000};
    const char *slugs[] = {"t5", "t2", "t9", "t1", "t7"};
    const char *ids[5];
    for (int i = 0; i < 5; i++) {
        NewSession wanted = new_session();
        wanted.slug = CHARS(slugs[i]);
        wanted.created_at = 500;
        ids[i] = create_ok(f, &wanted)->id;
        NewMessage *message = text_message(f, ROLE_USER, "m");
        message->created_at = times[i];
        CALL_OK(f, append_message, AppendMessage,
                {.session_id = CHARS(ids[i]), .message = message});
    }
    ListSessionsRequest active = {.order = SESSION_ORDER_LAST_ACTIVE};
    CHECK_STR(listed_slugs(f, active), "t9 t7 t5 t2 t1");
    NewMessage *older = text_message(f, ROLE_USER, "m");
    older->created_at = 600; // does not make a session older
    CALL_OK(f, append_message, AppendMessage, {.session_id = CHARS(ids[2]), .message = older});
    CHECK_STR(listed_slugs(f, active), "t9 t7 t5 t2 t1");
    CHECK_EQ(get_ok(f, ids[2])->last_active_at, 9000);
    active.active_since = 5000;
    CHECK_STR(listed_slugs(f, active), "t9 t7 t5");
    active.order = SESSION_ORDER_CREATED;
    CHECK_STR(listed_slugs(f, active), "t7 t9 t5");
}

// The sessions by (last_active_at, id), newest first, as their records say.
static int compare_active(const void *left, const void *right)
{
    const Session *a = *(Session *const *)left, *b = *(Session *const *)right;
    if (a->last_active_at != b->last_active_at) {
        return a->last_active_at < b->last_active_at ? 1 : -1;
    }
    return -strcmp(a->id, b->id);
}

static void check_active_order(Fixture *f, size_t count)
{
    ListSessionsResponse *active = CALL_OK(
        f, list_sessions, ListSessions,
        {.order = SESSION_ORDER_LAST_ACTIVE, .limit = 1000, .deleted = DELETED_FILTER_INCLUDE});
    CHECK_EQ(active->n_sessions, count);
    for (size_t i = 1; i < count; i++) {
        CHECK(compare_active(&active->sessions[i - 1], &active->sessions[i]) < 0);
    }
}

TEST(last_active_order_holds_under_random_appends_creates_and_purges)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    enum { SESSIONS = 12 };
    Random random;
    random_seed(&random, test_seed());
    const char *ids[SESSIONS];
    for (int i = 0; i < SESSIONS; i++)
        ids[i] = session_ok(f);
    for (size_t step = 0, steps = test_scaled(1500); step < steps; step++) {
        size_t i = random_below(&random, SESSIONS);
        uint64_t action = random_below(&random, 20);
        if (action == 0) {
            purge_ok(f, ids[i], false);
            NewSession wanted = new_session();
            wanted.created_at = f->now_ms - 300 + (int64_t)random_below(&random, 500);
            ids[i] = create_ok(f, &wanted)->id;
        } else {
            NewMessage *message = text_message(f, ROLE_USER, "m");
            if (action < 12) message->created_at = f->now_ms - 300 + (int64_t)action * 40;
            CALL_OK(f, append_message, AppendMessage,
                    {.session_id = CHARS(ids[i]), .message = message});
        }
        f->now_ms += (int64_t)random_below(&random, 40) - 15;
        if (step % 10 == 0) check_active_order(f, SESSIONS);
    }
    CHECK_EQ(table_rows(f, "by_active"), SESSIONS);
}

TEST(a_deleted_session_keeps_its_place_in_both_orders)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    slug_session_ok(f, "a");
    const char *b = slug_session_ok(f, "b");
    slug_session_ok(f, "c");
    delete_ok(f, b);
    ListSessionsRequest request = {.order = SESSION_ORDER_LAST_ACTIVE};
    CHECK_STR(listed_slugs(f, request), "c a");
    request.deleted = DELETED_FILTER_INCLUDE;
    CHECK_STR(listed_slugs(f, request), "c b a");
    request.deleted = DELETED_FILTER_ONLY;
    CHECK_STR(listed_slugs(f, request), "b");
}

TEST(malformed_filters_are_refused)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    CALL_FAILS(f, list_sessions, ListSessions, "INVALID_ARGUMENT", {.parent_id = "x"});
    CALL_FAILS(f, list_sessions, ListSessions, "INVALID_ARGUMENT", {.kind = (SessionKind)9});
    CALL_FAILS(f, list_sessions, ListSessions, "INVALID_ARGUMENT", {.status = (SessionStatus)9});
    CALL_FAILS(f, list_sessions, ListSessions, "INVALID_ARGUMENT", {.order = (SessionOrder)9});
    CALL_FAILS(f, list_sessions, ListSessions, "INVALID_ARGUMENT", {.deleted = (DeletedFilter)9});
    CALL_FAILS(f, list_sessions, ListSessions, "INVALID_ARGUMENT", {.active_since = -1});
    CALL_FAILS(f, list_sessions, ListSessions, "INVALID_ARGUMENT",
               {.active_since = TIME_MS_MAX + 1});
    CALL_OK(f, list_sessions, ListSessions, {.active_since = TIME_MS_MAX});
    CALL_FAILS(f, list_sessions, ListSessions, "INVALID_UTF8", {.query = "\xC3"});
}

TEST(a_query_is_taken_at_its_limit_and_refused_past_it)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    char *fits = text_of_size(QUERY_BYTES_MAX), *too_long = text_of_size(QUERY_BYTES_MAX + 1);
    CALL_OK(f, list_sessions, ListSessions, {.query = fits});
    CALL_FAILS(f, list_sessions, ListSessions, "TOO_LONG", {.query = too_long});
    free(fits);
    free(too_long);
}
