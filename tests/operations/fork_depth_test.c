// The option --max-fork-depth: distinct ancestors that a new fork's history may read.

#include "session_steps.h"

static Fixture *fixture_with_depth(uint32_t fork_depth_max)
{
    Fixture *f = fixture_open();
    f->options.store.fork_depth_max = fork_depth_max;
    fixture_reopen(f);
    return f;
}

// A chain of sessions, each with one message and each but the first a fork of the one before it.
static void make_chain(Fixture *f, const char *out[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = i ? fork_ok(f, out[i - 1], NULL) : session_ok(f);
        append_ok(f, out[i], ROLE_USER, "m");
    }
}

static void fork_at_head_fails(Fixture *f, const char *reason, const char *session)
{
    CALL_FAILS(f, fork_session, ForkSession, reason,
               {.session_id = CHARS(session),
                .fork_point_case = FORK_SESSION_REQUEST__FORK_POINT_AT_HEAD,
                .at_head = true});
}

TEST(a_fork_at_the_depth_limit_is_made_and_one_past_it_refused)
{
    CLEANUP(fixture_close) Fixture *f = fixture_with_depth(2);
    const char *chain[3];
    make_chain(f, chain, 3); // the last one reads two ancestors
    uint64_t rows = table_rows(f, "sessions");
    fork_at_head_fails(f, "FORK_CHAIN_TOO_DEEP", chain[2]);
    CHECK_EQ(table_rows(f, "sessions"), rows);
    CHECK_STR(history_texts(f, chain[2]), "m m m");
}

TEST(depth_counts_the_ancestors_that_are_read_not_the_parents)
{
    CLEANUP(fixture_close) Fixture *f = fixture_with_depth(1);
    const char *root = session_ok(f);
    const char *m1 = append_ok(f, root, ROLE_USER, "m1");
    const char *session = root;
    for (int i = 0; i < 5; i++)
        session = fork_ok(f, session, NULL); // each reads the root alone
    append_ok(f, session, ROLE_USER, "f1");
    fork_at_head_fails(f, "FORK_CHAIN_TOO_DEEP", session);
    CHECK_STR(history_texts(f, fork_ok(f, session, m1)), "m1");
    CHECK_STR(history_texts(f, fork_before_ok(f, session, m1)->id), "");
}

TEST(a_session_that_is_read_twice_counts_once)
{
    CLEANUP(fixture_close) Fixture *f = fixture_with_depth(1);
    const char *root = session_ok(f);
    const char *m1 = append_ok(f, root, ROLE_USER, "m1");
    append_ok(f, root, ROLE_USER, "m2");
    rewind_ok(f, root, m1);
    append_ok(f, root, ROLE_USER, "n2");
    rewind_ok(f, root, m1);
    append_ok(f, root, ROLE_USER, "o2");
    CHECK_STR(history_texts(f, fork_ok(f, root, NULL)), "m1 o2");
}

TEST(the_depth_limit_holds_for_create_session_too)
{
    CLEANUP(fixture_close) Fixture *f = fixture_with_depth(1);
    const char *chain[2];
    make_chain(f, chain, 2);
    NewSession wanted = new_session();
    wanted.parent_id = CHARS(chain[1]);
    CALL_FAILS(f, create_session, CreateSession, "FORK_CHAIN_TOO_DEEP",
               {.session = &wanted,
                .fork_point_case = CREATE_SESSION_REQUEST__FORK_POINT_AT_HEAD,
                .at_head = true});
    subagent_ok(f, subagent_ok(f, chain[1])); // no origin, no depth
}

TEST(a_lower_depth_limit_never_refuses_a_later_read_or_append)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *chain[5];
    make_chain(f, chain, 5);
    f->options.store.fork_depth_max = 1;
    fixture_reopen(f);
    const char *last = append_ok(f, chain[4], ROLE_USER, "m");
    CHECK_STR(history_texts(f, chain[4]), "m m m m m m");
    rewind_ok(f, chain[4], "");
    rewind_ok(f, chain[4], last);
    CHECK_STR(history_texts(f, chain[4]), "m m m m m m");
    fork_at_head_fails(f, "FORK_CHAIN_TOO_DEEP", chain[4]);
}

TEST(no_depth_limit_is_the_default)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    CHECK_EQ(f->options.store.fork_depth_max, 0);
    const char *chain[40];
    make_chain(f, chain, 40);
    CHECK_EQ(CALL_OK(f, messages_for_session, MessagesForSession, {.session_id = CHARS(chain[39])})
                 ->n_messages,
             40);
}
