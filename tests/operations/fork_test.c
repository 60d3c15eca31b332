// Forks, rewinds and trees: ruling by ruling.

#include "fixture.h"

TEST(fork_at_an_own_message_sees_what_is_up_to_it)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    append_ok(f, root, ROLE_USER, "m1");
    const char *m2 = append_ok(f, root, ROLE_ASSISTANT, "m2");
    append_ok(f, root, ROLE_USER, "m3");
    const char *fork = fork_ok(f, root, m2);
    append_ok(f, fork, ROLE_USER, "f1");
    CHECK_STR(history_texts(f, fork), "m1 m2 f1");
    CHECK_STR(direct_texts(f, fork), "f1");
    CHECK_STR(history_texts(f, root), "m1 m2 m3");
    CHECK_STR(get_ok(f, fork)->fork_message_id, m2);
}

TEST(fork_at_an_inherited_message_leaks_no_later_message)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    append_ok(f, root, ROLE_USER, "m1");
    const char *m2 = append_ok(f, root, ROLE_ASSISTANT, "m2");
    append_ok(f, root, ROLE_USER, "m3");
    const char *m4 = append_ok(f, root, ROLE_ASSISTANT, "m4");
    const char *first = fork_ok(f, root, m4);
    append_ok(f, first, ROLE_USER, "a1");
    const char *second = fork_ok(f, first, m2);
    append_ok(f, second, ROLE_USER, "b1");
    CHECK_STR(history_texts(f, second), "m1 m2 b1");
}
