// RewindSession, and appends that go elsewhere than the head: undo, clear and trees.

#include <stdio.h>

#include "session_steps.h"

static void rewind_fails(Fixture *f, const char *reason, const char *session, const char *message)
{
    CALL_FAILS(f, rewind_session, RewindSession, reason,
               {.session_id = CHARS(session), .message_id = CHARS(message)});
}

static RewindSessionRequest rewind_expecting(const char *session, const char *message,
                                             const char *expected_head)
{
    return (RewindSessionRequest){
        .session_id = CHARS(session),
        .message_id = CHARS(message),
        .expected_head_case = REWIND_SESSION_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_ID,
        .expected_head_id = CHARS(expected_head),
    };
}

static AppendMessageRequest append_at(Fixture *f, const char *session, const char *parent,
                                      const char *text)
{
    return (AppendMessageRequest){
        .session_id = CHARS(session),
        .parent_case = APPEND_MESSAGE_REQUEST__PARENT_PARENT_ID,
        .parent_id = CHARS(parent),
        .message = text_message(f, ROLE_USER, text),
    };
}

static AppendMessageRequest append_expecting(Fixture *f, const char *session,
                                             const char *expected_head, const char *text)
{
    return (AppendMessageRequest){
        .session_id = CHARS(session),
        .expected_head_case = APPEND_MESSAGE_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_ID,
        .expected_head_id = CHARS(expected_head),
        .message = text_message(f, ROLE_USER, text),
    };
}

TEST(rewind_moves_the_head_back)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *m1 = append_ok(f, s, ROLE_USER, "m1");
    append_ok(f, s, ROLE_ASSISTANT, "m2");
    Session *rewound = rewind_ok(f, s, m1);
    CHECK_STR(rewound->head_id, m1);
    CHECK_STR(history_texts(f, s), "m1");
    CHECK_STR(direct_texts(f, s), "m1");
    append_ok(f, s, ROLE_ASSISTANT, "n2");
    CHECK_STR(history_texts(f, s), "m1 n2");
}

TEST(rewind_keeps_the_log_and_what_describes_it)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    append_ok(f, s, ROLE_USER, "m1");
    const char *m2 = append_ok(f, s, ROLE_ASSISTANT, "m2");
    f->now_ms += 1000;
    Session *cleared = rewind_ok(f, s, "");
    CHECK_EQ(cleared->message_count, 2);
    CHECK_EQ(cleared->entry_count, 2);
    CHECK_EQ(cleared->next_sequence, 2);
    CHECK_STR(cleared->last_entry_id, m2);
    CHECK_STR(cleared->first_message_preview, "m1");
    CHECK_EQ(cleared->last_active_at, f->now_ms - 1000);
    CHECK_EQ(CALL_OK(f, list_messages, ListMessages, {.session_id = CHARS(s)})->n_messages, 2);
    CHECK_STR(CALL_OK(f, get_message, GetMessage,
                      {.by_case = GET_MESSAGE_REQUEST__BY_MESSAGE_ID, .message_id = CHARS(m2)})
                  ->message->id,
              m2);
}

TEST(rewind_recomputes_the_last_previews)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    append_ok(f, s, ROLE_USER, "u1");
    const char *a1 = append_ok(f, s, ROLE_ASSISTANT, "a1");
    append_ok(f, s, ROLE_USER, "u2");
    const char *a2 = append_ok(f, s, ROLE_ASSISTANT, "a2");
    Session *rewound = rewind_ok(f, s, a1);
    CHECK_STR(rewound->last_user_message, "u1");
    CHECK_STR(rewound->last_agent_message, "a1");
    rewound = rewind_ok(f, s, a2); // forward again
    CHECK_STR(rewound->last_user_message, "u2");
    CHECK_STR(rewound->last_agent_message, "a2");
    rewound = rewind_ok(f, s, "");
    CHECK_STR(rewound->last_user_message, "");
    CHECK_STR(rewound->last_agent_message, "");
    CHECK_STR(rewound->first_message_preview, "u1");
}

TEST(clear_then_append_begins_a_new_history)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    append_ok(f, s, ROLE_USER, "m1");
    append_ok(f, s, ROLE_ASSISTANT, "m2");
    CHECK_STR(rewind_ok(f, s, "")->head_id, "");
    CHECK_STR(history_texts(f, s), "");
    CHECK_STR(window_texts(f, s), "");
    const char *n1 = append_ok(f, s, ROLE_USER, "n1");
    CHECK_STR(history_texts(f, s), "n1");
    Session *read = get_ok(f, s);
    CHECK_STR(read->head_id, n1);
    CHECK_STR(read->last_user_message, "n1");
    CHECK_STR(read->last_agent_message, "");
    CHECK_STR(read->first_message_preview, "m1");
    CHECK_EQ(read->message_count, 3);
}

TEST(forks_made_before_a_rewind_keep_their_history)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *m1 = append_ok(f, s, ROLE_USER, "m1");
    append_ok(f, s, ROLE_ASSISTANT, "m2");
    const char *fork = fork_ok(f, s, NULL);
    rewind_ok(f, s, m1);
    append_ok(f, s, ROLE_ASSISTANT, "n2");
    rewind_ok(f, s, "");
    CHECK_STR(history_texts(f, fork), "m1 m2");
    append_ok(f, fork, ROLE_USER, "f1");
    CHECK_STR(history_texts(f, fork), "m1 m2 f1");
}

TEST(rewind_then_fork_inherits_the_rewound_history)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *m1 = append_ok(f, s, ROLE_USER, "m1");
    append_ok(f, s, ROLE_ASSISTANT, "m2");
    rewind_ok(f, s, m1);
    Session *at_once = fork_at_head_ok(f, s);
    CHECK_STR(at_once->fork_message_id, m1);
    append_ok(f, s, ROLE_ASSISTANT, "n2");
    const char *later = fork_ok(f, s, NULL);
    append_ok(f, at_once->id, ROLE_USER, "f1");
    append_ok(f, later, ROLE_USER, "g1");
    CHECK_STR(history_texts(f, at_once->id), "m1 f1");
    CHECK_STR(history_texts(f, later), "m1 n2 g1");
}

TEST(clear_then_fork_has_an_empty_history)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    append_ok(f, s, ROLE_USER, "m1");
    rewind_ok(f, s, "");
    Session *fork = fork_at_head_ok(f, s);
    CHECK_STR(fork->head_id, "");
    CHECK_STR(history_texts(f, fork->id), "");
}

TEST(rewind_to_an_abandoned_branch_brings_its_past_back)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *m1 = append_ok(f, s, ROLE_USER, "m1");
    append_ok(f, s, ROLE_USER, "m2");
    const char *m3 = append_ok(f, s, ROLE_USER, "m3");
    rewind_ok(f, s, m1);
    const char *n2 = append_ok(f, s, ROLE_USER, "n2");
    rewind_ok(f, s, m3);
    append_ok(f, s, ROLE_USER, "m4");
    CHECK_STR(history_texts(f, s), "m1 m2 m3 m4");
    rewind_ok(f, s, n2);
    append_ok(f, s, ROLE_USER, "n3");
    CHECK_STR(history_texts(f, s), "m1 n2 n3");
}

TEST(a_rewind_past_the_marker_opens_the_window_again)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    append_ok(f, s, ROLE_USER, "m1");
    const char *m2 = append_ok(f, s, ROLE_USER, "m2");
    const char *m3 = append_ok(f, s, ROLE_USER, "m3");
    compact_ok(f, s, m2);
    CHECK_STR(window_texts(f, s), "m3");
    rewind_ok(f, s, m3);
    CHECK_STR(window_texts(f, s), "m1 m2 m3");
}

TEST(a_fork_may_rewind_into_its_ancestor_up_to_its_fork_point)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *m1 = append_ok(f, s, ROLE_USER, "m1");
    const char *m2 = append_ok(f, s, ROLE_USER, "m2");
    const char *m3 = append_ok(f, s, ROLE_USER, "m3");
    const char *fork = fork_ok(f, s, m2);
    const char *f1 = append_ok(f, fork, ROLE_USER, "f1");
    Session *rewound = rewind_ok(f, fork, m1);
    CHECK_STR(rewound->head_id, m1);
    CHECK_STR(rewound->fork_message_id, m2);
    CHECK_STR(rewound->last_user_message, "");
    append_ok(f, fork, ROLE_USER, "g1");
    CHECK_STR(history_texts(f, fork), "m1 g1");
    CHECK_STR(direct_texts(f, fork), "g1");
    rewind_fails(f, "NOT_IN_TREE", fork, m3);
    rewind_ok(f, fork, f1);
    CHECK_STR(history_texts(f, fork), "m1 m2 f1");
    CHECK_STR(history_texts(f, s), "m1 m2 m3");
}

TEST(a_cleared_fork_may_still_return_to_what_it_inherited)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *m1 = append_ok(f, s, ROLE_USER, "m1");
    const char *fork = fork_ok(f, s, m1);
    rewind_ok(f, fork, "");
    append_ok(f, fork, ROLE_USER, "f1");
    CHECK_STR(history_texts(f, fork), "f1");
    rewind_ok(f, fork, m1);
    CHECK_STR(history_texts(f, fork), "m1");
}

TEST(a_rewind_to_the_head_changes_nothing)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *m1 = append_ok(f, s, ROLE_USER, "m1");
    Session *before = get_ok(f, s);
    f->now_ms += 1000;
    rewind_ok(f, s, m1);
    Session *after = get_ok(f, s);
    CHECK_EQ(after->updated_at, before->updated_at);
    CHECK_EQ(after->last_event_sequence, before->last_event_sequence);
    CHECK_EQ(table_rows(f, "origins"), 0);
    const char *empty = session_ok(f);
    rewind_ok(f, empty, "");
    CHECK_EQ(table_rows(f, "origins"), 0);
}

TEST(many_rewinds_read_as_the_last_one_says)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *m1 = append_ok(f, s, ROLE_USER, "m1");
    for (int i = 0; i < 200; i++) {
        rewind_ok(f, s, m1);
        append_ok(f, s, ROLE_USER, "try");
    }
    CHECK_STR(history_texts(f, s), "m1 try");
    fixture_reopen(f);
    CHECK_STR(history_texts(f, s), "m1 try");
    CHECK_EQ(get_ok(f, s)->message_count, 201);
}

TEST(rewinds_one_after_the_other_nest)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *m[6];
    const char *texts[] = {"m0", "m1", "m2", "m3", "m4", "m5"};
    for (int i = 0; i < 6; i++)
        m[i] = append_ok(f, s, ROLE_USER, texts[i]);
    for (int i = 5; i >= 1; i--) { // at each level back: one more branch
        rewind_ok(f, s, m[i]);
        char text[16];
        snprintf(text, sizeof(text), "n%d", i);
        append_ok(f, s, ROLE_USER, text);
    }
    CHECK_STR(history_texts(f, s), "m0 m1 n1");
    rewind_ok(f, s, m[4]);
    CHECK_STR(history_texts(f, s), "m0 m1 m2 m3 m4");
}

TEST(rewind_refuses_what_is_not_in_the_tree)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    append_ok(f, s, ROLE_USER, "m1");
    const char *fork = fork_ok(f, s, NULL);
    const char *f1 = append_ok(f, fork, ROLE_USER, "f1");
    const char *foreign = append_ok(f, session_ok(f), ROLE_USER, "x1");
    rewind_fails(f, "NOT_IN_TREE", s, foreign);
    rewind_fails(f, "NOT_IN_TREE", s, f1);
    rewind_fails(f, "MESSAGE_NOT_FOUND", s, UNKNOWN_ID);
    rewind_fails(f, "INVALID_ARGUMENT", s, "x");
    rewind_fails(f, "SESSION_NOT_FOUND", UNKNOWN_ID, "");
    rewind_fails(f, "INVALID_ARGUMENT", "", "");
    CHECK_STR(history_texts(f, s), "m1");
}

TEST(rewind_is_refused_on_deleted_and_archived_sessions)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    append_ok(f, s, ROLE_USER, "m1");
    archive_ok(f, s, true);
    rewind_fails(f, "SESSION_ARCHIVED", s, "");
    archive_ok(f, s, false);
    delete_ok(f, s);
    rewind_fails(f, "SESSION_DELETED", s, "");
}

TEST(a_rewind_that_expects_another_head_is_aborted)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    CALL_FAILS(f, rewind_session, RewindSession, "HEAD_MOVED", rewind_expecting(s, "", UNKNOWN_ID));
    const char *m1 = append_ok(f, s, ROLE_USER, "m1");
    const char *m2 = append_ok(f, s, ROLE_USER, "m2");
    CALL_FAILS(f, rewind_session, RewindSession, "HEAD_MOVED", rewind_expecting(s, "", m1));
    CALL_FAILS(f, rewind_session, RewindSession, "HEAD_MOVED", rewind_expecting(s, m1, ""));
    CALL_FAILS(f, rewind_session, RewindSession, "INVALID_ARGUMENT", rewind_expecting(s, m1, "x"));
    CHECK_STR(history_texts(f, s), "m1 m2");
    CALL_OK(f, rewind_session, RewindSession, rewind_expecting(s, "", m2));
    CALL_FAILS(f, rewind_session, RewindSession, "HEAD_MOVED", rewind_expecting(s, m1, m2));
    CALL_OK(f, rewind_session, RewindSession, rewind_expecting(s, m1, ""));
    CHECK_STR(history_texts(f, s), "m1");
}

TEST(an_append_that_expects_another_head_is_aborted)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    CALL_FAILS(f, append_message, AppendMessage, "HEAD_MOVED",
               append_expecting(f, s, UNKNOWN_ID, "x"));
    CALL_OK(f, append_message, AppendMessage, append_expecting(f, s, "", "m1"));
    CALL_FAILS(f, append_message, AppendMessage, "HEAD_MOVED", append_expecting(f, s, "", "x"));
    const char *m1 = get_ok(f, s)->head_id;
    CALL_OK(f, append_message, AppendMessage, append_expecting(f, s, m1, "m2"));
    CALL_FAILS(f, append_message, AppendMessage, "HEAD_MOVED", append_expecting(f, s, m1, "x"));
    CHECK_STR(history_texts(f, s), "m1 m2");
}

TEST(the_head_of_a_fork_is_expected_to_be_its_fork_point)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *m1 = append_ok(f, s, ROLE_USER, "m1");
    const char *fork = fork_ok(f, s, m1);
    CALL_FAILS(f, append_message, AppendMessage, "HEAD_MOVED", append_expecting(f, fork, "", "x"));
    CALL_OK(f, append_message, AppendMessage, append_expecting(f, fork, m1, "f1"));
    CHECK_STR(history_texts(f, fork), "m1 f1");
}

TEST(an_append_elsewhere_than_the_head_starts_a_branch)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *m1 = append_ok(f, s, ROLE_USER, "m1");
    const char *m2 = append_ok(f, s, ROLE_ASSISTANT, "m2");
    const char *n2 = append_after_ok(f, s, m1, "n2");
    CHECK_STR(history_texts(f, s), "m1 n2");
    Session *read = get_ok(f, s);
    CHECK_STR(read->head_id, n2);
    CHECK_STR(read->last_entry_id, n2);
    CHECK_STR(read->last_user_message, "n2");
    CHECK_STR(read->last_agent_message, "");
    append_after_ok(f, s, m2, "m3");
    CHECK_STR(history_texts(f, s), "m1 m2 m3");
    CHECK_STR(get_ok(f, s)->last_agent_message, "m2");
}

TEST(an_append_after_the_head_by_name_is_a_plain_append)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *m1 = append_ok(f, s, ROLE_USER, "m1");
    append_after_ok(f, s, m1, "m2");
    CHECK_STR(history_texts(f, s), "m1 m2");
    CHECK_EQ(table_rows(f, "origins"), 0);
}

TEST(an_append_at_the_beginning_starts_a_second_tree)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    append_after_ok(f, s, "", "m1");
    CHECK_EQ(table_rows(f, "origins"), 0);
    append_ok(f, s, ROLE_USER, "m2");
    append_after_ok(f, s, "", "n1");
    CHECK_STR(history_texts(f, s), "n1");
    CHECK_STR(direct_texts(f, s), "n1");
}

TEST(an_append_after_an_inherited_message_branches_in_the_fork_alone)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *m1 = append_ok(f, s, ROLE_USER, "m1");
    append_ok(f, s, ROLE_USER, "m2");
    const char *fork = fork_ok(f, s, NULL);
    append_ok(f, fork, ROLE_USER, "f1");
    append_after_ok(f, fork, m1, "g1");
    CHECK_STR(history_texts(f, fork), "m1 g1");
    CHECK_STR(history_texts(f, s), "m1 m2");
}

TEST(the_parent_of_an_append_must_be_in_the_tree)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *m1 = append_ok(f, s, ROLE_USER, "m1");
    const char *fork = fork_ok(f, s, m1);
    const char *m2 = append_ok(f, s, ROLE_USER, "m2");
    const char *foreign = append_ok(f, session_ok(f), ROLE_USER, "x1");
    CALL_FAILS(f, append_message, AppendMessage, "NOT_IN_TREE", append_at(f, s, foreign, "x"));
    CALL_FAILS(f, append_message, AppendMessage, "NOT_IN_TREE", append_at(f, fork, m2, "x"));
    CALL_FAILS(f, append_message, AppendMessage, "MESSAGE_NOT_FOUND",
               append_at(f, s, UNKNOWN_ID, "x"));
    CALL_FAILS(f, append_message, AppendMessage, "INVALID_ARGUMENT", append_at(f, s, "x", "x"));
    CHECK_STR(history_texts(f, s), "m1 m2");
    CHECK_STR(history_texts(f, fork), "m1");
}

TEST(a_head_that_moved_stops_a_branch_too)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *m1 = append_ok(f, s, ROLE_USER, "m1");
    const char *m2 = append_ok(f, s, ROLE_USER, "m2");
    AppendMessageRequest request = append_at(f, s, m1, "n2");
    request.expected_head_case = APPEND_MESSAGE_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_ID;
    request.expected_head_id = CHARS(m1);
    CALL_FAILS(f, append_message, AppendMessage, "HEAD_MOVED", request);
    CHECK_EQ(table_rows(f, "origins"), 0);
    request.expected_head_id = CHARS(m2);
    CALL_OK(f, append_message, AppendMessage, request);
    CHECK_STR(history_texts(f, s), "m1 n2");
}

TEST(the_parents_of_the_log_make_the_tree)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *m1 = append_ok(f, s, ROLE_USER, "m1");
    const char *m2 = append_ok(f, s, ROLE_USER, "m2");
    append_after_ok(f, s, m1, "n2");
    rewind_ok(f, s, m2);
    append_ok(f, s, ROLE_USER, "m3");
    rewind_ok(f, s, "");
    append_ok(f, s, ROLE_USER, "r1");
    const char *parents[] = {"", m1, m1, m2, ""};
    ListMessagesResponse *log = CALL_OK(f, list_messages, ListMessages, {.session_id = CHARS(s)});
    CHECK_EQ(log->n_messages, 5);
    for (size_t i = 0; i < 5; i++) {
        CHECK_STR(log->messages[i]->parent_id, parents[i]);
        CHECK_EQ(log->messages[i]->sequence, i);
    }
}

TEST(a_fork_of_a_session_that_branched_into_its_ancestor)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *m1 = append_ok(f, s, ROLE_USER, "m1");
    append_ok(f, s, ROLE_USER, "m2");
    const char *fork = fork_ok(f, s, NULL);
    const char *f1 = append_ok(f, fork, ROLE_USER, "f1");
    rewind_ok(f, fork, m1);
    append_ok(f, fork, ROLE_USER, "g1");
    const char *leaf = fork_ok(f, fork, NULL);
    append_ok(f, leaf, ROLE_USER, "l1");
    CHECK_STR(history_texts(f, leaf), "m1 g1 l1");
    rewind_ok(f, leaf, f1); // in the tree of the fork it came from
    CHECK_STR(history_texts(f, leaf), "m1 m2 f1");
}
