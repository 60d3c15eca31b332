// GetMessage: by id, and by session and external id.

#include "entries.h"

static const char *by_external_ok(Fixture *f, const char *session, External *external)
{
    SessionExternal by = {.session_id = CHARS(session), .external = external};
    return CALL_OK(f, get_message, GetMessage,
                   {.by_case = GET_MESSAGE_REQUEST__BY_SESSION_EXTERNAL, .session_external = &by})
        ->message->id;
}

static void by_external_fails(Fixture *f, const char *session, External *external,
                              const char *reason)
{
    SessionExternal by = {.session_id = CHARS(session), .external = external};
    CALL_FAILS(f, get_message, GetMessage, reason,
               {.by_case = GET_MESSAGE_REQUEST__BY_SESSION_EXTERNAL, .session_external = &by});
}

static void by_id_fails(Fixture *f, const char *id, const char *reason)
{
    CALL_FAILS(f, get_message, GetMessage, reason,
               {.by_case = GET_MESSAGE_REQUEST__BY_MESSAGE_ID, .message_id = CHARS(id)});
}

TEST(get_message_by_id)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_ok(f, session, ROLE_USER, "m1");
    const char *m2 = append_ok(f, session, ROLE_USER, "m2");
    CHECK_STR(message_ok(f, m2)->parts[0]->text->text, "m2");
}

TEST(get_message_by_external_id_within_its_session)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *other = session_ok(f);
    External external = {.source = "pi", .id = "7"};
    NewMessage message = {.role = ROLE_USER, .external = &external};
    const char *here = entry_ok(f, session, &message)->id;
    const char *there = entry_ok(f, other, &message)->id;
    CHECK_STR(by_external_ok(f, session, &external), here);
    CHECK_STR(by_external_ok(f, other, &external), there);
    by_external_fails(f, session, &(External){.source = "pi", .id = "8"}, "MESSAGE_NOT_FOUND");
    by_external_fails(f, session, &(External){.source = "p", .id = "i7"}, "MESSAGE_NOT_FOUND");
    by_external_fails(f, UNKNOWN_ID, &external, "SESSION_NOT_FOUND");
    by_external_fails(f, "", &external, "INVALID_ARGUMENT");
    by_external_fails(f, session, NULL, "INVALID_ARGUMENT");
    by_external_fails(f, fork_ok(f, session, NULL), &external, "MESSAGE_NOT_FOUND");
}

TEST(get_message_refuses_a_request_without_an_id)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    CALL_FAILS(f, get_message, GetMessage, "INVALID_ARGUMENT", {.by_case = 0});
    by_id_fails(f, "", "INVALID_ARGUMENT");
    CHECK(strstr(f->status.message, "message_id"));
    by_id_fails(f, "m1", "INVALID_ARGUMENT");
    by_id_fails(f, UNKNOWN_ID, "MESSAGE_NOT_FOUND");
    by_id_fails(f, session, "MESSAGE_NOT_FOUND");
}

TEST(get_message_finds_a_deleted_one)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    External external = {.source = "pi", .id = "7"};
    const char *id =
        entry_ok(f, session, &(NewMessage){.role = ROLE_USER, .external = &external})->id;
    message_delete_ok(f, id);
    CHECK_EQ(message_ok(f, id)->deleted_at, f->now_ms);
    CHECK_STR(by_external_ok(f, session, &external), id);
}

TEST(get_message_works_in_a_deleted_session_and_not_in_a_purged_one)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    External external = {.source = "pi", .id = "7"};
    const char *id =
        entry_ok(f, session, &(NewMessage){.role = ROLE_USER, .external = &external})->id;
    delete_ok(f, session);
    CHECK_STR(message_ok(f, id)->id, id);
    CHECK_STR(by_external_ok(f, session, &external), id);
    purge_ok(f, session, /* keep_for_forks= */ false);
    by_id_fails(f, id, "MESSAGE_NOT_FOUND");
    by_external_fails(f, session, &external, "SESSION_NOT_FOUND");
    purges_settle(f);
    by_id_fails(f, id, "MESSAGE_NOT_FOUND");
}

TEST(get_message_reads_what_a_tombstone_keeps_for_its_forks)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = append_ok(f, session, ROLE_USER, "kept");
    fork_ok(f, session, id);
    CHECK(purge_ok(f, session, /* keep_for_forks= */ true));
    purges_settle(f);
    CHECK_STR(message_ok(f, id)->parts[0]->text->text, "kept");
}
