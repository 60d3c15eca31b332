// BuildContext: all that an agent needs to resume.

#include "base/limits.h"
#include "entries.h"
#include "raw.h"

static BuildContextResponse *context_of(Fixture *f, const char *session)
{
    return CALL_OK(f, build_context, BuildContext, {.session_id = CHARS(session)});
}

static NewMessage *answer(Fixture *f, const char *text, const char *model)
{
    NewMessage *message = text_message(f, ROLE_ASSISTANT, text);
    message->model = fixture_alloc(f, sizeof(ModelRef));
    *message->model = (ModelRef){.provider = "p", .name = CHARS(model)};
    return message;
}

static NewMessage *model_setting(Fixture *f, const char *model)
{
    NewMessage *message = fixture_alloc(f, sizeof(NewMessage));
    message->kind = MESSAGE_KIND_SETTING;
    message->subtype = "model";
    message->model = fixture_alloc(f, sizeof(ModelRef));
    *message->model = (ModelRef){.provider = "p", .name = CHARS(model)};
    return message;
}

static void remember_ok(Fixture *f, const char *session, const char *content)
{
    CALL_OK(f, remember_session_memory, RememberSessionMemory,
            {.session_id = CHARS(session), .memory = &(NewMemory){.content = CHARS(content)}});
}

TEST(context_of_a_new_session_has_its_model_and_nothing_else)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    BuildContextResponse *context = context_of(f, session);
    CHECK_EQ(context->n_messages, 0);
    CHECK(!context->marker);
    CHECK_STR(context->model->provider, "anthropic");
    CHECK_STR(context->model->name, "model-1");
    CHECK_EQ(context->n_settings, 0);
    CHECK_EQ(context->n_memories, 0);
    CHECK_EQ(context->todos->n_items, 0);
    CHECK_STR(context->todos->session_id, session);
    CHECK_EQ(context->todos->summary->total, 0);
    CHECK_STR(context->head_id, "");
    CHECK_STR(context->next_cursor, "");
}

TEST(context_model_is_the_newest_setting_else_the_newest_answer_else_the_sessions)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *first = append_ok(f, session, ROLE_USER, "m1");
    CHECK_STR(context_of(f, session)->model->name, "model-1");
    entry_ok(f, session, answer(f, "a1", "answered"));
    append_ok(f, session, ROLE_ASSISTANT, "without a model");
    CHECK_STR(context_of(f, session)->model->name, "answered");
    const char *setting = entry_ok(f, session, model_setting(f, "set 1"))->id;
    CHECK_STR(context_of(f, session)->model->name, "set 1");
    entry_ok(f, session, answer(f, "a2", "answered later"));
    CHECK_STR(context_of(f, session)->model->name, "set 1");
    const char *second = entry_ok(f, session, model_setting(f, "set 2"))->id;
    CHECK_STR(context_of(f, session)->model->name, "set 2");
    message_delete_ok(f, second);
    CHECK_STR(context_of(f, session)->model->name, "set 1");
    message_delete_ok(f, setting);
    CHECK_STR(context_of(f, session)->model->name, "answered later");
    rewind_ok(f, session, first);
    CHECK_STR(context_of(f, session)->model->name, "model-1");
}

TEST(context_model_of_an_answer_before_the_marker_still_counts)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *a1 = entry_ok(f, session, answer(f, "a1", "answered"))->id;
    marker_ok(f, session, a1, "s");
    CHECK_STR(context_of(f, session)->model->name, "answered");
    CHECK_EQ(context_of(f, session)->n_messages, 0);
}

static const char *newest_model_of(Fixture *f, const char *session)
{
    BuildContextResponse *context =
        CALL_OK(f, build_context, BuildContext, {.session_id = CHARS(session), .newest_model = 1});
    return context->model ? context->model->name : NULL;
}

TEST(context_with_newest_model_has_the_newest_of_settings_and_answers_or_none)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *first = append_ok(f, session, ROLE_USER, "m1");
    CHECK_STR(newest_model_of(f, session), NULL);
    entry_ok(f, session, model_setting(f, "set 1"));
    CHECK_STR(newest_model_of(f, session), "set 1");
    const char *a1 = entry_ok(f, session, answer(f, "a1", "answered"))->id;
    append_ok(f, session, ROLE_ASSISTANT, "without a model");
    CHECK_STR(newest_model_of(f, session), "answered");
    CHECK_STR(context_of(f, session)->model->name, "set 1");
    message_delete_ok(f, a1);
    CHECK_STR(newest_model_of(f, session), "set 1");
    const char *a2 = entry_ok(f, session, answer(f, "a2", "answered later"))->id;
    entry_ok(f, session, model_setting(f, "set 2"));
    CHECK_STR(newest_model_of(f, session), "set 2");
    CHECK_STR(newest_model_of(f, fork_ok(f, session, a2)), "answered later");
    rewind_ok(f, session, first);
    CHECK_STR(newest_model_of(f, session), NULL);
}

TEST(context_of_a_fork_inherits_settings_and_model)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    setting_ok(f, root, "thinking", "high");
    const char *m1 = entry_ok(f, root, model_setting(f, "root model"))->id;
    setting_ok(f, root, "thinking", "later");
    const char *fork = fork_ok(f, root, m1);
    BuildContextResponse *context = context_of(f, fork);
    CHECK_STR(context->model->name, "root model");
    CHECK_EQ(context->n_settings, 2);
    setting_ok(f, fork, "thinking", "low");
    context = context_of(f, fork);
    CHECK_EQ(context->n_settings, 2);
    CHECK_STR(context->settings[0]->text, "low");
}

TEST(context_has_the_newest_setting_of_each_subtype)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    setting_ok(f, session, "a", "a1");
    setting_ok(f, session, "b", "b1");
    setting_ok(f, session, "a", "a2");
    append_ok(f, session, ROLE_USER, "m");
    setting_ok(f, session, "c", "c1");
    BuildContextResponse *context = context_of(f, session);
    CHECK_EQ(context->n_settings, 3);
    for (size_t i = 0; i < 3; i++) {
        const Message *setting = context->settings[i];
        const char *wanted = *setting->subtype == 'a'   ? "a2"
                             : *setting->subtype == 'b' ? "b1"
                                                        : "c1";
        CHECK_EQ(setting->kind, MESSAGE_KIND_SETTING);
        CHECK_STR(setting->text, wanted);
    }
    CHECK_EQ(context->n_messages, 1);
}

TEST(context_has_at_most_64_settings)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    for (int i = 0; i <= SETTING_COUNT_MAX; i++) {
        char subtype[3] = {(char)('a' + i / 26), (char)('a' + i % 26), '\0'};
        setting_ok(f, session, subtype, "x");
    }
    CHECK_EQ(context_of(f, session)->n_settings, SETTING_COUNT_MAX);
}

TEST(context_has_memories_todos_and_head)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    remember_ok(f, session, "first");
    remember_ok(f, session, "second");
    TodoItem item = {.content = "do", .status = "pending"};
    TodoItem *items[] = {&item};
    CALL_OK(f, replace_session_todos, ReplaceSessionTodos,
            {.session_id = CHARS(session), .n_items = 1, .items = items});
    const char *head = append_ok(f, session, ROLE_USER, "m");
    BuildContextResponse *context = context_of(f, session);
    CHECK_EQ(context->n_memories, 2);
    CHECK_STR(context->memories[0]->content, "first");
    CHECK_STR(context->memories[1]->content, "second");
    CHECK_EQ(context->todos->n_items, 1);
    CHECK_STR(context->todos->items[0]->content, "do");
    CHECK_EQ(context->todos->summary->incomplete, 1);
    CHECK_STR(context->head_id, head);
}

TEST(context_window_has_what_shapes_it_without_open_entries)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *m1 = append_ok(f, session, ROLE_USER, "m1");
    const char *ids[3];
    ids[0] = append_ok(f, session, ROLE_USER, "m2");
    ids[1] =
        entry_ok(f, session, &(NewMessage){.kind = MESSAGE_KIND_BRANCH_SUMMARY, .text = "left"})
            ->id;
    setting_ok(f, session, "thinking", "x");
    entry_ok(f, session, &(NewMessage){.kind = MESSAGE_KIND_LABEL, .target_id = CHARS(m1)});
    ids[2] =
        entry_ok(f, session, &(NewMessage){.kind = MESSAGE_KIND_INJECTED, .role = ROLE_SYSTEM})->id;
    NewMessage *open = text_message(f, ROLE_ASSISTANT, "open");
    open->status = MESSAGE_STATUS_OPEN;
    entry_ok(f, session, open);
    marker_ok(f, session, m1, "summary");
    BuildContextResponse *context = context_of(f, session);
    CHECK_STR(order_of(f, context->messages, context->n_messages, ids, 3), "a b c");
    CHECK_STR(context->marker->marker->summary, "summary");
}

// The marker says what the system prompt was: those that it keeps are not said again.
TEST(context_of_a_marker_with_parts_leaves_kept_system_messages_out)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_ok(f, session, ROLE_USER, "old");
    NewMessage *marker = text_message(f, ROLE_SYSTEM, "prompt");
    marker->kind = MESSAGE_KIND_COMPACTION;
    marker->marker = &(Marker){.summary = "s", .keep_all = true};
    append_ok(f, session, ROLE_SYSTEM, "kept");
    NewMessage *injected = text_message(f, ROLE_SYSTEM, "injected");
    injected->kind = MESSAGE_KIND_INJECTED;
    entry_ok(f, session, injected);
    append_ok(f, session, ROLE_USER, "question");
    const char *plain =
        entry_ok(f, session,
                 &(NewMessage){.kind = MESSAGE_KIND_COMPACTION, .marker = marker->marker})
            ->id;
    CHECK_EQ(context_of(f, session)->n_messages, 4); // this one says nothing of it
    CHECK_STR(context_of(f, session)->marker->id, plain);
    entry_ok(f, session, marker);
    append_ok(f, session, ROLE_SYSTEM, "after");
    append_ok(f, session, ROLE_USER, "new");
    static const char *const TEXTS[] = {"old", "injected", "question", "after", "new"};
    BuildContextResponse *context = context_of(f, session);
    CHECK_STR(context->marker->parts[0]->text->text, "prompt");
    CHECK_EQ(context->n_messages, 5);
    const char *cursor = "";
    for (size_t i = 0; i < 5; i++) { // one by one too
        CHECK_STR(context->messages[i]->parts[0]->text->text, TEXTS[i]);
        BuildContextResponse *page =
            CALL_OK(f, build_context, BuildContext,
                    {.session_id = CHARS(session), .limit = 1, .cursor = CHARS(cursor)});
        CHECK_STR(page->messages[0]->parts[0]->text->text, TEXTS[i]);
        cursor = page->next_cursor;
    }
    CHECK_STR(cursor, "");
    CHECK_EQ(CALL_OK(f, messages_since_latest_marker, MessagesSinceLatestMarker,
                     {.session_id = CHARS(session)})
                 ->n_messages,
             5);
}

TEST(context_later_pages_hold_messages_only)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *ids[5];
    const char *start = append_ok(f, session, ROLE_USER, "cut off");
    setting_ok(f, session, "thinking", "x");
    remember_ok(f, session, "fact");
    marker_ok(f, session, start, "s");
    for (size_t i = 0; i < 5; i++)
        ids[i] = append_ok(f, session, ROLE_USER, "m");
    BuildContextRequest request = {.session_id = CHARS(session), .limit = 2};
    BuildContextResponse *page = CALL_OK(f, build_context, BuildContext, request);
    CHECK_STR(order_of(f, page->messages, page->n_messages, ids, 5), "a b");
    CHECK(page->marker && page->model && page->todos);
    append_ok(f, session, ROLE_USER, "later");
    request.cursor = page->next_cursor;
    page = CALL_OK(f, build_context, BuildContext, request);
    CHECK_STR(order_of(f, page->messages, page->n_messages, ids, 5), "c d");
    CHECK(!page->marker && !page->model && !page->todos);
    CHECK_EQ(page->n_settings, 0);
    CHECK_EQ(page->n_memories, 0);
    CHECK_STR(page->head_id, "");
    request.cursor = page->next_cursor;
    page = CALL_OK(f, build_context, BuildContext, request);
    CHECK_STR(order_of(f, page->messages, page->n_messages, ids, 5), "e");
    CHECK_STR(page->next_cursor, "");
}

TEST(context_page_bytes_bound_the_whole_reply)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    NewMessage *message = answer(f, "a", filled(f, 'm', STRING_BYTES_MAX));
    message->model->provider = filled(f, 'p', STRING_BYTES_MAX);
    for (size_t i = 0; i < 100; i++)
        entry_ok(f, session, message);
    for (uint32_t page_bytes = 4000; page_bytes < 8000; page_bytes += 111) {
        BuildContextRequest request = {.session_id = CHARS(session), .page_bytes = page_bytes};
        Raw *body = raw_of(f, &build_context_request__descriptor, &request.base);
        CHECK(raw_ok(f, "BuildContext", body).size + 16 <= page_bytes);
    }
}

TEST(context_names_what_is_wrong)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_ok(f, session, ROLE_USER, "m1");
    append_ok(f, session, ROLE_USER, "m2");
    CALL_FAILS(f, build_context, BuildContext, "SESSION_NOT_FOUND", {.session_id = UNKNOWN_ID});
    CALL_FAILS(f, build_context, BuildContext, "INVALID_ARGUMENT", {.session_id = ""});
    char *cursor =
        CALL_OK(f, build_context, BuildContext, {.session_id = CHARS(session), .limit = 1})
            ->next_cursor;
    CALL_FAILS(f, messages_since_latest_marker, MessagesSinceLatestMarker, "INVALID_ARGUMENT",
               {.session_id = CHARS(session), .cursor = cursor});
    delete_ok(f, session);
    CHECK_EQ(context_of(f, session)->n_messages, 2);
    purge_ok(f, session, /* keep_for_forks= */ false);
    CALL_FAILS(f, build_context, BuildContext, "SESSION_NOT_FOUND", {.session_id = CHARS(session)});
}

// 20 MiB of settings, and a message that alone nearly fills a reply.
TEST(context_of_more_than_a_reply_holds_is_bounded)
{
    const char *session, *reply = "BuildContext";
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    static const char *const SUBTYPES[] = {"a", "b", "c", "d", "e"};
    char *text = filled(f, 's', SUMMARY_BYTES_MAX);
    for (size_t i = 0; i < 5; i++) {
        NewMessage *setting = fixture_alloc(f, sizeof(NewMessage));
        *setting =
            (NewMessage){.kind = MESSAGE_KIND_SETTING, .subtype = CHARS(SUBTYPES[i]), .text = text};
        entry_ok(f, session, setting);
    }
    append_ok(f, session, ROLE_USER, filled(f, 'm', REQUEST_BYTES_MAX - 4096));
    remember_ok(f, session, "fact");
    BuildContextRequest request = {.session_id = CHARS(session), .page_bytes = PAGE_BYTES_MAX};
    Raw *body = raw_of(f, &build_context_request__descriptor, &request.base);
    CHECK(raw_ok(f, reply, body).size <= PAGE_BYTES_MAX);
    BuildContextResponse *page = CALL_OK(f, build_context, BuildContext, request);
    CHECK_EQ(page->n_settings, 3);
    CHECK_STR(page->settings[0]->subtype, "e");
    CHECK_EQ(page->n_memories, 1);
    CHECK_EQ(page->n_messages, 0);
    request.cursor = page->next_cursor;
    CHECK(*request.cursor);
    page = CALL_OK(f, build_context, BuildContext, request);
    CHECK_EQ(page->n_messages, 1);
    CHECK_EQ(page->n_settings, 0);
    CHECK_STR(page->next_cursor, "");
}
