// ForkSession: what a fork sees, what it copies, what it refuses.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session_steps.h"

static void fork_fails(Fixture *f, const char *reason, const char *session, const char *through)
{
    CALL_FAILS(f, fork_session, ForkSession, reason,
               {.session_id = CHARS(session),
                .fork_point_case = FORK_SESSION_REQUEST__FORK_POINT_THROUGH_MESSAGE_ID,
                .through_message_id = CHARS(through)});
    CALL_FAILS(f, fork_session, ForkSession, reason,
               {.session_id = CHARS(session),
                .fork_point_case = FORK_SESSION_REQUEST__FORK_POINT_BEFORE_MESSAGE_ID,
                .before_message_id = CHARS(through)});
}

TEST(fork_at_an_own_message_sees_what_is_up_to_it)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    append_ok(f, root, ROLE_USER, "m1");
    const char *m2 = append_ok(f, root, ROLE_ASSISTANT, "m2");
    append_ok(f, root, ROLE_USER, "m3");
    const char *fork = fork_ok(f, root, m2);
    CHECK_STR(get_ok(f, fork)->head_id, m2);
    const char *f1 = append_ok(f, fork, ROLE_USER, "f1");
    CHECK_STR(history_texts(f, fork), "m1 m2 f1");
    CHECK_STR(direct_texts(f, fork), "f1");
    CHECK_STR(history_texts(f, root), "m1 m2 m3");
    CHECK_STR(get_ok(f, fork)->fork_message_id, m2);
    CHECK_STR(get_ok(f, fork)->head_id, f1);
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
    CHECK_STR(get_ok(f, second)->parent_id, first);
    CHECK_STR(get_ok(f, second)->fork_message_id, m2);
}

TEST(fork_before_a_message_ends_at_the_entry_before_it)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *m1 = append_ok(f, root, ROLE_USER, "m1");
    const char *m2 = append_ok(f, root, ROLE_USER, "m2");
    Session *fork = fork_before_ok(f, root, m2);
    CHECK_STR(fork->fork_message_id, m1);
    CHECK_STR(fork->head_id, m1);
    CHECK_STR(history_texts(f, fork->id), "m1");
}

TEST(fork_before_the_first_message_has_an_empty_history)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *m1 = append_ok(f, root, ROLE_USER, "m1");
    Session *fork = fork_before_ok(f, root, m1);
    CHECK_STR(fork->parent_id, root);
    CHECK_STR(fork->fork_message_id, "");
    CHECK_STR(fork->head_id, "");
    CHECK_STR(history_texts(f, fork->id), "");
    append_ok(f, fork->id, ROLE_USER, "f1");
    CHECK_STR(history_texts(f, fork->id), "f1");
    CHECK_EQ(table_rows(f, "readers"), 0);
}

TEST(fork_before_the_first_own_message_of_a_fork_ends_where_that_fork_began)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *m1 = append_ok(f, root, ROLE_USER, "m1");
    append_ok(f, root, ROLE_USER, "m2");
    const char *first = fork_ok(f, root, m1);
    const char *a1 = append_ok(f, first, ROLE_USER, "a1");
    Session *second = fork_before_ok(f, first, a1);
    CHECK_STR(second->fork_message_id, m1);
    CHECK_STR(history_texts(f, second->id), "m1");
}

TEST(fork_before_an_inherited_message_counts_back_in_the_ancestor)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *m1 = append_ok(f, root, ROLE_USER, "m1");
    const char *m2 = append_ok(f, root, ROLE_USER, "m2");
    const char *first = fork_ok(f, root, m2);
    Session *second = fork_before_ok(f, first, m2);
    CHECK_STR(second->fork_message_id, m1);
    CHECK_STR(history_texts(f, second->id), "m1");
}

TEST(fork_at_the_head_inherits_everything_up_to_now)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    append_ok(f, root, ROLE_USER, "m1");
    const char *m2 = append_ok(f, root, ROLE_ASSISTANT, "m2");
    Session *fork = fork_at_head_ok(f, root);
    append_ok(f, root, ROLE_USER, "m3");
    CHECK_STR(fork->fork_message_id, m2);
    CHECK_STR(history_texts(f, fork->id), "m1 m2");
}

TEST(fork_at_the_head_of_an_empty_session_is_empty)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    Session *fork = fork_at_head_ok(f, root);
    CHECK_STR(fork->parent_id, root);
    CHECK_STR(fork->fork_message_id, "");
    append_ok(f, root, ROLE_USER, "m1");
    CHECK_STR(history_texts(f, fork->id), "");
}

TEST(what_the_source_appends_after_the_fork_is_not_in_it)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    append_ok(f, root, ROLE_USER, "m1");
    const char *fork = fork_ok(f, root, NULL);
    f->now_ms -= 60 * 1000; // the clock goes back: ids rise all the same
    append_ok(f, root, ROLE_USER, "m2");
    append_ok(f, fork, ROLE_USER, "f1");
    append_ok(f, root, ROLE_USER, "m3");
    CHECK_STR(history_texts(f, fork), "m1 f1");
    CHECK_STR(history_texts(f, root), "m1 m2 m3");
}

TEST(two_forks_of_one_message_do_not_see_each_other)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *m1 = append_ok(f, root, ROLE_USER, "m1");
    const char *left = fork_ok(f, root, m1), *right = fork_ok(f, root, m1);
    append_ok(f, left, ROLE_USER, "l1");
    append_ok(f, right, ROLE_USER, "r1");
    append_ok(f, left, ROLE_USER, "l2");
    CHECK_STR(history_texts(f, left), "m1 l1 l2");
    CHECK_STR(history_texts(f, right), "m1 r1");
}

// Forks `depth` times, appending one message to each, and checks the whole history.
static void check_chain(size_t depth)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    size_t room = 8 * (depth + 1);
    char *expected = calloc(1, room);
    CHECK(expected);
    size_t size = 0;
    const char *root = session;
    for (size_t i = 0; i <= depth; i++) {
        char text[16];
        snprintf(text, sizeof(text), "m%zu", i);
        if (i > 0) session = fork_ok(f, session, NULL);
        append_ok(f, session, ROLE_USER, text);
        size += (size_t)snprintf(expected + size, room - size, "%s%s", i ? " " : "", text);
    }
    append_ok(f, root, ROLE_USER, "later");
    CHECK_STR(history_texts(f, session), expected);
    CHECK_STR(get_ok(f, session)->root_id, root);
    free(expected);
}

TEST(a_fork_of_depth_1_reads_its_ancestor)
{
    check_chain(1);
}

TEST(a_fork_of_depth_9_reads_all_ancestors)
{
    check_chain(9); // the reference refuses here
}

TEST(a_fork_of_depth_64_reads_all_ancestors)
{
    check_chain(64);
}

TEST(a_fork_of_depth_1000_reads_all_ancestors)
{
    check_chain(1000);
}

TEST(each_fork_of_a_chain_has_its_own_cut_off)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *m1 = append_ok(f, root, ROLE_USER, "m1");
    append_ok(f, root, ROLE_USER, "m2");
    const char *a = fork_ok(f, root, m1);
    const char *a1 = append_ok(f, a, ROLE_USER, "a1");
    append_ok(f, a, ROLE_USER, "a2");
    const char *b = fork_ok(f, a, a1);
    const char *b1 = append_ok(f, b, ROLE_USER, "b1");
    append_ok(f, b, ROLE_USER, "b2");
    const char *c = fork_ok(f, b, b1);
    append_ok(f, c, ROLE_USER, "c1");
    CHECK_STR(history_texts(f, c), "m1 a1 b1 c1");
    CHECK_STR(history_texts(f, fork_ok(f, c, a1)), "m1 a1");
    CHECK_STR(history_texts(f, fork_ok(f, c, m1)), "m1");
}

TEST(a_fork_of_a_subagent_inherits_the_subagent_and_stops_there)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    append_ok(f, root, ROLE_USER, "m1");
    const char *sub = subagent_ok(f, root);
    append_ok(f, sub, ROLE_USER, "s1");
    Session *fork = fork_at_head_ok(f, sub);
    append_ok(f, fork->id, ROLE_USER, "f1");
    CHECK_EQ(fork->kind, SESSION_KIND_PRIMARY);
    CHECK_STR(history_texts(f, fork->id), "s1 f1");
}

TEST(a_subagent_of_a_fork_sees_only_its_own)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    append_ok(f, root, ROLE_USER, "m1");
    const char *fork = fork_ok(f, root, NULL);
    append_ok(f, fork, ROLE_USER, "f1");
    const char *sub = subagent_ok(f, fork);
    append_ok(f, sub, ROLE_USER, "s1");
    CHECK_STR(history_texts(f, sub), "s1");
    CHECK_STR(window_texts(f, sub), "s1");
}

TEST(a_fork_of_a_compacted_session_stays_compacted)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    append_ok(f, root, ROLE_USER, "m1");
    const char *m2 = append_ok(f, root, ROLE_USER, "m2");
    const char *m3 = append_ok(f, root, ROLE_USER, "m3");
    compact_ok(f, root, m2);
    append_ok(f, root, ROLE_USER, "m4");
    const char *fork = fork_ok(f, root, NULL);
    append_ok(f, fork, ROLE_USER, "f1");
    CHECK_STR(window_texts(f, fork), "m3 m4 f1");
    CHECK_STR(history_texts(f, fork), "m1 m2 m3 m4 f1");
    const char *uncompacted = fork_ok(f, root, m3); // the marker is past it
    CHECK_STR(window_texts(f, uncompacted), "m1 m2 m3");
}

TEST(a_fork_may_be_compacted_at_an_inherited_message)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *m1 = append_ok(f, root, ROLE_USER, "m1");
    append_ok(f, root, ROLE_USER, "m2");
    const char *fork = fork_ok(f, root, NULL);
    append_ok(f, fork, ROLE_USER, "f1");
    compact_ok(f, fork, m1);
    CHECK_STR(window_texts(f, fork), "m2 f1");
    CHECK_STR(window_texts(f, root), "m1 m2");
}

TEST(a_soft_deleted_ancestor_is_read_through)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    append_ok(f, root, ROLE_USER, "m1");
    const char *middle = fork_ok(f, root, NULL);
    append_ok(f, middle, ROLE_USER, "a1");
    const char *leaf = fork_ok(f, middle, NULL);
    append_ok(f, leaf, ROLE_USER, "b1");
    delete_ok(f, root);
    delete_ok(f, middle);
    CHECK_STR(history_texts(f, leaf), "m1 a1 b1");
    CHECK_STR(history_texts(f, middle), "m1 a1");
}

TEST(a_deleted_or_archived_session_may_be_forked)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    append_ok(f, root, ROLE_USER, "m1");
    archive_ok(f, root, true);
    const char *of_archived = fork_ok(f, root, NULL);
    archive_ok(f, root, false);
    delete_ok(f, root);
    const char *of_deleted = fork_ok(f, root, NULL);
    append_ok(f, of_archived, ROLE_USER, "f1");
    append_ok(f, of_deleted, ROLE_USER, "f2");
    CHECK_STR(history_texts(f, of_archived), "m1 f1");
    CHECK_STR(history_texts(f, of_deleted), "m1 f2");
    CHECK_EQ(get_ok(f, of_deleted)->deleted_at, 0);
    CHECK_EQ(get_ok(f, of_archived)->archived_at, 0);
}

TEST(a_deleted_entry_is_left_out_of_forks_and_may_be_their_fork_point)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    append_ok(f, root, ROLE_USER, "m1");
    const char *m2 = append_ok(f, root, ROLE_USER, "m2");
    append_ok(f, root, ROLE_USER, "m3");
    CALL_OK(f, delete_message, DeleteMessage, {.message_id = CHARS(m2)});
    CHECK_STR(history_texts(f, fork_ok(f, root, m2)), "m1");
    CHECK_STR(history_texts(f, fork_ok(f, root, NULL)), "m1 m3");
    CHECK_STR(history_texts(f, fork_before_ok(f, root, m2)->id), "m1");
}

TEST(an_entry_of_any_kind_may_be_the_fork_point)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    append_ok(f, root, ROLE_USER, "m1");
    NewMessage setting = {.kind = MESSAGE_KIND_SETTING, .subtype = "model", .text = "x"};
    AppendMessageResponse *note =
        CALL_OK(f, append_message, AppendMessage, {.session_id = CHARS(root), .message = &setting});
    append_ok(f, root, ROLE_USER, "m2");
    const char *fork = fork_ok(f, root, note->receipt->id);
    CHECK_STR(get_ok(f, fork)->head_id, note->receipt->id);
    CHECK_STR(history_texts(f, fork), "m1");
}

static NewSession full_session(External *external)
{
    NewSession wanted = new_session();
    wanted.slug = "slug";
    wanted.title = "title";
    wanted.parent_tool_use_id = "toolu_1";
    wanted.user_name = "user";
    wanted.account_id = "account";
    wanted.project_id = "project";
    wanted.workspace_id = "workspace";
    wanted.role_name = "role";
    wanted.execution = "execution";
    wanted.data_version = "v1";
    wanted.external = external;
    wanted.source_parent = "their-parent";
    wanted.metadata_json = "{}";
    wanted.system_prompt = "be good";
    wanted.data_json = "{}";
    return wanted;
}

TEST(a_fork_copies_what_a_conversation_needs)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    External external = {.source = "pi", .id = "p1"};
    NewSession wanted = full_session(&external);
    const char *source = create_ok(f, &wanted)->id;
    Session *fork = get_ok(f, fork_ok(f, source, NULL));
    CHECK_EQ(fork->kind, SESSION_KIND_PRIMARY);
    CHECK_STR(fork->project_dir, "/project");
    CHECK_STR(fork->model->name, "model-1");
    CHECK_STR(fork->title, "title");
    CHECK_STR(fork->system_prompt, "be good");
    CHECK_STR(fork->user_name, "user");
    CHECK_STR(fork->account_id, "account");
    CHECK_STR(fork->project_id, "project");
    CHECK_STR(fork->workspace_id, "workspace");
    CHECK_STR(fork->role_name, "role");
    CHECK_STR(fork->execution, "execution");
}

TEST(a_fork_copies_nothing_else)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    External external = {.source = "pi", .id = "p1"};
    NewSession wanted = full_session(&external);
    const char *source = create_ok(f, &wanted)->id;
    append_ok(f, source, ROLE_USER, "m1");
    append_ok(f, source, ROLE_ASSISTANT, "m2");
    Totals delta = {.input_tokens = 5};
    CALL_OK(f, update_session_totals, UpdateSessionTotals,
            {.session_id = CHARS(source), .delta = &delta});
    NewMemory memory = {.content = "fact"};
    CALL_OK(f, remember_session_memory, RememberSessionMemory,
            {.session_id = CHARS(source), .memory = &memory});
    TodoItem item = {.content = "todo", .status = "pending"}, *items[] = {&item};
    CALL_OK(f, replace_session_todos, ReplaceSessionTodos,
            {.session_id = CHARS(source), .n_items = 1, .items = items});

    Session *fork = get_ok(f, fork_ok(f, source, NULL));
    CHECK_STR(fork->slug, "");
    CHECK_STR(fork->parent_tool_use_id, "");
    CHECK_STR(fork->data_version, "");
    CHECK(fork->external == NULL);
    CHECK_STR(fork->source_parent, "");
    CHECK_STR(fork->metadata_json, "");
    CHECK_STR(fork->data_json, "");
    CHECK_STR(fork->first_message_preview, "");
    CHECK_STR(fork->last_user_message, "");
    CHECK_STR(fork->last_agent_message, "");
    CHECK_EQ(fork->message_count + fork->entry_count, 0);
    CHECK_EQ(fork->next_sequence, 0);
    check_totals(fork->totals, 0, 0, 0, 0, 0);
    CHECK_EQ(CALL_OK(f, list_session_memories, ListSessionMemories, {.session_id = fork->id})
                 ->n_memories,
             0);
    CHECK_EQ(
        CALL_OK(f, get_session_todos, GetSessionTodos, {.session_id = fork->id})->todos->n_items,
        0);
}

TEST(a_fork_leaves_its_source_as_it_was)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    append_ok(f, root, ROLE_USER, "m1");
    Session *before = get_ok(f, root);
    f->now_ms += 1000;
    append_ok(f, fork_ok(f, root, NULL), ROLE_USER, "f1");
    Session *after = get_ok(f, root);
    CHECK_EQ(after->updated_at, before->updated_at);
    CHECK_EQ(after->last_active_at, before->last_active_at);
    CHECK_EQ(after->entry_count, before->entry_count);
    CHECK_EQ(after->last_event_sequence, before->last_event_sequence);
    CHECK_STR(after->head_id, before->head_id);
    CHECK_STR(after->last_user_message, "m1");
}

TEST(the_previews_of_a_fork_show_its_own_messages)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    append_ok(f, root, ROLE_USER, "m1");
    append_ok(f, root, ROLE_ASSISTANT, "m2");
    const char *fork = fork_ok(f, root, NULL);
    append_ok(f, fork, ROLE_USER, "f1");
    append_ok(f, fork, ROLE_USER, "f2");
    Session *read = get_ok(f, fork);
    CHECK_STR(read->first_message_preview, "f1");
    CHECK_STR(read->last_user_message, "f2");
    CHECK_STR(read->last_agent_message, "");
    CHECK_EQ(read->message_count, 2);
}

TEST(a_fork_may_have_another_model)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    ModelRef model = {.provider = "openai", .name = "model-2"}, no_name = {.provider = "openai"};
    ForkSessionRequest request = {.session_id = CHARS(root),
                                  .fork_point_case = FORK_SESSION_REQUEST__FORK_POINT_AT_HEAD,
                                  .at_head = true,
                                  .model = &model};
    Session *fork = CALL_OK(f, fork_session, ForkSession, request)->session;
    CHECK_STR(fork->model->provider, "openai");
    CHECK_STR(fork->model->name, "model-2");
    request.model = &no_name;
    CALL_FAILS(f, fork_session, ForkSession, "INVALID_ARGUMENT", request);
}

TEST(a_fork_needs_a_fork_point)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    append_ok(f, root, ROLE_USER, "m1");
    CALL_FAILS(f, fork_session, ForkSession, "INVALID_ARGUMENT", {.session_id = CHARS(root)});
    CALL_FAILS(f, fork_session, ForkSession, "INVALID_ARGUMENT",
               {.session_id = CHARS(root),
                .fork_point_case = FORK_SESSION_REQUEST__FORK_POINT_AT_HEAD,
                .at_head = false});
    fork_fails(f, "INVALID_ARGUMENT", root, "");
    fork_fails(f, "INVALID_ARGUMENT", root, "x");
    CHECK_EQ(table_rows(f, "sessions"), 2);
}

TEST(the_source_and_the_fork_point_must_exist)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    fork_fails(f, "INVALID_ARGUMENT", "", UNKNOWN_ID);
    fork_fails(f, "SESSION_NOT_FOUND", UNKNOWN_ID, UNKNOWN_ID);
    fork_fails(f, "MESSAGE_NOT_FOUND", root, UNKNOWN_ID);
    fork_fails(f, "MESSAGE_NOT_FOUND", root, root);
}

TEST(a_message_outside_the_sources_tree_is_no_fork_point)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *m1 = append_ok(f, root, ROLE_USER, "m1");
    const char *m2 = append_ok(f, root, ROLE_USER, "m2");
    const char *left = fork_ok(f, root, m1), *right = fork_ok(f, root, m1);
    const char *l1 = append_ok(f, left, ROLE_USER, "l1");
    const char *sub = subagent_ok(f, root);
    const char *s1 = append_ok(f, sub, ROLE_USER, "s1");
    const char *later = append_ok(f, root, ROLE_USER, "m3");
    const char *foreign = append_ok(f, session_ok(f), ROLE_USER, "x1");
    fork_fails(f, "NOT_IN_TREE", root, foreign);
    fork_fails(f, "NOT_IN_TREE", root, l1);  // a child's
    fork_fails(f, "NOT_IN_TREE", right, l1); // a sibling's
    fork_fails(f, "NOT_IN_TREE", left, m2);  // the parent's, past the cut-off
    fork_fails(f, "NOT_IN_TREE", left, later);
    fork_fails(f, "NOT_IN_TREE", root, s1);
    fork_fails(f, "NOT_IN_TREE", sub, m1); // a subagent has a parent and no history of it
}

TEST(the_smallest_cut_off_on_the_path_bounds_the_tree)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *m1 = append_ok(f, root, ROLE_USER, "m1");
    const char *m2 = append_ok(f, root, ROLE_USER, "m2");
    const char *m3 = append_ok(f, root, ROLE_USER, "m3");
    const char *wide = fork_ok(f, root, m3);
    append_ok(f, wide, ROLE_USER, "a1");
    const char *narrow = fork_ok(f, wide, m1);
    fork_fails(f, "NOT_IN_TREE", narrow, m2);
    CHECK_STR(history_texts(f, fork_ok(f, wide, m2)), "m1 m2");
}

TEST(what_the_source_rewinds_to_after_the_fork_is_not_in_the_forks_tree)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *m1 = append_ok(f, root, ROLE_USER, "m1");
    const char *fork = fork_ok(f, root, m1);
    const char *m2 = append_ok(f, root, ROLE_USER, "m2");
    append_ok(f, root, ROLE_USER, "m3");
    rewind_ok(f, root, m2); // an origin of the source that is younger than the fork's cut-off
    fork_fails(f, "NOT_IN_TREE", fork, m2);
    CHECK_STR(history_texts(f, fork), "m1");
}

TEST(fork_at_a_message_of_an_abandoned_branch_has_that_branchs_past)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *m1 = append_ok(f, root, ROLE_USER, "m1");
    const char *m2 = append_ok(f, root, ROLE_USER, "m2");
    append_ok(f, root, ROLE_USER, "m3");
    rewind_ok(f, root, m1);
    append_ok(f, root, ROLE_USER, "n2");
    const char *fork = fork_ok(f, root, m2);
    append_ok(f, fork, ROLE_USER, "f1");
    CHECK_STR(history_texts(f, fork), "m1 m2 f1");
    CHECK_STR(history_texts(f, root), "m1 n2");
    CHECK_STR(history_texts(f, fork_before_ok(f, root, m2)->id), "m1");
}

TEST(fork_of_a_fork_at_an_abandoned_branch_of_the_ancestor)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *m1 = append_ok(f, root, ROLE_USER, "m1");
    const char *m2 = append_ok(f, root, ROLE_USER, "m2");
    rewind_ok(f, root, m1);
    append_ok(f, root, ROLE_USER, "n2");
    const char *first = fork_ok(f, root, NULL);
    append_ok(f, first, ROLE_USER, "a1");
    CHECK_STR(history_texts(f, first), "m1 n2 a1");
    CHECK_STR(history_texts(f, fork_ok(f, first, m2)), "m1 m2");
}

TEST(a_fork_takes_a_slug_by_its_policy)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    ForkSessionRequest request = {.session_id = CHARS(root),
                                  .fork_point_case = FORK_SESSION_REQUEST__FORK_POINT_AT_HEAD,
                                  .at_head = true,
                                  .slug = "s",
                                  .slug_policy = SLUG_POLICY_UNIQUE};
    Session *first = CALL_OK(f, fork_session, ForkSession, request)->session;
    CHECK_STR(first->slug, "s");
    CALL_FAILS(f, fork_session, ForkSession, "SLUG_TAKEN", request);
    CHECK(strstr(f->status.message, first->id));
    request.slug_policy = SLUG_POLICY_UNIQUE_SUFFIX;
    CHECK_STR(CALL_OK(f, fork_session, ForkSession, request)->session->slug, "s-2");
    request.slug_policy = SLUG_POLICY_FREE;
    CHECK_STR(CALL_OK(f, fork_session, ForkSession, request)->session->slug, "s");
}

TEST(forks_are_the_same_after_a_restart)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    append_ok(f, root, ROLE_USER, "m1");
    const char *fork = fork_ok(f, root, NULL);
    append_ok(f, root, ROLE_USER, "m2");
    fixture_reopen(f);
    append_ok(f, root, ROLE_USER, "m3");
    append_ok(f, fork, ROLE_USER, "f1");
    CHECK_STR(history_texts(f, fork), "m1 f1");
}
