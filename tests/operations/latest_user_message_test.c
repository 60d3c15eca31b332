// LatestUserMessageId: the newest user turn of the current history's own entries.

#include "session_steps.h"

static const char *latest(Fixture *f, const char *session)
{
    return CALL_OK(f, latest_user_message_id, LatestUserMessageId, {.session_id = CHARS(session)})
        ->message_id;
}

TEST(a_session_without_user_messages_has_no_latest_one)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    CHECK_STR(latest(f, s), "");
    append_ok(f, s, ROLE_ASSISTANT, "a1");
    append_ok(f, s, ROLE_TOOL, "t1");
    CHECK_STR(latest(f, s), "");
}

TEST(the_newest_user_message_wins)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    append_ok(f, s, ROLE_USER, "u1");
    f->now_ms -= 10000;
    const char *u2 = append_ok(f, s, ROLE_USER, "u2");
    append_ok(f, s, ROLE_ASSISTANT, "a1");
    CHECK_STR(latest(f, s), u2);
}

TEST(a_user_message_without_text_counts)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    append_ok(f, s, ROLE_USER, "u1");
    NewMessage empty = {.role = ROLE_USER};
    const char *u2 =
        CALL_OK(f, append_message, AppendMessage, {.session_id = CHARS(s), .message = &empty})
            ->receipt->id;
    CHECK_STR(latest(f, s), u2);
    CHECK_STR(get_ok(f, s)->last_user_message, "u1");
}

TEST(only_turns_count_not_what_is_injected_in_the_users_name)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *u1 = append_ok(f, s, ROLE_USER, "u1");
    NewMessage *injected = text_message(f, ROLE_USER, "context");
    injected->kind = MESSAGE_KIND_INJECTED;
    CALL_OK(f, append_message, AppendMessage, {.session_id = CHARS(s), .message = injected});
    CHECK_STR(latest(f, s), u1);
}

TEST(a_deleted_user_message_does_not_count)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *u1 = append_ok(f, s, ROLE_USER, "u1");
    const char *u2 = append_ok(f, s, ROLE_USER, "u2");
    CALL_OK(f, delete_message, DeleteMessage, {.message_id = CHARS(u2)});
    CHECK_STR(latest(f, s), u1);
}

TEST(an_inherited_user_message_does_not_count)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    append_ok(f, s, ROLE_USER, "u1");
    const char *fork = fork_ok(f, s, NULL);
    CHECK_STR(latest(f, fork), "");
    const char *f1 = append_ok(f, fork, ROLE_USER, "f1");
    CHECK_STR(latest(f, fork), f1);
}

TEST(a_rewind_moves_the_latest_user_message_back)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *u1 = append_ok(f, s, ROLE_USER, "u1");
    const char *a1 = append_ok(f, s, ROLE_ASSISTANT, "a1");
    append_ok(f, s, ROLE_USER, "u2");
    rewind_ok(f, s, a1);
    CHECK_STR(latest(f, s), u1);
    append_ok(f, s, ROLE_ASSISTANT, "a2"); // behind an origin of its own
    CHECK_STR(latest(f, s), u1);
    rewind_ok(f, s, "");
    CHECK_STR(latest(f, s), "");
}

TEST(a_fork_that_went_back_into_its_ancestor_has_no_latest_user_message)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *u1 = append_ok(f, s, ROLE_USER, "u1");
    const char *fork = fork_ok(f, s, NULL);
    append_ok(f, fork, ROLE_USER, "f1");
    rewind_ok(f, fork, u1);
    CHECK_STR(latest(f, fork), "");
}

TEST(the_latest_user_message_of_a_deleted_session_is_still_told)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *u1 = append_ok(f, s, ROLE_USER, "u1");
    delete_ok(f, s);
    CHECK_STR(latest(f, s), u1);
}

TEST(the_latest_user_message_of_no_session_is_not_found)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    CALL_FAILS(f, latest_user_message_id, LatestUserMessageId, "SESSION_NOT_FOUND",
               {.session_id = UNKNOWN_ID});
    CALL_FAILS(f, latest_user_message_id, LatestUserMessageId, "INVALID_ARGUMENT",
               {.session_id = ""});
}
