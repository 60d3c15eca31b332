// pi's session manager by our calls: its tree operations, each in the store's own process and
// through a socket. docs/systems/pi.md names them; files of pi's are tested in tests/importers.

#include <stdlib.h>

#include "entries.h"

static void in_both_ways(void (*test)(Fixture *f, const char *session))
{
    static const char *const WAYS[] = {"local", "sp"};
    for (size_t i = 0; i < sizeof(WAYS) / sizeof(*WAYS); i++) {
        setenv("TINE_TEST_CHANNEL", WAYS[i], 1);
        const char *session;
        CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
        test(f, session);
    }
}

static MessageKind ALL[] = {
    MESSAGE_KIND_CONVERSATION, MESSAGE_KIND_INJECTED, MESSAGE_KIND_BRANCH_SUMMARY,
    MESSAGE_KIND_COMPACTION,   MESSAGE_KIND_SETTING,  MESSAGE_KIND_LABEL,
    MESSAGE_KIND_NAME,         MESSAGE_KIND_CUSTOM,
};

// getBranch(leaf): the path to any leaf, every kind; "" is the session's.
static const char *branch_to(Fixture *f, const char *session, const char *leaf,
                             const char *const *ids, size_t count)
{
    MessagesForSessionResponse *page = CALL_OK(f, messages_for_session, MessagesForSession,
                                               {.session_id = CHARS(session),
                                                .kinds = ALL,
                                                .n_kinds = sizeof(ALL) / sizeof(*ALL),
                                                .through_message_id = CHARS(leaf)});
    return order_of(f, page->messages, page->n_messages, ids, count);
}

static const char *branch(Fixture *f, const char *session, const char *const *ids, size_t count)
{
    return branch_to(f, session, "", ids, count);
}

// getTree and getChildren: one scan of the log; each entry names its parent.
static const char *children(Fixture *f, const char *session, const char *parent,
                            const char *const *ids, size_t count)
{
    ListMessagesResponse *page =
        CALL_OK(f, list_messages, ListMessages, {.session_id = CHARS(session)});
    Message **found = fixture_alloc(f, page->n_messages * sizeof(Message *));
    size_t found_count = 0;
    for (size_t i = 0; i < page->n_messages; i++) {
        if (strcmp(page->messages[i]->parent_id, parent) == 0) {
            found[found_count++] = page->messages[i];
        }
    }
    return order_of(f, found, found_count, ids, count);
}

static const char *summary_ok(Fixture *f, const char *session, const char *parent, const char *from)
{
    NewMessage message = {
        .kind = MESSAGE_KIND_BRANCH_SUMMARY, .text = "left", .target_id = CHARS(from)};
    return CALL_OK(f, append_message, AppendMessage,
                   {.session_id = CHARS(session),
                    .message = &message,
                    .parent_case = APPEND_MESSAGE_REQUEST__PARENT_PARENT_ID,
                    .parent_id = CHARS(parent)})
        ->receipt->id;
}

static const char *label_ok(Fixture *f, const char *session, const char *target, const char *text)
{
    return entry_ok(f, session,
                    &(NewMessage){.kind = MESSAGE_KIND_LABEL,
                                  .target_id = CHARS(target),
                                  .text = CHARS(text)})
        ->id;
}

static BuildContextResponse *context_of(Fixture *f, const char *session)
{
    return CALL_OK(f, build_context, BuildContext,
                   {.session_id = CHARS(session), .newest_model = true});
}

static void appends(Fixture *f, const char *session)
{
    const char *ids[5];
    ids[0] = append_ok(f, session, ROLE_USER, "m");
    ids[1] = setting_ok(f, session, "thinking_level", "high");
    ids[2] = entry_ok(f, session, &(NewMessage){.kind = MESSAGE_KIND_CUSTOM, .subtype = "t"})->id;
    ids[3] = marker_ok(f, session, ids[1], "s");
    ids[4] = append_ok(f, session, ROLE_ASSISTANT, "a");
    CHECK_STR(branch(f, session, ids, 5), "a b c d e");
    CHECK_STR(get_ok(f, session)->head_id, ids[4]);
    for (size_t i = 1; i < 5; i++)
        CHECK_STR(message_ok(f, ids[i])->parent_id, ids[i - 1]);
    CHECK_STR(context_of(f, session)->settings[0]->text, "high");
}

TEST(pi_every_append_is_a_child_of_the_leaf_and_the_leaf)
{
    in_both_ways(appends);
}

static void branches(Fixture *f, const char *session)
{
    const char *ids[6];
    ids[0] = append_ok(f, session, ROLE_USER, "1");
    ids[1] = append_ok(f, session, ROLE_ASSISTANT, "2");
    ids[2] = append_ok(f, session, ROLE_USER, "3");
    rewind_ok(f, session, ids[1]); // branch(id): the pointer alone moves
    CHECK_STR(branch(f, session, ids, 3), "a b");
    ids[3] = append_ok(f, session, ROLE_USER, "4");
    rewind_ok(f, session, ids[1]);
    ids[4] = append_ok(f, session, ROLE_USER, "5");
    CHECK_STR(children(f, session, ids[1], ids, 5), "c d e");
    CHECK_STR(branch(f, session, ids, 5), "a b e");
    for (size_t i = 2; i < 5; i++) { // from elsewhere: the pointer stays
        static const char *const PATHS[] = {"a b c", "a b d", "a b e"};
        CHECK_STR(branch_to(f, session, ids[i], ids, 5), PATHS[i - 2]);
    }
    CHECK_STR(get_ok(f, session)->head_id, ids[4]);
    rewind_ok(f, session, ids[2]);
    CHECK_STR(branch(f, session, ids, 5), "a b c");
    rewind_ok(f, session, ""); // resetLeaf: the next one is a new root
    CHECK_STR(branch(f, session, ids, 5), "");
    ids[5] = append_ok(f, session, ROLE_USER, "6");
    CHECK_STR(children(f, session, "", ids, 6), "a f");
    CALL_FAILS(f, rewind_session, RewindSession, "MESSAGE_NOT_FOUND",
               {.session_id = CHARS(session), .message_id = "01ARZ3NDEKTSV4RRFFQ69G5FAV"});
}

TEST(pi_branch_moves_the_leaf_and_a_reset_makes_a_new_root)
{
    in_both_ways(branches);
}

static void summaries(Fixture *f, const char *session)
{
    const char *ids[4];
    ids[0] = append_ok(f, session, ROLE_USER, "1");
    ids[1] = append_ok(f, session, ROLE_ASSISTANT, "2");
    ids[2] = summary_ok(f, session, ids[0], ids[1]);
    CHECK_STR(branch(f, session, ids, 3), "a c");
    CHECK_STR(message_ok(f, ids[2])->target_id, ids[1]);
    ids[3] = append_ok(f, session, ROLE_USER, "3");
    BuildContextResponse *context = context_of(f, session);
    CHECK_STR(order_of(f, context->messages, context->n_messages, ids, 4), "a c d");
    const char *root = summary_ok(f, session, "", ids[3]);
    CHECK_STR(message_ok(f, root)->parent_id, "");
    CHECK_EQ(context_of(f, session)->n_messages, 1);
}

TEST(pi_branch_with_summary_is_one_append_at_the_new_place)
{
    in_both_ways(summaries);
}

static void labels(Fixture *f, const char *session)
{
    const char *target = append_ok(f, session, ROLE_USER, "1");
    const char *other = append_ok(f, session, ROLE_USER, "2");
    label_ok(f, session, target, "first");
    label_ok(f, session, other, "elsewhere");
    label_ok(f, session, target, "second");
    summary_ok(f, session, target, target); // names it too, and is no label
    MessageKind kind = MESSAGE_KIND_LABEL;
    ListMessagesRequest request = {.session_id = CHARS(session),
                                   .target_id = CHARS(target),
                                   .kinds = &kind,
                                   .n_kinds = 1,
                                   .newest_first = true,
                                   .limit = 1};
    ListMessagesResponse *newest = CALL_OK(f, list_messages, ListMessages, request);
    CHECK_STR(newest->messages[0]->text, "second"); // the last wins
    rewind_ok(f, session, other);
    label_ok(f, session, target, "");
    newest = CALL_OK(f, list_messages, ListMessages, request);
    CHECK_STR(newest->messages[0]->text, ""); // cleared
    CHECK_EQ(context_of(f, session)->n_messages, 2);
}

TEST(pi_label_is_the_last_one_of_its_target_and_not_in_the_context)
{
    in_both_ways(labels);
}

static void names(Fixture *f, const char *session)
{
    entry_ok(f, session, &(NewMessage){.kind = MESSAGE_KIND_NAME, .text = "one"});
    entry_ok(f, session, &(NewMessage){.kind = MESSAGE_KIND_NAME, .text = "two"});
    MessageKind kind = MESSAGE_KIND_NAME;
    ListMessagesRequest request = {.session_id = CHARS(session),
                                   .kinds = &kind,
                                   .n_kinds = 1,
                                   .newest_first = true,
                                   .limit = 1};
    CHECK_STR(CALL_OK(f, list_messages, ListMessages, request)->messages[0]->text, "two");
    CHECK_STR(get_ok(f, session)->title, "two");
    CHECK_EQ(context_of(f, session)->n_messages, 0);
    entry_ok(f, session, &(NewMessage){.kind = MESSAGE_KIND_NAME});
    CHECK_STR(get_ok(f, session)->title, "");
}

TEST(pi_name_is_the_last_one)
{
    in_both_ways(names);
}

static void forks(Fixture *f, const char *session)
{
    const char *ids[4];
    ids[0] = append_ok(f, session, ROLE_USER, "1");
    ids[1] = label_ok(f, session, ids[0], "L"); // a label on the path loses nothing
    ids[2] = append_ok(f, session, ROLE_ASSISTANT, "2");
    append_ok(f, session, ROLE_USER, "later");
    const char *fork = fork_ok(f, session, ids[2]);
    ids[3] = append_ok(f, fork, ROLE_USER, "3");
    CHECK_STR(branch(f, fork, ids, 4), "a b c d");
    CHECK_STR(get_ok(f, fork)->parent_id, session);
    CHECK_STR(get_ok(f, fork)->fork_message_id, ids[2]);
    CHECK_STR(history_texts(f, session), "1 2 later");
}

TEST(pi_branched_session_keeps_the_path_with_its_ids)
{
    in_both_ways(forks);
}

static void leaves(Fixture *f, const char *session)
{
    const char *first = append_ok(f, session, ROLE_USER, "1");
    const char *second = append_ok(f, session, ROLE_USER, "2");
    NewMessage *stale = text_message(f, ROLE_USER, "stale");
    rewind_ok(f, session, first);
    CALL_FAILS(f, append_message, AppendMessage, "HEAD_MOVED",
               {.session_id = CHARS(session),
                .message = stale,
                .expected_head_case = APPEND_MESSAGE_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_ID,
                .expected_head_id = CHARS(second)});
    CHECK_STR(get_ok(f, session)->head_id, first);
}

TEST(pi_leaf_is_there_when_the_store_is_opened_again)
{
    setenv("TINE_TEST_CHANNEL", "local", 1);
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *first = append_ok(f, session, ROLE_USER, "1");
    append_ok(f, session, ROLE_USER, "2");
    rewind_ok(f, session, first);
    fixture_reopen(f);
    CHECK_STR(get_ok(f, session)->head_id, first);
}

TEST(pi_leaf_is_kept_and_a_second_writer_is_noticed)
{
    in_both_ways(leaves);
}
