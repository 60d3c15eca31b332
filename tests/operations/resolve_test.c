// ResolveSession: by id prefix, by slug, by external id.

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "session_steps.h"

static ResolveSessionRequest by_prefix(const char *prefix)
{
    return (ResolveSessionRequest){.by_case = RESOLVE_SESSION_REQUEST__BY_ID_PREFIX,
                                   .id_prefix = CHARS(prefix)};
}

static ResolveSessionRequest by_slug(const char *slug)
{
    return (ResolveSessionRequest){.by_case = RESOLVE_SESSION_REQUEST__BY_SLUG,
                                   .slug = CHARS(slug)};
}

static ResolveSessionRequest by_external(External *external)
{
    return (ResolveSessionRequest){.by_case = RESOLVE_SESSION_REQUEST__BY_EXTERNAL,
                                   .external = external};
}

TEST(resolve_by_id_prefix_finds_the_one_that_begins_so)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *old = session_ok(f);
    f->now_ms += INT64_C(1000) * 3600 * 24 * 365; // another time: another beginning
    const char *young = session_ok(f);
    char prefix[27];
    for (int size = 26; size >= 10; size--) {
        snprintf(prefix, sizeof(prefix), "%.*s", size, old);
        ResolveSessionResponse *found =
            CALL_OK(f, resolve_session, ResolveSession, by_prefix(prefix));
        CHECK_EQ(found->n_sessions, 1);
        CHECK_STR(found->sessions[0]->id, old);
        CHECK(!found->ambiguous);
    }
    snprintf(prefix, sizeof(prefix), "%.10s", young);
    CHECK_STR(CALL_OK(f, resolve_session, ResolveSession, by_prefix(prefix))->sessions[0]->id,
              young);
}

TEST(resolve_by_a_short_prefix_says_ambiguous_and_lists_newest_first)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *first = session_ok(f), *second = session_ok(f);
    char prefix[5];
    snprintf(prefix, sizeof(prefix), "%.4s", first);
    ResolveSessionResponse *found = CALL_OK(f, resolve_session, ResolveSession, by_prefix(prefix));
    CHECK_EQ(found->n_sessions, 2);
    CHECK_STR(found->sessions[0]->id, second);
    CHECK_STR(found->sessions[1]->id, first);
    CHECK(found->ambiguous);
}

TEST(resolve_takes_an_id_prefix_of_4_to_26_characters)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *s = session_ok(f);
    char longer[28];
    snprintf(longer, sizeof(longer), "%sA", s);
    const char *refused[] = {"", "01A", longer, "01ai", "01I1", "8000", "01 A", "01A\xC3\xA9"};
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
        CALL_FAILS(f, resolve_session, ResolveSession, "INVALID_ARGUMENT", by_prefix(refused[i]));
    }
    CHECK_EQ(CALL_OK(f, resolve_session, ResolveSession, by_prefix("7ZZZ"))->n_sessions, 0);
    CHECK_EQ(CALL_OK(f, resolve_session, ResolveSession, by_prefix("0000"))->n_sessions, 0);
}

TEST(resolve_by_slug_is_exact)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    slug_session_ok(f, "sl");
    const char *first = slug_session_ok(f, "slug"), *second = slug_session_ok(f, "slug");
    slug_session_ok(f, "Slug");
    ResolveSessionResponse *found = CALL_OK(f, resolve_session, ResolveSession, by_slug("slug"));
    CHECK_EQ(found->n_sessions, 2);
    CHECK_STR(found->sessions[0]->id, second);
    CHECK_STR(found->sessions[1]->id, first);
    CHECK(found->ambiguous);
    CHECK(!CALL_OK(f, resolve_session, ResolveSession, by_slug("Slug"))->ambiguous);
}

TEST(resolve_by_external_id_needs_the_source_too)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    External external = {.source = "pi", .id = "1"}, other = {.source = "hecate", .id = "1"},
             no_source = {.id = "1"}, no_id = {.source = "pi"};
    NewSession wanted = new_session();
    wanted.external = &external;
    const char *s = create_ok(f, &wanted)->id;
    ResolveSessionResponse *found =
        CALL_OK(f, resolve_session, ResolveSession, by_external(&external));
    CHECK_EQ(found->n_sessions, 1);
    CHECK_STR(found->sessions[0]->id, s);
    CHECK_EQ(CALL_OK(f, resolve_session, ResolveSession, by_external(&other))->n_sessions, 0);
    CALL_FAILS(f, resolve_session, ResolveSession, "INVALID_ARGUMENT", by_external(&no_source));
    CALL_FAILS(f, resolve_session, ResolveSession, "INVALID_ARGUMENT", by_external(&no_id));
}

TEST(resolve_finds_deleted_sessions_and_no_purged_ones)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *deleted = slug_session_ok(f, "s"), *purged = slug_session_ok(f, "s");
    delete_ok(f, deleted);
    purge_ok(f, purged, false);
    ResolveSessionResponse *found = CALL_OK(f, resolve_session, ResolveSession, by_slug("s"));
    CHECK_EQ(found->n_sessions, 1);
    CHECK_STR(found->sessions[0]->id, deleted);
    CHECK_EQ(CALL_OK(f, resolve_session, ResolveSession, by_prefix(purged))->n_sessions, 0);
    CHECK_STR(CALL_OK(f, resolve_session, ResolveSession, by_prefix(deleted))->sessions[0]->id,
              deleted);
}

TEST(nothing_found_is_an_empty_list)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    ResolveSessionResponse *found = CALL_OK(f, resolve_session, ResolveSession, by_slug("none"));
    CHECK_EQ(found->n_sessions, 0);
    CHECK(!found->ambiguous);
    CHECK_EQ(CALL_OK(f, resolve_session, ResolveSession, by_prefix(UNKNOWN_ID))->n_sessions, 0);
}

TEST(resolve_needs_something_to_look_for)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    CALL_FAILS(f, resolve_session, ResolveSession, "INVALID_ARGUMENT", {.limit = 1});
    CALL_FAILS(f, resolve_session, ResolveSession, "INVALID_ARGUMENT", by_slug(""));
}

TEST(resolve_returns_20_unless_asked_and_1000_at_most)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    for (int i = 0; i < 21; i++)
        slug_session_ok(f, "s");
    ResolveSessionRequest request = by_slug("s");
    ResolveSessionResponse *found = CALL_OK(f, resolve_session, ResolveSession, request);
    CHECK_EQ(found->n_sessions, 20);
    CHECK(found->ambiguous);
    request.limit = 1;
    found = CALL_OK(f, resolve_session, ResolveSession, request);
    CHECK_EQ(found->n_sessions, 1);
    CHECK(found->ambiguous); // also when the other ones are not shown
    request.limit = SESSION_LIST_LIMIT_MAX;
    CHECK_EQ(CALL_OK(f, resolve_session, ResolveSession, request)->n_sessions, 21);
    request.limit = SESSION_LIST_LIMIT_MAX + 1;
    CALL_FAILS(f, resolve_session, ResolveSession, "INVALID_ARGUMENT", request);
}

TEST(resolved_sessions_come_without_system_prompt_and_data)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    NewSession wanted = new_session();
    wanted.slug = "s";
    wanted.system_prompt = "be good";
    create_ok(f, &wanted);
    Session *found = CALL_OK(f, resolve_session, ResolveSession, by_slug("s"))->sessions[0];
    CHECK_STR(found->system_prompt, "");
    CHECK_STR(found->project_dir, "/project");
}
