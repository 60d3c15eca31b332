// DeleteMessage and PurgeMessage: what they take away, and what stays.

#include "base/limits.h"
#include "entries.h"

static NewMessage *with_usage(Fixture *f, Role role, const char *text, int64_t cost)
{
    NewMessage *message = text_message(f, role, text);
    message->usage = fixture_alloc(f, sizeof(Usage));
    message->usage->cost_nano_usd = cost;
    message->usage->input_tokens = 2 * cost;
    return message;
}

TEST(delete_takes_an_entry_out_of_histories_counts_and_own_totals)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_ok(f, session, ROLE_USER, "m1");
    const char *m2 = entry_ok(f, session, with_usage(f, ROLE_ASSISTANT, "m2", 5))->id;
    entry_ok(f, session, with_usage(f, ROLE_ASSISTANT, "m3", 7));
    f->now_ms += 1000;
    Receipt *receipt = message_delete_ok(f, m2);
    CHECK_STR(receipt->id, m2);
    CHECK_STR(receipt->session_id, session);
    CHECK_EQ(receipt->sequence, 1);
    CHECK_EQ(receipt->created_at, f->now_ms - 1000);
    CHECK_STR(history_texts(f, session), "m1 m3");
    CHECK_STR(direct_texts(f, session), "m1 m3");
    CHECK_STR(window_texts(f, session), "m1 m3");
    Session *got = get_ok(f, session);
    CHECK_EQ(got->entry_count, 2);
    CHECK_EQ(got->message_count, 2);
    CHECK_EQ(got->next_sequence, 3);
    CHECK_EQ(got->own_totals->cost_nano_usd, 7);
    CHECK_EQ(got->own_totals->input_tokens, 14);
    Message *message = message_ok(f, m2);
    CHECK_EQ(message->deleted_at, f->now_ms);
    CHECK_STR(message->parts[0]->text->text, "m2");
    CHECK_EQ(message->usage->cost_nano_usd, 5);
}

TEST(delete_counts_kinds_apart)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_ok(f, session, ROLE_USER, "m1");
    const char *setting = setting_ok(f, session, "model", "x");
    message_delete_ok(f, setting);
    CHECK_EQ(get_ok(f, session)->entry_count, 1);
    CHECK_EQ(get_ok(f, session)->message_count, 1);
}

TEST(delete_a_second_time_changes_nothing)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = entry_ok(f, session, with_usage(f, ROLE_USER, "m1", 5))->id;
    message_delete_ok(f, id);
    int64_t deleted_at = f->now_ms;
    uint64_t newest = newest_sequence(f);
    f->now_ms += 1000;
    CHECK_STR(message_delete_ok(f, id)->id, id);
    CHECK_EQ(newest_sequence(f), newest);
    CHECK_EQ(message_ok(f, id)->deleted_at, deleted_at);
    CHECK_EQ(get_ok(f, session)->entry_count, 0);
    CHECK_EQ(get_ok(f, session)->own_totals->cost_nano_usd, 0);
}

TEST(delete_recomputes_the_previews)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *u1 = append_ok(f, session, ROLE_USER, "u1");
    const char *a1 = append_ok(f, session, ROLE_ASSISTANT, "a1");
    const char *u2 = append_ok(f, session, ROLE_USER, "u2");
    append_ok(f, session, ROLE_USER, "");
    const char *a2 = append_ok(f, session, ROLE_ASSISTANT, "a2");
    message_delete_ok(f, u2);
    CHECK_STR(get_ok(f, session)->last_user_message, "u1");
    message_delete_ok(f, a2);
    CHECK_STR(get_ok(f, session)->last_agent_message, "a1");
    CHECK_STR(get_ok(f, session)->first_message_preview, "u1");
    message_delete_ok(f, u1);
    message_delete_ok(f, a1);
    CHECK_STR(get_ok(f, session)->first_message_preview, "");
    CHECK_STR(get_ok(f, session)->last_user_message, "");
    CHECK_STR(get_ok(f, session)->last_agent_message, "");
    append_ok(f, session, ROLE_USER, "u3");
    CHECK_STR(get_ok(f, session)->first_message_preview, "u3");
}

TEST(delete_on_a_left_branch_keeps_the_last_previews_of_the_history)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *m1 = append_ok(f, session, ROLE_USER, "m1");
    const char *left = append_ok(f, session, ROLE_USER, "left");
    append_after_ok(f, session, m1, "b1");
    message_delete_ok(f, left);
    CHECK_STR(get_ok(f, session)->last_user_message, "b1");
    CHECK_STR(get_ok(f, session)->first_message_preview, "m1");
    CHECK_STR(history_texts(f, session), "m1 b1");
}

TEST(delete_takes_an_entry_out_of_the_histories_of_forks)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    append_ok(f, root, ROLE_USER, "m1");
    const char *m2 = append_ok(f, root, ROLE_USER, "m2");
    const char *fork = fork_ok(f, root, m2);
    append_ok(f, fork, ROLE_USER, "f1");
    message_delete_ok(f, m2);
    CHECK_STR(history_texts(f, fork), "m1 f1");
    CHECK_STR(history_texts(f, fork_ok(f, root, m2)), "m1");
    CHECK_EQ(get_ok(f, fork)->entry_count, 1);
}

TEST(delete_of_the_head_leaves_the_head_where_it_is)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_ok(f, session, ROLE_USER, "m1");
    const char *m2 = append_ok(f, session, ROLE_USER, "m2");
    message_delete_ok(f, m2);
    CHECK_STR(get_ok(f, session)->head_id, m2);
    const char *m3 = append_ok(f, session, ROLE_USER, "m3");
    CHECK_STR(message_ok(f, m3)->parent_id, m2);
    CHECK_STR(history_texts(f, session), "m1 m3");
}

TEST(delete_keeps_the_external_id_and_purge_frees_it)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    External external = {.source = "pi", .id = "1"};
    NewMessage message = {.role = ROLE_USER, .external = &external};
    const char *id = entry_ok(f, session, &message)->id;
    message_delete_ok(f, id);
    entry_fails(f, session, &message, "EXTERNAL_TAKEN");
    CHECK_STR(message_ok(f, id)->external->id, "1");
    message_purge_ok(f, id);
    CHECK(!message_ok(f, id)->external);
    const char *next = entry_ok(f, session, &message)->id;
    message_purge_ok(f, id);
    entry_fails(f, session, &message, "EXTERNAL_TAKEN");
    CHECK(strstr(f->status.message, next));
}

TEST(delete_and_purge_name_what_is_wrong)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = append_ok(f, session, ROLE_USER, "m1");
    CALL_FAILS(f, delete_message, DeleteMessage, "MESSAGE_NOT_FOUND", {.message_id = UNKNOWN_ID});
    CALL_FAILS(f, purge_message, PurgeMessage, "MESSAGE_NOT_FOUND", {.message_id = UNKNOWN_ID});
    CALL_FAILS(f, delete_message, DeleteMessage, "INVALID_ARGUMENT", {.message_id = ""});
    CALL_FAILS(f, purge_message, PurgeMessage, "INVALID_ARGUMENT", {.message_id = "x"});
    CHECK(strstr(f->status.message, "message_id"));
    archive_ok(f, session, true);
    CALL_FAILS(f, delete_message, DeleteMessage, "SESSION_ARCHIVED", {.message_id = CHARS(id)});
    CALL_FAILS(f, purge_message, PurgeMessage, "SESSION_ARCHIVED", {.message_id = CHARS(id)});
    archive_ok(f, session, false);
    delete_ok(f, session);
    CALL_FAILS(f, delete_message, DeleteMessage, "SESSION_DELETED", {.message_id = CHARS(id)});
    CALL_FAILS(f, purge_message, PurgeMessage, "SESSION_DELETED", {.message_id = CHARS(id)});
    purge_ok(f, session, /* keep_for_forks= */ false);
    CALL_FAILS(f, delete_message, DeleteMessage, "MESSAGE_NOT_FOUND", {.message_id = CHARS(id)});
    CALL_FAILS(f, purge_message, PurgeMessage, "MESSAGE_NOT_FOUND", {.message_id = CHARS(id)});
}

TEST(delete_replay_returns_the_receipt)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = append_ok(f, session, ROLE_USER, "m1");
    const char *other = append_ok(f, session, ROLE_USER, "m2");
    DeleteMessageRequest request = {.message_id = CHARS(id)};
    CALL_OK_WITH(f, "op", delete_message, DeleteMessage, request);
    uint64_t newest = newest_sequence(f);
    CHECK_STR(CALL_OK_WITH(f, "op", delete_message, DeleteMessage, request)->receipt->id, id);
    CHECK_EQ(newest_sequence(f), newest);
    CALL_FAILS_WITH(f, "op", delete_message, DeleteMessage, "OPERATION_ID_REUSED",
                    {.message_id = CHARS(other)});
    CALL_FAILS_WITH(f, "op", purge_message, PurgeMessage, "OPERATION_ID_REUSED",
                    {.message_id = CHARS(id)});
    CHECK_STR(history_texts(f, session), "m2");
}

// A message whose every field that holds content has the secret in it.
static const char *secret_entry(Fixture *f, const char *session, const char *secret)
{
    Part text = {.id = CHARS(secret), .kind_case = PART__KIND_TEXT};
    text.text = &(Text){.text = CHARS(secret)};
    Part tool = {.kind_case = PART__KIND_TOOL_USE};
    tool.tool_use = &(ToolUse){.id = CHARS(secret), .name = CHARS(secret)};
    Part extension = {.kind_case = PART__KIND_EXTENSION};
    extension.extension = &(Extension){.type = CHARS(secret)};
    Part *parts[] = {&text, &tool, &extension};
    return entry_ok(f, session,
                    &(NewMessage){
                        .role = ROLE_USER,
                        .usage = &(Usage){.cost_nano_usd = 9},
                        .model = &(ModelRef){.provider = "p", .name = "m"},
                        .turn_id = "turn",
                        .finish_reason = "stop",
                        .name = CHARS(secret),
                        .external = &(External){.source = "pi", .id = CHARS(secret)},
                        .error = &(ErrorInfo){.code = "c", .message = CHARS(secret)},
                        .text = CHARS(secret),
                        .data_json = "{\"key\":\"sk-secret-key\"}",
                        .n_parts = 3,
                        .parts = parts,
                    })
        ->id;
}

TEST(purge_empties_an_entry_and_keeps_its_place)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *m1 = append_ok(f, session, ROLE_USER, "m1");
    const char *id = secret_entry(f, session, "sk-secret-key");
    append_ok(f, session, ROLE_USER, "m3");
    Message *before = message_ok(f, id);
    CHECK_STR(message_purge_ok(f, id)->id, id);
    Message *after = message_ok(f, id);
    CHECK_STR(after->id, id);
    CHECK_STR(after->parent_id, m1);
    CHECK_EQ(after->sequence, 1);
    CHECK_EQ(after->kind, before->kind);
    CHECK_EQ(after->role, ROLE_USER);
    CHECK_EQ(after->created_at, before->created_at);
    CHECK_EQ(after->usage->cost_nano_usd, 9);
    CHECK_STR(after->model->name, "m");
    CHECK_STR(after->turn_id, "turn");
    CHECK_STR(after->finish_reason, "stop");
    CHECK_EQ(after->deleted_at, 0);
    CHECK_STR(after->name, "");
    CHECK_STR(after->text, "");
    CHECK_STR(after->data_json, "");
    CHECK(!after->external && !after->error);
    CHECK_EQ(after->n_parts, 0);
    CHECK_STR(history_texts(f, session), "m1 - m3");
    CHECK_EQ(get_ok(f, session)->entry_count, 3);
    CHECK_EQ(get_ok(f, session)->own_totals->cost_nano_usd, 9);
}

TEST(purge_leaves_nothing_of_the_content_in_any_row)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *secret = "sk-secret-key";
    const char *id = secret_entry(f, session, secret);
    CHECK(store_holds(f, secret));
    CHECK_STR(get_ok(f, session)->first_message_preview, secret);
    message_purge_ok(f, id);
    CHECK(!store_holds(f, secret));
    CHECK_STR(get_ok(f, session)->first_message_preview, "");
    CHECK_STR(get_ok(f, session)->last_user_message, "");
}

TEST(purge_of_a_deleted_entry_leaves_nothing_and_keeps_deleted_at)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = secret_entry(f, session, "sk-secret-key");
    message_delete_ok(f, id);
    int64_t deleted_at = f->now_ms;
    f->now_ms += 1000;
    message_purge_ok(f, id);
    CHECK(!store_holds(f, "sk-secret-key"));
    CHECK_EQ(message_ok(f, id)->deleted_at, deleted_at);
    CHECK_EQ(get_ok(f, session)->entry_count, 0);
    CHECK_EQ(get_ok(f, session)->own_totals->cost_nano_usd, 0);
    CHECK_STR(history_texts(f, session), "");
}

TEST(purge_then_delete_takes_the_entry_out_as_well)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = secret_entry(f, session, "sk-secret-key");
    message_purge_ok(f, id);
    message_delete_ok(f, id);
    CHECK_EQ(message_ok(f, id)->deleted_at, f->now_ms);
    CHECK_STR(history_texts(f, session), "");
    CHECK_EQ(get_ok(f, session)->entry_count, 0);
    CHECK_EQ(get_ok(f, session)->own_totals->cost_nano_usd, 0);
}

TEST(purge_a_second_time_changes_nothing)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = append_ok(f, session, ROLE_USER, "m1");
    PurgeMessageRequest request = {.message_id = CHARS(id)};
    CALL_OK_WITH(f, "op", purge_message, PurgeMessage, request);
    uint64_t newest = newest_sequence(f);
    CHECK_STR(message_purge_ok(f, id)->id, id);
    CHECK_STR(CALL_OK_WITH(f, "op", purge_message, PurgeMessage, request)->receipt->id, id);
    CHECK_EQ(newest_sequence(f), newest);
}

TEST(purge_recomputes_the_previews)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *u1 = append_ok(f, session, ROLE_USER, "u1");
    append_ok(f, session, ROLE_USER, "u2");
    append_ok(f, session, ROLE_ASSISTANT, "a1");
    const char *a2 = append_ok(f, session, ROLE_ASSISTANT, "a2");
    message_purge_ok(f, u1);
    message_purge_ok(f, a2);
    CHECK_STR(get_ok(f, session)->first_message_preview, "u2");
    CHECK_STR(get_ok(f, session)->last_user_message, "u2");
    CHECK_STR(get_ok(f, session)->last_agent_message, "a1");
}

TEST(purge_and_delete_work_on_messages_of_many_chunks)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_ok(f, session, ROLE_USER, "m1");
    char *large = filled(f, 'L', 5 * VALUE_BYTES_MAX);
    memcpy(large + 4 * VALUE_BYTES_MAX, "sk-secret-key", 13);
    const char *id = append_ok(f, session, ROLE_USER, large);
    append_ok(f, session, ROLE_USER, "m3");
    uint64_t rows = table_rows(f, "messages");
    message_delete_ok(f, id);
    CHECK_STR(message_ok(f, id)->parts[0]->text->text, large);
    CHECK_STR(history_texts(f, session), "m1 m3");
    message_purge_ok(f, id);
    CHECK(!store_holds(f, "sk-secret-key"));
    CHECK(!store_holds(f, "LLLL"));
    CHECK_EQ(table_rows(f, "messages"), rows - 5);
    CHECK_EQ(message_ok(f, id)->deleted_at, f->now_ms);
    CHECK_STR(history_texts(f, session), "m1 m3");
}

TEST(purge_of_a_marker_takes_its_words_and_keeps_its_cut_off)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *m1 = append_ok(f, session, ROLE_USER, "m1");
    append_ok(f, session, ROLE_USER, "m2");
    Marker marker = {
        .before_message_id = CHARS(m1),
        .summary = "sk-secret-key",
        .details_json = "\"sk-secret-key\"",
        .first_kept_external = "sk-secret-key",
        .tokens_saved = 7,
    };
    const char *id = CALL_OK(f, add_compaction_marker, AddCompactionMarker,
                             {.session_id = CHARS(session), .marker = &marker})
                         ->entry->id;
    message_purge_ok(f, id);
    CHECK(!store_holds(f, "sk-secret-key"));
    Marker *left = message_ok(f, id)->marker;
    CHECK_STR(left->before_message_id, m1);
    CHECK_STR(left->summary, "");
    CHECK_STR(left->details_json, "");
    CHECK_EQ(left->tokens_saved, 7);
    CHECK_STR(window_texts(f, session), "m2");
}

TEST(purge_of_an_inherited_entry_empties_it_for_forks)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *m1 = append_ok(f, root, ROLE_USER, "m1");
    const char *fork = fork_ok(f, root, m1);
    append_ok(f, fork, ROLE_USER, "f1");
    message_purge_ok(f, m1);
    CHECK_STR(history_texts(f, fork), "- f1");
}

// Previews are looked for over the whole log: what is large and has no text must not add up.
TEST(delete_recomputes_the_previews_over_large_messages_without_text)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_ok(f, session, ROLE_USER, "first");
    const size_t size = 12 * 1024 * 1024;
    Image image = {
        .mime_type = "image/png",
        .source_case = IMAGE__SOURCE_DATA,
        .data = {size, (uint8_t *)filled(f, 'i', size)},
    };
    Part part = {.kind_case = PART__KIND_IMAGE, .image = &image};
    for (int i = 0; i < 6; i++)
        part_ok(f, session, &part);
    const char *last = append_ok(f, session, ROLE_USER, "last");
    message_delete_ok(f, last);
    CHECK_STR(get_ok(f, session)->last_user_message, "first");
    CHECK_STR(get_ok(f, session)->first_message_preview, "first");
}
