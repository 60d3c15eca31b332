// Reads with through_message_id: the history through any entry of the tree, while the head stays.

#include "entries.h"

// The texts of the history through `message`, joined by blanks.
static const char *through_texts(Fixture *f, const char *session, const char *message)
{
    MessagesForSessionRequest request = {.session_id = CHARS(session),
                                         .through_message_id = CHARS(message)};
    MessagesForSessionResponse *page =
        CALL_OK(f, messages_for_session, MessagesForSession, request);
    char *text = fixture_alloc(f, 64 * (page->n_messages + 1));
    for (size_t i = 0; i < page->n_messages; i++) {
        if (i) strncat(text, " ", 2);
        strncat(text, page->messages[i]->parts[0]->text->text, 60);
    }
    return text;
}

static MessagesSinceLatestMarkerResponse *window(Fixture *f, const char *session,
                                                 const char *message)
{
    return CALL_OK(f, messages_since_latest_marker, MessagesSinceLatestMarker,
                   {.session_id = CHARS(session), .through_message_id = CHARS(message)});
}

static BuildContextResponse *context(Fixture *f, const char *session, const char *message)
{
    return CALL_OK(f, build_context, BuildContext,
                   {.session_id = CHARS(session), .through_message_id = CHARS(message)});
}

static const Message *latest(Fixture *f, const char *session, const char *message)
{
    return CALL_OK(f, latest_marker, LatestMarker,
                   {.session_id = CHARS(session), .through_message_id = CHARS(message)})
        ->entry;
}

// Every call that takes the field says the same of this value.
static void all_fail(Fixture *f, const char *session, const char *message, const char *reason)
{
    char *id = CHARS(session), *through = CHARS(message);
    CALL_FAILS(f, messages_for_session, MessagesForSession, reason,
               {.session_id = id, .through_message_id = through});
    CALL_FAILS(f, messages_direct_for_session, MessagesDirectForSession, reason,
               {.session_id = id, .through_message_id = through});
    CALL_FAILS(f, messages_since_latest_marker, MessagesSinceLatestMarker, reason,
               {.session_id = id, .through_message_id = through});
    CALL_FAILS(f, latest_marker, LatestMarker, reason,
               {.session_id = id, .through_message_id = through});
    CALL_FAILS(f, list_markers_for_session, ListMarkersForSession, reason,
               {.session_id = id, .through_message_id = through});
    CALL_FAILS(f, build_context, BuildContext, reason,
               {.session_id = id, .through_message_id = through});
}

TEST(through_an_entry_is_the_history_up_to_it)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *m1 = append_ok(f, s, ROLE_USER, "m1");
    const char *m2 = append_ok(f, s, ROLE_ASSISTANT, "m2");
    const char *m3 = append_ok(f, s, ROLE_USER, "m3");
    CHECK_STR(through_texts(f, s, m1), "m1");
    CHECK_STR(through_texts(f, s, m2), "m1 m2");
    CHECK_STR(through_texts(f, s, m3), "m1 m2 m3");
    CHECK_STR(through_texts(f, s, ""), "m1 m2 m3");
}

TEST(through_an_entry_moves_and_writes_nothing)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *m1 = append_ok(f, s, ROLE_USER, "m1");
    const char *m2 = append_ok(f, s, ROLE_USER, "m2");
    uint64_t before = newest_sequence(f);
    CHECK_STR(through_texts(f, s, m1), "m1");
    CHECK_EQ(newest_sequence(f), before);
    CHECK_STR(get_ok(f, s)->head_id, m2);
    CHECK_STR(history_texts(f, s), "m1 m2");
}

TEST(through_an_entry_of_a_branch_that_was_left)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *m1 = append_ok(f, s, ROLE_USER, "m1");
    append_ok(f, s, ROLE_USER, "m2");
    const char *m3 = append_ok(f, s, ROLE_USER, "m3");
    rewind_ok(f, s, m1);
    const char *n2 = append_ok(f, s, ROLE_USER, "n2");
    append_after_ok(f, s, m3, "m4");
    rewind_ok(f, s, "");
    const char *o1 = append_ok(f, s, ROLE_USER, "o1");
    CHECK_STR(history_texts(f, s), "o1");
    CHECK_STR(through_texts(f, s, m3), "m1 m2 m3");
    CHECK_STR(through_texts(f, s, n2), "m1 n2");
    CHECK_STR(through_texts(f, s, o1), "o1");
}

TEST(through_an_inherited_entry_on_the_path_and_beside_it)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *m1 = append_ok(f, root, ROLE_USER, "m1");
    const char *m2 = append_ok(f, root, ROLE_USER, "m2");
    rewind_ok(f, root, m1);
    const char *n2 = append_ok(f, root, ROLE_USER, "n2");
    const char *fork = fork_ok(f, root, n2);
    const char *f1 = append_ok(f, fork, ROLE_USER, "f1");
    const char *later = append_ok(f, root, ROLE_USER, "later");
    CHECK_STR(through_texts(f, fork, m1), "m1");
    CHECK_STR(through_texts(f, fork, m2), "m1 m2"); // a branch that the parent had left
    CHECK_STR(through_texts(f, fork, f1), "m1 n2 f1");
    all_fail(f, fork, later, "NOT_IN_TREE"); // the parent's, after the fork
    all_fail(f, root, f1, "NOT_IN_TREE");
}

// What a fork through each entry of a tree shows, in the tree of a fork of a fork.
TEST(through_each_entry_is_what_a_fork_through_it_shows)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *ids[12];
    ids[0] = append_ok(f, root, ROLE_USER, "a");
    ids[1] = append_ok(f, root, ROLE_USER, "b");
    ids[2] = append_after_ok(f, root, ids[0], "c");
    ids[3] = setting_ok(f, root, "model", "x");
    const char *fork = fork_ok(f, root, ids[1]);
    ids[4] = append_ok(f, fork, ROLE_USER, "d");
    ids[5] = append_after_ok(f, fork, ids[0], "e");
    ids[6] = append_after_ok(f, fork, ids[4], "f");
    ids[7] = append_ok(f, fork, ROLE_USER, "g");
    const char *leaf = fork_ok(f, fork, ids[6]);
    ids[8] = append_ok(f, leaf, ROLE_USER, "h");
    ids[9] = append_after_ok(f, leaf, ids[5], "i");
    ids[10] = append_after_ok(f, leaf, "", "j");
    ids[11] = append_after_ok(f, leaf, ids[8], "k");
    message_delete_ok(f, ids[4]);
    size_t shown = 0;
    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
        if (i == 2 || i == 3 || i == 7) { // of the root after its fork, of the fork after its own
            all_fail(f, leaf, ids[i], "NOT_IN_TREE");
            continue;
        }
        CHECK_STR(through_texts(f, leaf, ids[i]), history_texts(f, fork_ok(f, leaf, ids[i])));
        shown++;
    }
    CHECK_EQ(shown, 9);
    CHECK_STR(through_texts(f, leaf, ids[11]), "a b f h k");
    CHECK_STR(through_texts(f, leaf, ids[4]), "a b"); // deleted: its place counts, it is not shown
}

TEST(through_an_entry_of_the_sessions_own_alone)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *m1 = append_ok(f, root, ROLE_USER, "m1");
    const char *fork = fork_ok(f, root, NULL);
    const char *f1 = append_ok(f, fork, ROLE_USER, "f1");
    append_ok(f, fork, ROLE_USER, "f2");
    MessagesDirectForSessionRequest request = {.session_id = CHARS(fork),
                                               .through_message_id = CHARS(f1)};
    MessagesDirectForSessionResponse *own =
        CALL_OK(f, messages_direct_for_session, MessagesDirectForSession, request);
    CHECK_EQ(own->n_messages, 1);
    CHECK_STR(own->messages[0]->id, f1);
    request.through_message_id = CHARS(m1);
    own = CALL_OK(f, messages_direct_for_session, MessagesDirectForSession, request);
    CHECK_EQ(own->n_messages, 0);
}

TEST(through_an_entry_pages_in_both_orders_while_the_session_goes_on)
{
    for (int newest_first = 0; newest_first <= 1; newest_first++) {
        const char *root;
        CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
        const char *ids[5];
        ids[0] = append_ok(f, root, ROLE_USER, "m0");
        ids[1] = append_ok(f, root, ROLE_USER, "m1");
        const char *fork = fork_ok(f, root, NULL);
        for (size_t i = 2; i < 5; i++)
            ids[i] = append_ok(f, fork, ROLE_USER, "m");
        append_ok(f, fork, ROLE_USER, "after");
        MessagesForSessionRequest request = {.session_id = CHARS(fork),
                                             .through_message_id = CHARS(ids[4]),
                                             .newest_first = newest_first,
                                             .limit = 2};
        for (size_t i = 0; i < 5; i++) {
            if (i % 2) continue;
            MessagesForSessionResponse *page =
                CALL_OK(f, messages_for_session, MessagesForSession, request);
            CHECK_EQ(page->n_messages, i < 4 ? 2 : 1);
            for (size_t j = 0; j < page->n_messages; j++) {
                CHECK_STR(page->messages[j]->id, ids[newest_first ? 4 - i - j : i + j]);
            }
            CHECK_EQ(*page->next_cursor != '\0', i < 4);
            request.cursor = page->next_cursor;
            rewind_ok(f, fork, ids[0]);
            append_ok(f, fork, ROLE_USER, "elsewhere");
        }
    }
}

TEST(through_an_entry_has_cursors_of_its_own)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    append_ok(f, s, ROLE_USER, "m1");
    const char *m2 = append_ok(f, s, ROLE_USER, "m2");
    const char *m3 = append_ok(f, s, ROLE_USER, "m3");
    MessagesForSessionRequest request = {
        .session_id = CHARS(s), .through_message_id = CHARS(m3), .limit = 1};
    request.cursor = CALL_OK(f, messages_for_session, MessagesForSession, request)->next_cursor;
    request.through_message_id = CHARS(m2);
    CALL_FAILS(f, messages_for_session, MessagesForSession, "INVALID_ARGUMENT", request);
    CHECK(strstr(f->status.message, "cursor"));
    request.through_message_id = "";
    CALL_FAILS(f, messages_for_session, MessagesForSession, "INVALID_ARGUMENT", request);
}

// Two branches with a marker each, and one before both.
TEST(through_an_entry_the_markers_are_those_of_its_branch)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *m1 = append_ok(f, s, ROLE_USER, "m1");
    const char *shared = marker_ok(f, s, m1, "shared");
    const char *m2 = append_ok(f, s, ROLE_USER, "m2");
    const char *left = marker_ok(f, s, m2, "left");
    const char *m3 = append_ok(f, s, ROLE_USER, "m3");
    rewind_ok(f, s, m2);
    const char *n3 = append_ok(f, s, ROLE_USER, "n3");
    const char *right = marker_ok(f, s, n3, "right");
    CHECK_STR(latest(f, s, "")->id, right);
    CHECK_STR(latest(f, s, m3)->id, left);
    CHECK_STR(latest(f, s, left)->id, left); // through a marker, it is in it
    CHECK_STR(latest(f, s, n3)->id, shared);
    CHECK(!latest(f, s, m1));

    CHECK_STR(window(f, s, m3)->marker->id, left);
    CHECK_EQ(window(f, s, m3)->n_messages, 1);
    CHECK_STR(window(f, s, m3)->messages[0]->id, m3);
    CHECK_EQ(window(f, s, n3)->n_messages, 2);
    CHECK_STR(window(f, s, n3)->messages[0]->id, m2);
    CHECK(!window(f, s, m1)->marker);
    CHECK_EQ(window(f, s, m1)->n_messages, 1);

    ListMarkersForSessionRequest request = {.session_id = CHARS(s),
                                            .through_message_id = CHARS(m3)};
    ListMarkersForSessionResponse *listed =
        CALL_OK(f, list_markers_for_session, ListMarkersForSession, request);
    CHECK_EQ(listed->n_entries, 2);
    CHECK_STR(listed->entries[0]->id, shared);
    CHECK_STR(listed->entries[1]->id, left);
}

TEST(through_an_entry_the_context_is_that_of_its_branch)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *m1 = append_ok(f, s, ROLE_USER, "m1");
    setting_ok(f, s, "thinking_level", "high");
    const char *left = marker_ok(f, s, m1, "left");
    NewMessage *answer = text_message(f, ROLE_ASSISTANT, "a1");
    answer->model = &(ModelRef){.provider = "p", .name = "branch"};
    const char *a1 = entry_ok(f, s, answer)->id;
    rewind_ok(f, s, m1);
    setting_ok(f, s, "thinking_level", "low");
    const char *head = append_ok(f, s, ROLE_USER, "m2");
    CALL_OK(f, remember_session_memory, RememberSessionMemory,
            {.session_id = CHARS(s), .memory = &(NewMemory){.content = "of the session"}});

    BuildContextResponse *there = context(f, s, a1);
    CHECK_STR(there->marker->id, left);
    CHECK_EQ(there->n_messages, 1);
    CHECK_STR(there->messages[0]->id, a1);
    CHECK_STR(there->model->name, "branch");
    CHECK_EQ(there->n_settings, 1);
    CHECK_STR(there->settings[0]->text, "high");
    CHECK_EQ(there->n_memories, 1);
    CHECK_STR(there->head_id, head); // where the session is

    BuildContextResponse *here = context(f, s, "");
    CHECK(!here->marker);
    CHECK_EQ(here->n_messages, 2);
    CHECK_STR(here->model->name, "model-1");
    CHECK_STR(here->settings[0]->text, "low");

    BuildContextResponse *first = context(f, s, m1);
    CHECK_EQ(first->n_settings, 0);
    CHECK_EQ(first->n_messages, 1);
}

TEST(through_an_open_entry_the_window_leaves_it_out)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    append_ok(f, s, ROLE_USER, "m1");
    NewMessage *open = text_message(f, ROLE_ASSISTANT, "so far");
    open->status = MESSAGE_STATUS_OPEN;
    const char *id = entry_ok(f, s, open)->id;
    append_ok(f, s, ROLE_USER, "m2");
    CHECK_STR(through_texts(f, s, id), "m1 so far");
    CHECK_EQ(window(f, s, id)->n_messages, 1);
    CHECK_EQ(context(f, s, id)->n_messages, 1);
}

TEST(through_what_is_no_entry_of_the_tree_is_refused)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    append_ok(f, s, ROLE_USER, "m1");
    const char *other = append_ok(f, session_ok(f), ROLE_USER, "of another");
    all_fail(f, s, UNKNOWN_ID, "MESSAGE_NOT_FOUND");
    all_fail(f, s, s, "MESSAGE_NOT_FOUND"); // a session's id
    all_fail(f, s, other, "NOT_IN_TREE");
    CHECK(strstr(f->status.message, other));
    all_fail(f, s, "not-an-id", "INVALID_ARGUMENT");
    CHECK(strstr(f->status.message, "through_message_id"));
    all_fail(f, UNKNOWN_ID, other, "SESSION_NOT_FOUND");
}

TEST(through_an_entry_of_a_purged_parent_that_its_forks_still_read)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *m1 = append_ok(f, root, ROLE_USER, "m1");
    append_ok(f, root, ROLE_USER, "m2");
    const char *fork = fork_ok(f, root, NULL);
    append_ok(f, fork, ROLE_USER, "f1");
    CHECK(purge_ok(f, root, /* keep_for_forks= */ true));
    purges_settle(f);
    CHECK_STR(through_texts(f, fork, m1), "m1");
    all_fail(f, root, m1, "SESSION_NOT_FOUND");
}
