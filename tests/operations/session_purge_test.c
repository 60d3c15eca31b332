// PurgeSession: gone at once, its rows in slices, tombstones for forks.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "session_steps.h"

// A store in which a test can stop a purge between two slices.
static Fixture *fixture_with_gate(PurgeGate *gate)
{
    Fixture *f = fixture_open();
    f->options.store.seam = purge_gate_seam(gate);
    fixture_reopen(f);
    return f;
}

static void purge_fails(Fixture *f, const char *reason, const char *session, bool keep_for_forks)
{
    CALL_FAILS(f, purge_session, PurgeSession, reason,
               {.session_id = CHARS(session), .keep_for_forks = keep_for_forks});
}

// The rows of every table that a purge empties.
static uint64_t session_rows(Fixture *f)
{
    const char *tables[] = {"sessions",         "messages",      "message_owner",
                            "markers",          "origins",       "readers",
                            "memories",         "calls",         "todos",
                            "children",         "session_index", "by_active",
                            "message_external", "parts",         "originals"};
    uint64_t rows = 0;
    for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
        uint64_t count = table_rows(f, tables[i]);
        if (count) printf("%s: %llu\n", tables[i], (unsigned long long)count);
        rows += count;
    }
    return rows;
}

static uint64_t purges_pending(Fixture *f)
{
    return CALL_OK(f, stats, Stats, {.base.n_unknown_fields = 0})->purges_pending;
}

// A session with a row in every table.
static const char *make_full_session(Fixture *f)
{
    External external = {.source = "pi", .id = "s"};
    NewSession wanted = new_session();
    wanted.slug = "s";
    wanted.workspace_id = wanted.account_id = wanted.project_id = wanted.role_name = "x";
    wanted.external = &external;
    wanted.system_prompt = text_of_size(20000);
    const char *s = create_ok(f, &wanted)->id;
    free(wanted.system_prompt);
    char *long_text = text_of_size(20000);
    const char *m1 = append_ok(f, s, ROLE_USER, long_text);
    free(long_text);
    ToolUse tool_use = {.id = "toolu_1", .name = "ls"};
    Part part = {.kind_case = PART__KIND_TOOL_USE, .tool_use = &tool_use}, *parts[] = {&part};
    NewMessage message = {
        .role = ROLE_ASSISTANT, .external = &external, .n_parts = 1, .parts = parts};
    CALL_OK(f, append_message, AppendMessage, {.session_id = CHARS(s), .message = &message});
    compact_ok(f, s, m1);
    rewind_ok(f, s, m1);
    append_ok(f, s, ROLE_USER, "m2");
    NewMemory memory = {.content = "fact"};
    CALL_OK(f, remember_session_memory, RememberSessionMemory,
            {.session_id = CHARS(s), .memory = &memory});
    TodoItem item = {.content = "todo"}, *items[] = {&item};
    CALL_OK(f, replace_session_todos, ReplaceSessionTodos,
            {.session_id = CHARS(s), .n_items = 1, .items = items});
    CALL_OK(f, publish_event, PublishEvent, {.session_id = CHARS(s), .type = "agent.note"});
    return s;
}

TEST(a_purge_leaves_no_row_behind)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *s = make_full_session(f);
    delete_ok(f, s); // an index entry of its own
    CHECK(session_rows(f) > 20);
    CHECK(!purge_ok(f, s, false));
    purges_settle(f);
    CHECK_EQ(session_rows(f), 0);
}

TEST(a_purge_takes_published_events_along_and_leaves_the_servers_own)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *s = session_ok(f), *other = session_ok(f);
    for (int i = 0; i < 3; i++) {
        CALL_OK(f, publish_event, PublishEvent, {.session_id = CHARS(s), .type = "agent.note"});
        CALL_OK(f, publish_event, PublishEvent, {.session_id = CHARS(other), .type = "agent.note"});
        append_ok(f, s, ROLE_USER, "m");
    }
    purge_ok(f, s, false);
    purges_settle(f);
    ListEventsResponse *list = CALL_OK(f, list_events, ListEvents, {.limit = 100});
    int of_session = 0, of_other = 0;
    for (size_t i = 0; i < list->n_events; i++) {
        const Event *event = list->events[i];
        bool is_published = strcmp(event->type, "agent.note") == 0;
        if (strcmp(event->session_id, s) == 0) {
            CHECK(!is_published);
            of_session++;
        } else if (is_published) {
            of_other++;
        }
    }
    CHECK_EQ(of_session, 5); // created, three appended, purged
    CHECK_EQ(of_other, 3);
    CHECK_STR(list->events[list->n_events - 1]->type, "session.purged");
    CHECK_STR(list->events[list->n_events - 1]->session_id, s);
}

static void check_reads_not_found(Fixture *f, const char *session)
{
    char *s = CHARS(session);
    const char *reason = "SESSION_NOT_FOUND";
    SessionExternal external = {.session_id = s, .external = &(External){.source = "a", .id = "b"}};
    CALL_FAILS(f, get_session, GetSession, reason, {.session_id = s});
    CALL_FAILS(f, latest_user_message_id, LatestUserMessageId, reason, {.session_id = s});
    CALL_FAILS(f, get_message, GetMessage, reason,
               {.by_case = GET_MESSAGE_REQUEST__BY_SESSION_EXTERNAL,
                .session_external = &external});
    CALL_FAILS(f, messages_for_session, MessagesForSession, reason, {.session_id = s});
    CALL_FAILS(f, messages_direct_for_session, MessagesDirectForSession, reason, {.session_id = s});
    CALL_FAILS(f, messages_since_latest_marker, MessagesSinceLatestMarker, reason,
               {.session_id = s});
    CALL_FAILS(f, latest_marker, LatestMarker, reason, {.session_id = s});
    CALL_FAILS(f, list_markers_for_session, ListMarkersForSession, reason, {.session_id = s});
    CALL_FAILS(f, list_session_memories, ListSessionMemories, reason, {.session_id = s});
    CALL_FAILS(f, get_session_todos, GetSessionTodos, reason, {.session_id = s});
    CALL_FAILS(f, list_messages, ListMessages, reason, {.session_id = s});
    CALL_FAILS(f, build_context, BuildContext, reason, {.session_id = s});
}

static void check_session_writes_not_found(Fixture *f, const char *session)
{
    char *s = CHARS(session);
    const char *reason = "SESSION_NOT_FOUND";
    Totals delta = {.input_tokens = 1};
    SessionField mask = SESSION_FIELD_TITLE;
    NewSession child = new_session();
    child.kind = SESSION_KIND_SUBAGENT;
    child.parent_id = s;
    CALL_FAILS(f, create_session, CreateSession, reason, {.session = &child});
    CALL_FAILS(f, update_session_totals, UpdateSessionTotals, reason,
               {.session_id = s, .delta = &delta});
    CALL_FAILS(f, propagate_totals, PropagateTotals, reason, {.session_id = s, .delta = &delta});
    CALL_FAILS(f, soft_delete_session, SoftDeleteSession, reason, {.session_id = s});
    CALL_FAILS(f, restore_session, RestoreSession, reason, {.session_id = s});
    CALL_FAILS(f, rename_session, RenameSession, reason, {.session_id = s});
    CALL_FAILS(f, update_session, UpdateSession, reason,
               {.session_id = s, .n_mask = 1, .mask = &mask});
    CALL_FAILS(f, fork_session, ForkSession, reason,
               {.session_id = s,
                .fork_point_case = FORK_SESSION_REQUEST__FORK_POINT_AT_HEAD,
                .at_head = true});
    CALL_FAILS(f, purge_session, PurgeSession, reason, {.session_id = s});
    CALL_FAILS(f, rewind_session, RewindSession, reason, {.session_id = s});
}

static void check_content_writes_not_found(Fixture *f, const char *session)
{
    char *s = CHARS(session);
    const char *reason = "SESSION_NOT_FOUND";
    Marker marker = {.keep_all = true};
    NewMemory memory = {.content = "fact"};
    CALL_FAILS(f, append_message, AppendMessage, reason,
               {.session_id = s, .message = text_message(f, ROLE_USER, "x")});
    CALL_FAILS(f, add_compaction_marker, AddCompactionMarker, reason,
               {.session_id = s, .marker = &marker});
    CALL_FAILS(f, remember_session_memory, RememberSessionMemory, reason,
               {.session_id = s, .memory = &memory});
    CALL_FAILS(f, forget_session_memory, ForgetSessionMemory, reason,
               {.session_id = s, .memory_id = UNKNOWN_ID});
    CALL_FAILS(f, replace_session_todos, ReplaceSessionTodos, reason, {.session_id = s});
    CALL_FAILS(f, publish_event, PublishEvent, reason, {.session_id = s, .type = "agent.note"});
}

static void check_message_not_found(Fixture *f, const char *message)
{
    char *m = CHARS(message);
    const char *reason = "MESSAGE_NOT_FOUND";
    CALL_FAILS(f, get_message, GetMessage, reason,
               {.by_case = GET_MESSAGE_REQUEST__BY_MESSAGE_ID, .message_id = m});
    CALL_FAILS(f, delete_message, DeleteMessage, reason, {.message_id = m});
    CALL_FAILS(f, purge_message, PurgeMessage, reason, {.message_id = m});
}

TEST(a_purged_session_is_not_found_at_once_on_every_call)
{
    PurgeGate gate;
    CLEANUP(fixture_close) Fixture *f = fixture_with_gate(&gate);
    const char *s = make_full_session(f);
    const char *message = get_ok(f, s)->head_id;
    purge_and_stop_ok(f, &gate, s, false, 0); // no slice has run yet
    CHECK_EQ(purges_pending(f), 1);
    CHECK(table_rows(f, "messages") > 0);
    check_reads_not_found(f, s);
    ListSessionsRequest all = {.deleted = DELETED_FILTER_INCLUDE};
    CHECK_STR(listed_slugs(f, all), "");
    all.order = SESSION_ORDER_LAST_ACTIVE;
    CHECK_STR(listed_slugs(f, all), "");
    CALL_FAILS(f, get_message, GetMessage, "MESSAGE_NOT_FOUND",
               {.by_case = GET_MESSAGE_REQUEST__BY_MESSAGE_ID, .message_id = CHARS(message)});
    CHECK_EQ(purges_pending(f), 1); // the reads woke nobody
    check_session_writes_not_found(f, s);
    check_content_writes_not_found(f, s);
    check_message_not_found(f, message);
    purges_settle(f);
    check_reads_not_found(f, s);
    check_message_not_found(f, message);
    CHECK_EQ(session_rows(f), 0);
}

TEST(a_message_that_waits_for_its_purge_is_no_fork_point)
{
    PurgeGate gate;
    CLEANUP(fixture_close) Fixture *f = fixture_with_gate(&gate);
    const char *s = session_ok(f), *other = session_ok(f);
    const char *m1 = append_ok(f, s, ROLE_USER, "m1");
    purge_and_stop_ok(f, &gate, s, false, 0);
    CALL_FAILS(f, fork_session, ForkSession, "MESSAGE_NOT_FOUND",
               {.session_id = CHARS(other),
                .fork_point_case = FORK_SESSION_REQUEST__FORK_POINT_THROUGH_MESSAGE_ID,
                .through_message_id = CHARS(m1)});
}

TEST(slug_and_external_id_of_a_purged_session_are_free_at_once)
{
    PurgeGate gate;
    CLEANUP(fixture_close) Fixture *f = fixture_with_gate(&gate);
    External external = {.source = "pi", .id = "1"};
    NewSession wanted = new_session();
    wanted.slug = "s";
    wanted.external = &external;
    const char *s = create_ok(f, &wanted)->id;
    purge_and_stop_ok(f, &gate, s, false, 0);
    CALL_OK(f, create_session, CreateSession,
            {.session = &wanted, .slug_policy = SLUG_POLICY_UNIQUE});
}

TEST(deleted_and_archived_sessions_can_be_purged)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *deleted = session_ok(f), *archived = session_ok(f);
    delete_ok(f, deleted);
    archive_ok(f, archived, true);
    purge_ok(f, deleted, false);
    purge_ok(f, archived, false);
    purges_settle(f);
    CHECK_EQ(session_rows(f), 0);
}

TEST(purge_refuses_what_is_no_session)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    purge_fails(f, "SESSION_NOT_FOUND", UNKNOWN_ID, false);
    purge_fails(f, "SESSION_NOT_FOUND", UNKNOWN_ID, true);
    purge_fails(f, "INVALID_ARGUMENT", "", false);
    purge_fails(f, "INVALID_ARGUMENT", "x", false);
}

TEST(purge_is_refused_while_live_forks_read)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    append_ok(f, root, ROLE_USER, "m1");
    const char *fork = fork_ok(f, root, NULL);
    purge_fails(f, "FORKS_EXIST", root, false);
    CHECK_STR(history_texts(f, root), "m1");
    delete_ok(f, fork); // a soft-deleted fork is live
    purge_fails(f, "FORKS_EXIST", root, false);
    restore_ok(f, fork);
    CHECK_STR(history_texts(f, fork), "m1");
    purge_ok(f, fork, false);
    purge_ok(f, root, false);
    purges_settle(f);
    CHECK_EQ(session_rows(f), 0);
}

TEST(purge_is_refused_by_a_subagent_that_inherits_and_by_no_other)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *m1 = append_ok(f, root, ROLE_USER, "m1");
    fork_before_ok(f, root, m1); // reads nothing
    subagent_ok(f, root);
    NewSession wanted = new_session();
    wanted.kind = SESSION_KIND_SUBAGENT;
    wanted.parent_id = CHARS(root);
    const char *reader = CALL_OK(f, create_session, CreateSession,
                                 {.session = &wanted,
                                  .fork_point_case = CREATE_SESSION_REQUEST__FORK_POINT_AT_HEAD,
                                  .at_head = true})
                             ->session->id;
    purge_fails(f, "FORKS_EXIST", root, false);
    purge_ok(f, reader, false);
    CHECK(!purge_ok(f, root, true));
}

TEST(a_session_between_that_is_not_read_can_be_purged)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *m1 = append_ok(f, root, ROLE_USER, "m1");
    const char *middle = fork_ok(f, root, NULL);
    append_ok(f, middle, ROLE_USER, "a1");
    const char *leaf = fork_ok(f, middle, m1); // reads the root alone
    purge_ok(f, middle, false);
    purges_settle(f);
    CHECK_STR(history_texts(f, leaf), "m1");
    CHECK_STR(get_ok(f, leaf)->parent_id, "");
    purge_fails(f, "FORKS_EXIST", root, false);
}

TEST(a_fork_that_was_cleared_still_reads)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *m1 = append_ok(f, root, ROLE_USER, "m1");
    const char *fork = fork_ok(f, root, NULL);
    rewind_ok(f, fork, "");
    purge_fails(f, "FORKS_EXIST", root, false); // its tree still holds m1
    purge_ok(f, root, true);
    rewind_ok(f, fork, m1);
    CHECK_STR(history_texts(f, fork), "m1");
}

TEST(a_purged_fork_is_not_live_from_the_purge_on)
{
    PurgeGate gate;
    CLEANUP(fixture_close) Fixture *f = fixture_with_gate(&gate);
    const char *root = session_ok(f);
    append_ok(f, root, ROLE_USER, "m1");
    const char *fork = fork_ok(f, root, NULL);
    append_ok(f, fork, ROLE_USER, "f1");
    purge_and_stop_ok(f, &gate, fork, false, 0); // the fork's rows are all still there
    CHECK(!purge_ok(f, root, true));
    purges_settle(f);
    CHECK_EQ(session_rows(f), 0);
}

TEST(a_tombstone_keeps_what_forks_read)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    append_ok(f, root, ROLE_USER, "m1");
    const char *m2 = append_ok(f, root, ROLE_USER, "m2");
    compact_ok(f, root, m2);
    append_ok(f, root, ROLE_USER, "m3");
    Session *fork = fork_at_head_ok(f, root);
    append_ok(f, fork->id, ROLE_USER, "f1");
    CHECK(purge_ok(f, root, true));
    purges_settle(f);
    CHECK_STR(history_texts(f, fork->id), "m1 m2 m3 f1");
    CHECK_STR(window_texts(f, fork->id), "m3 f1");
    CHECK_STR(get_ok(f, fork->id)->fork_message_id, fork->fork_message_id);
    CHECK_STR(get_ok(f, fork->id)->parent_id, "");
    check_reads_not_found(f, root);
    check_session_writes_not_found(f, root);
    check_content_writes_not_found(f, root);
    append_ok(f, fork->id, ROLE_USER, "f2");
    fixture_reopen(f);
    CHECK_STR(history_texts(f, fork->id), "m1 m2 m3 f1 f2");
}

TEST(a_forks_fork_may_still_be_made_at_a_tombstones_message)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *m1 = append_ok(f, root, ROLE_USER, "m1");
    append_ok(f, root, ROLE_USER, "m2");
    const char *fork = fork_ok(f, root, NULL);
    purge_ok(f, root, true);
    const char *second = fork_ok(f, fork, m1);
    append_ok(f, second, ROLE_USER, "s1");
    rewind_ok(f, fork, m1);
    purge_ok(f, fork, false);
    purges_settle(f);
    CHECK_STR(history_texts(f, second), "m1 s1"); // the tombstone has a reader left
    purge_ok(f, second, false);
    purges_settle(f);
    CHECK_EQ(session_rows(f), 0);
}

TEST(keep_for_forks_without_forks_keeps_nothing)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    CHECK(!purge_ok(f, make_full_session(f), true));
    purges_settle(f);
    CHECK_EQ(session_rows(f), 0);
}

TEST(the_last_readers_purge_takes_the_tombstone_along)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *root = make_full_session(f);
    const char *first = fork_ok(f, root, NULL), *second = fork_ok(f, root, NULL);
    CHECK(purge_ok(f, root, true));
    purge_ok(f, first, false);
    purges_settle(f);
    CHECK_EQ(CALL_OK(f, messages_for_session, MessagesForSession, {.session_id = CHARS(second)})
                 ->n_messages,
             2);
    purge_ok(f, second, false);
    purges_settle(f);
    CHECK_EQ(session_rows(f), 0);
}

TEST(a_chain_of_tombstones_goes_with_its_last_reader)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *chain[5] = {root};
    append_ok(f, root, ROLE_USER, "m0");
    for (int i = 1; i < 5; i++) {
        chain[i] = fork_ok(f, chain[i - 1], NULL);
        append_ok(f, chain[i], ROLE_USER, "m");
    }
    for (int i = 0; i < 4; i++)
        CHECK(purge_ok(f, chain[i], true));
    purges_settle(f);
    CHECK_STR(history_texts(f, chain[4]), "m0 m m m m");
    CHECK(!purge_ok(f, chain[4], true));
    purges_settle(f);
    CHECK_EQ(session_rows(f), 0);
}

TEST(a_tombstone_in_the_middle_still_reads_its_ancestor)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    append_ok(f, root, ROLE_USER, "m1");
    const char *middle = fork_ok(f, root, NULL);
    append_ok(f, middle, ROLE_USER, "a1");
    const char *leaf = fork_ok(f, middle, NULL);
    CHECK(purge_ok(f, middle, true));
    purges_settle(f);
    purge_fails(f, "FORKS_EXIST", root, false);
    CHECK_STR(history_texts(f, leaf), "m1 a1");
}

TEST(a_tombstone_whose_reader_goes_before_its_slices_ran_is_purged_whole)
{
    PurgeGate gate;
    CLEANUP(fixture_close) Fixture *f = fixture_with_gate(&gate);
    const char *root = make_full_session(f);
    const char *fork = fork_ok(f, root, NULL);
    CHECK(purge_and_stop_ok(f, &gate, root, true, 0));
    purge_and_stop_ok(f, &gate, fork, false, 0);
    CHECK_EQ(purges_pending(f), 2);
    fixture_reopen(f);
    purges_settle(f);
    CHECK_EQ(session_rows(f), 0);
    ListEventsResponse *list = CALL_OK(f, list_events, ListEvents, {.limit = 100});
    for (size_t i = 0; i < list->n_events; i++)
        CHECK(strcmp(list->events[i]->type, "agent.note"));
}

TEST(children_live_on_without_a_parent)
{
    PurgeGate gate;
    CLEANUP(fixture_close) Fixture *f = fixture_with_gate(&gate);
    const char *root = session_ok(f);
    const char *parent = subagent_ok(f, root);
    const char *child = subagent_ok(f, parent), *sibling = subagent_ok(f, parent);
    append_ok(f, child, ROLE_USER, "c1");
    purge_and_stop_ok(f, &gate, parent, false,
                      0); // the child goes first, while its parent's rows wait
    purge_ok(f, sibling, false);
    purges_settle(f);
    Session *read = get_ok(f, child);
    CHECK_STR(read->parent_id, "");
    CHECK_STR(read->root_id, root);
    CHECK_STR(history_texts(f, child), "c1");
    append_ok(f, child, ROLE_USER, "c2");
    ListSessionsRequest by_parent = {.parent_id = CHARS(parent)};
    CHECK_STR(listed_slugs(f, by_parent), "");
    CHECK_EQ(table_rows(f, "children"), 0);
    purge_ok(f, child, false);
    purge_ok(f, root, false);
    purges_settle(f);
    CHECK_EQ(session_rows(f), 0);
}

TEST(a_purge_of_5000_messages_goes_in_slices_and_on_after_a_restart)
{
    PurgeGate gate;
    CLEANUP(fixture_close) Fixture *f = fixture_with_gate(&gate);
    size_t count = test_scaled(5000);
    if (count < PURGE_SLICE_ROWS) count = PURGE_SLICE_ROWS;
    const char *s = session_ok(f), *other = session_ok(f);
    append_ok(f, other, ROLE_USER, "o1");
    NewMessage *message = text_message(f, ROLE_USER, "m");
    for (size_t i = 0; i < count; i++) {
        AppendMessageRequest request = {.base.descriptor =
                                            &tine__v1__append_message_request__descriptor,
                                        .session_id = CHARS(s),
                                        .message = message};
        fixture_fill(&request.base);
        AppendMessageResponse *response;
        CHECK_EQ(tine_append_message(f->tine, NULL, &request, &response), 0);
        protobuf_c_message_free_unpacked(&response->base, NULL);
    }
    uint64_t before = table_rows(f, "messages");
    // A third of the slices walks the session's events; a message is two rows.
    purge_and_stop_ok(f, &gate, s, false, (int)(2 * count / PURGE_SLICE_ROWS));
    CHECK_EQ(purges_pending(f), 1);
    CHECK(table_rows(f, "messages") < before);
    CHECK(table_rows(f, "messages") > before / 4);
    CHECK(gate.deletes_max > 0 && gate.deletes_max <= PURGE_SLICE_ROWS + 1);
    check_reads_not_found(f, s);
    fixture_reopen(f);
    purges_settle(f);
    CHECK_STR(history_texts(f, other), "o1");
    CHECK_EQ(table_rows(f, "messages"), 1);
    CHECK_EQ(table_rows(f, "message_owner"), 1);
    purge_ok(f, other, false);
    purges_settle(f);
    CHECK_EQ(session_rows(f), 0);
}

TEST(writes_go_on_while_a_purge_runs)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *s = session_ok(f), *other = session_ok(f);
    for (size_t i = 0; i < test_scaled(2000); i++)
        append_ok(f, s, ROLE_USER, "m");
    purge_ok(f, s, false);
    for (int i = 0; i < 20; i++)
        append_ok(f, other, ROLE_USER, "o");
    CHECK_EQ(get_ok(f, other)->message_count, 20);
    purges_settle(f);
    CHECK_EQ(table_rows(f, "messages"), 20);
}

TEST(many_purges_at_once_all_end)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *ids[60];
    for (int i = 0; i < 60; i++) {
        ids[i] = i % 3 ? fork_ok(f, ids[i - 1], NULL) : session_ok(f);
        for (int j = 0; j < 10; j++)
            append_ok(f, ids[i], ROLE_USER, "m");
    }
    for (int i = 0; i < 60; i++)
        purge_ok(f, ids[i], true);
    purges_settle(f);
    CHECK_EQ(session_rows(f), 0);
}
