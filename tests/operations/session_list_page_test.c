// ListSessions: limits, bytes and cursors.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "session_steps.h"

static void make_sessions(Fixture *f, int count)
{
    for (int i = 0; i < count; i++) {
        char slug[16];
        snprintf(slug, sizeof(slug), "s%d", i);
        slug_session_ok(f, slug);
    }
}

TEST(a_page_has_50_sessions_unless_asked)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    make_sessions(f, 51);
    ListSessionsResponse *page = CALL_OK(f, list_sessions, ListSessions, {.limit = 0});
    CHECK_EQ(page->n_sessions, 50);
    ListSessionsResponse *rest =
        CALL_OK(f, list_sessions, ListSessions, {.cursor = page->next_cursor});
    CHECK_EQ(rest->n_sessions, 1);
    CHECK_STR(rest->sessions[0]->slug, "s0");
    CHECK_STR(rest->next_cursor, "");
}

TEST(a_page_that_holds_all_has_no_cursor)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    make_sessions(f, 3);
    ListSessionsResponse *page = CALL_OK(f, list_sessions, ListSessions, {.limit = 3});
    CHECK_EQ(page->n_sessions, 3);
    CHECK_STR(page->next_cursor, "");
}

TEST(the_limit_is_taken_at_its_maximum_and_refused_past_it)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    make_sessions(f, 2);
    CHECK_EQ(CALL_OK(f, list_sessions, ListSessions, {.limit = SESSION_LIST_LIMIT_MAX})->n_sessions,
             2);
    CALL_FAILS(f, list_sessions, ListSessions, "INVALID_ARGUMENT",
               {.limit = SESSION_LIST_LIMIT_MAX + 1});
    CALL_OK(f, list_sessions, ListSessions, {.page_bytes = PAGE_BYTES_MAX});
    CALL_FAILS(f, list_sessions, ListSessions, "INVALID_ARGUMENT",
               {.page_bytes = PAGE_BYTES_MAX + 1});
}

TEST(pages_of_one_list_everything_once_in_both_orders)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    make_sessions(f, 5); // all active at the same time: the id decides
    const char *orders[] = {"s4 s3 s2 s1 s0", "s4 s3 s2 s1 s0", "s4 s3 s2 s1 s0"};
    for (int order = SESSION_ORDER_UNSPECIFIED; order <= SESSION_ORDER_LAST_ACTIVE; order++) {
        ListSessionsRequest request = {.order = (SessionOrder)order, .limit = 1};
        CHECK_STR(listed_slugs(f, request), orders[order]);
    }
}

TEST(pages_of_one_through_each_index)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *parent = slug_session_ok(f, "parent");
    for (int i = 0; i < 6; i++) {
        char slug[16], id[16];
        snprintf(slug, sizeof(slug), "s%d", i);
        snprintf(id, sizeof(id), "%d", i);
        External external = {.source = "pi", .id = id};
        NewSession wanted = new_session();
        wanted.slug = slug;
        wanted.kind = SESSION_KIND_SUBAGENT;
        wanted.parent_id = CHARS(parent);
        wanted.project_dir = "/dir";
        wanted.workspace_id = i % 2 ? "odd" : "even";
        wanted.account_id = "acc";
        wanted.project_id = "p";
        wanted.role_name = "r";
        wanted.external = &external;
        const char *session = create_ok(f, &wanted)->id;
        if (i == 5) delete_ok(f, session);
    }
    const ListSessionsRequest requests[] = {
        {.project_dir = "/dir"}, {.parent_id = CHARS(parent)}, {.account_id = "acc"},
        {.project_id = "p"},     {.role_name = "r"},           {.external_source = "pi"},
    };
    for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
        ListSessionsRequest request = requests[i];
        request.limit = 1;
        CHECK_STR(listed_slugs(f, request), "s4 s3 s2 s1 s0");
        request.deleted = DELETED_FILTER_INCLUDE;
        CHECK_STR(listed_slugs(f, request), "s5 s4 s3 s2 s1 s0");
        request.workspace_id = "odd";
        CHECK_STR(listed_slugs(f, request), "s5 s3 s1");
        request.deleted = DELETED_FILTER_ONLY;
        CHECK_STR(listed_slugs(f, request), "s5");
    }
}

TEST(pages_of_one_by_activity_with_caller_set_times)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const int64_t times[] = {3000, 1000, 3000, 2000};
    for (int i = 0; i < 4; i++) {
        char slug[16];
        snprintf(slug, sizeof(slug), "s%d", i);
        NewSession wanted = new_session();
        wanted.slug = slug;
        wanted.created_at = times[i];
        create_ok(f, &wanted);
    }
    ListSessionsRequest request = {.order = SESSION_ORDER_LAST_ACTIVE, .limit = 1};
    CHECK_STR(listed_slugs(f, request), "s2 s0 s3 s1");
    request.active_since = 2000;
    CHECK_STR(listed_slugs(f, request), "s2 s0 s3");
}

TEST(sessions_made_between_two_pages_are_not_in_the_second)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    make_sessions(f, 3);
    ListSessionsResponse *first = CALL_OK(f, list_sessions, ListSessions, {.limit = 1});
    slug_session_ok(f, "new");
    ListSessionsRequest rest = {.limit = 1, .cursor = first->next_cursor};
    CHECK_STR(listed_slugs(f, rest), "s1 s0");
}

TEST(a_cursor_outlives_the_session_it_was_made_at)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    make_sessions(f, 3);
    for (int order = SESSION_ORDER_CREATED; order <= SESSION_ORDER_LAST_ACTIVE; order++) {
        const char *extra = slug_session_ok(f, "extra");
        ListSessionsResponse *first =
            CALL_OK(f, list_sessions, ListSessions, {.limit = 1, .order = (SessionOrder)order});
        CHECK_STR(first->sessions[0]->slug, "extra");
        purge_ok(f, extra, false);
        purges_settle(f);
        ListSessionsRequest rest = {
            .limit = 1, .order = (SessionOrder)order, .cursor = first->next_cursor};
        CHECK_STR(listed_slugs(f, rest), "s2 s1 s0");
    }
}

TEST(a_cursor_works_after_a_restart_with_another_limit)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    make_sessions(f, 4);
    ListSessionsResponse *first = CALL_OK(f, list_sessions, ListSessions, {.limit = 1});
    fixture_reopen(f);
    ListSessionsRequest rest = {.limit = 10, .page_bytes = 100000, .cursor = first->next_cursor};
    CHECK_STR(listed_slugs(f, rest), "s2 s1 s0");
}

TEST(a_cursor_of_another_listing_is_refused)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    make_sessions(f, 3);
    char *cursor = CALL_OK(f, list_sessions, ListSessions, {.limit = 1})->next_cursor;
    CALL_FAILS(f, list_sessions, ListSessions, "INVALID_ARGUMENT",
               {.cursor = cursor, .query = "s"});
    CALL_FAILS(f, list_sessions, ListSessions, "INVALID_ARGUMENT",
               {.cursor = cursor, .project_dir = "/project"});
    CALL_FAILS(f, list_sessions, ListSessions, "INVALID_ARGUMENT",
               {.cursor = cursor, .order = SESSION_ORDER_LAST_ACTIVE});
    CALL_FAILS(f, list_sessions, ListSessions, "INVALID_ARGUMENT",
               {.cursor = cursor, .deleted = DELETED_FILTER_INCLUDE});
    const char *s = session_ok(f);
    append_ok(f, s, ROLE_USER, "m1");
    append_ok(f, s, ROLE_USER, "m2");
    char *of_messages =
        CALL_OK(f, messages_for_session, MessagesForSession, {.session_id = CHARS(s), .limit = 1})
            ->next_cursor;
    CALL_FAILS(f, list_sessions, ListSessions, "INVALID_ARGUMENT", {.cursor = of_messages});
}

TEST(a_cursor_that_was_never_given_out_is_refused)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    make_sessions(f, 2);
    char *cursor = CALL_OK(f, list_sessions, ListSessions, {.limit = 1})->next_cursor;
    CALL_FAILS(f, list_sessions, ListSessions, "INVALID_ARGUMENT", {.cursor = "x"});
    CALL_FAILS(f, list_sessions, ListSessions, "INVALID_ARGUMENT", {.cursor = cursor + 1});
    cursor[0] = 'f'; // its version
    CALL_FAILS(f, list_sessions, ListSessions, "INVALID_ARGUMENT", {.cursor = cursor});
    char *fits = text_of_size(CURSOR_BYTES_MAX), *too_long = text_of_size(CURSOR_BYTES_MAX + 1);
    CALL_FAILS(f, list_sessions, ListSessions, "INVALID_ARGUMENT", {.cursor = fits});
    CALL_FAILS(f, list_sessions, ListSessions, "TOO_LONG", {.cursor = too_long});
    free(fits);
    free(too_long);
}

static size_t reply_bytes(const ListSessionsResponse *page)
{
    return tine__v1__list_sessions_response__get_packed_size(page);
}

TEST(page_bytes_bounds_the_whole_reply)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    make_sessions(f, 30);
    char *cursor = "";
    size_t pages = 0, count = 0;
    do {
        ListSessionsResponse *page =
            CALL_OK(f, list_sessions, ListSessions, {.page_bytes = 2000, .cursor = cursor});
        CHECK(reply_bytes(page) <= 2000);
        CHECK(page->n_sessions > 0);
        count += page->n_sessions;
        cursor = page->next_cursor;
        pages++;
    } while (*cursor);
    CHECK_EQ(count, 30);
    CHECK(pages > 1);
}

TEST(page_bytes_counts_a_status_that_is_over)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    enum { SESSIONS = 400, BYTES = 48 * 1024 };
    SessionField mask = SESSION_FIELD_STATUS;
    for (int i = 0; i < SESSIONS; i++) {
        CALL_OK(f, update_session, UpdateSession,
                {.session_id = CHARS(session_ok(f)),
                 .n_mask = 1,
                 .mask = &mask,
                 .status = SESSION_STATUS_BUSY,
                 .status_until = f->now_ms});
    }
    f->now_ms += 1000;
    ListSessionsRequest request = {.limit = SESSIONS, .page_bytes = BYTES};
    request.base.descriptor = &tine__v1__list_sessions_request__descriptor;
    fixture_fill(&request.base);
    uint8_t body[64], envelope[256];
    size_t body_size = tine__v1__list_sessions_request__pack(&request, body);
    Request wire = {.base.descriptor = &tine__v1__request__descriptor,
                    .method = "/tine.v1.StoreService/ListSessions",
                    .body = {body_size, body}};
    fixture_fill(&wire.base);
    Slice reply = fixture_send(f, slice(envelope, tine__v1__request__pack(&wire, envelope)));
    CHECK_EQ(f->status.code, 0);
    CHECK(reply.size > BYTES / 2);
    CHECK(reply.size <= BYTES);
}

TEST(a_page_holds_one_session_whatever_its_bytes)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    make_sessions(f, 3);
    ListSessionsRequest request = {.page_bytes = 1};
    ListSessionsResponse *page = CALL_OK(f, list_sessions, ListSessions, request);
    CHECK_EQ(page->n_sessions, 1);
    CHECK_STR(listed_slugs(f, request), "s2 s1 s0");
}

TEST(the_default_page_is_bounded_by_bytes_too)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    NewSession wanted = new_session();
    wanted.metadata_json = json_of_size(METADATA_JSON_BYTES_MAX);
    for (int i = 0; i < 20; i++)
        create_ok(f, &wanted);
    ListSessionsResponse *page = CALL_OK(f, list_sessions, ListSessions, {.limit = 20});
    CHECK(reply_bytes(page) <= PAGE_BYTES_DEFAULT);
    CHECK(page->n_sessions >= 10 && page->n_sessions < 20);
    CHECK(*page->next_cursor);
    free(wanted.metadata_json);
}

TEST(a_page_ends_after_10000_scanned_sessions_with_a_cursor)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    NewSession wanted = new_session();
    wanted.slug = "needle";
    create_ok(f, &wanted);
    wanted.slug = "";
    for (int i = 0; i < SCANNED_RECORDS_MAX; i++) {
        CreateSessionRequest request = {
            .base.descriptor = &tine__v1__create_session_request__descriptor, .session = &wanted};
        fixture_fill(&request.base);
        CreateSessionResponse *response;
        CHECK_EQ(tine_create_session(f->tine, NULL, &request, &response), 0);
        protobuf_c_message_free_unpacked(&response->base, NULL);
    }
    for (int order = SESSION_ORDER_CREATED; order <= SESSION_ORDER_LAST_ACTIVE; order++) {
        ListSessionsRequest request = {.query = "needle", .order = (SessionOrder)order};
        ListSessionsResponse *page = CALL_OK(f, list_sessions, ListSessions, request);
        CHECK_EQ(page->n_sessions, 0);
        CHECK(*page->next_cursor);
        request.cursor = page->next_cursor;
        page = CALL_OK(f, list_sessions, ListSessions, request);
        CHECK_EQ(page->n_sessions, 1);
        CHECK_STR(page->next_cursor, "");
    }
    const char *needle = CALL_OK(f, resolve_session, ResolveSession,
                                 {.by_case = RESOLVE_SESSION_REQUEST__BY_SLUG, .slug = "needle"})
                             ->sessions[0]
                             ->id;
    purge_ok(f, needle, false); // exactly 10 000 are left: the scan sees the end
    ListSessionsResponse *page = CALL_OK(f, list_sessions, ListSessions, {.query = "needle"});
    CHECK_EQ(page->n_sessions, 0);
    CHECK_STR(page->next_cursor, "");
}
