// AppendMessage: what it stores, what it answers, what it moves in its session.

#include "base/limits.h"
#include "entries.h"

static Part *text_part(Fixture *f, const char *id, const char *text)
{
    Part *part = fixture_alloc(f, sizeof(Part));
    Text *content = fixture_alloc(f, sizeof(Text));
    content->text = CHARS(text);
    *part = (Part){.id = CHARS(id), .kind_case = PART__KIND_TEXT, .text = content};
    return part;
}

TEST(append_returns_a_receipt_of_the_first_entry)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Receipt *receipt = entry_ok(f, session, text_message(f, ROLE_USER, "hello"));
    CHECK_EQ(strlen(receipt->id), 26);
    CHECK_STR(receipt->session_id, session);
    CHECK_STR(receipt->parent_id, "");
    CHECK_EQ(receipt->sequence, 0);
    CHECK_EQ(receipt->created_at, f->now_ms);
    CHECK_EQ(receipt->n_part_ids, 1);
    CHECK_EQ(receipt->n_totals, 0);
    Message *message = message_ok(f, receipt->id);
    CHECK_STR(message->id, receipt->id);
    CHECK_STR(message->session_id, session);
    CHECK_STR(message->parts[0]->id, receipt->part_ids[0]);
    CHECK_EQ(message->created_at, f->now_ms);
}

TEST(append_follows_the_head_and_counts_sequences_without_a_gap)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *previous = "";
    for (uint64_t i = 0; i < 5; i++) {
        Receipt *receipt = entry_ok(f, session, text_message(f, ROLE_USER, "m"));
        CHECK_EQ(receipt->sequence, i);
        CHECK_STR(receipt->parent_id, previous);
        CHECK(strcmp(receipt->id, previous) > 0);
        CHECK_STR(message_ok(f, receipt->id)->parent_id, previous);
        CHECK_EQ(message_ok(f, receipt->id)->sequence, i);
        previous = receipt->id;
    }
    CHECK_STR(get_ok(f, session)->head_id, previous);
    CHECK_STR(get_ok(f, session)->last_entry_id, previous);
    CHECK_EQ(get_ok(f, session)->next_sequence, 5);
}

TEST(append_of_any_kind_moves_the_head_and_only_conversation_counts_as_message)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_ok(f, session, ROLE_USER, "turn");
    const char *setting = setting_ok(f, session, "thinking", "high");
    CHECK_STR(get_ok(f, session)->head_id, setting);
    const char *marker = marker_ok(f, session, NULL, "s");
    CHECK_STR(get_ok(f, session)->head_id, marker);
    CHECK_EQ(get_ok(f, session)->entry_count, 3);
    CHECK_EQ(get_ok(f, session)->message_count, 1);
}

TEST(append_fills_in_the_defaults)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Message *turn = message_ok(f, entry_ok(f, session, &(NewMessage){.role = ROLE_TOOL})->id);
    CHECK_EQ(turn->kind, MESSAGE_KIND_CONVERSATION);
    CHECK_EQ(turn->status, MESSAGE_STATUS_COMPLETE);
    CHECK_EQ(turn->role, ROLE_TOOL);
    CHECK_EQ(turn->n_parts, 0);
    CHECK(!turn->usage && !turn->model && !turn->error && !turn->external && !turn->marker);
    Message *setting = message_ok(f, setting_ok(f, session, "model", "x"));
    CHECK_EQ(setting->role, ROLE_SYSTEM);
    CHECK_EQ(setting->status, MESSAGE_STATUS_COMPLETE);
}

TEST(append_keeps_every_field_of_the_message)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    NewMessage message = {
        .kind = MESSAGE_KIND_INJECTED,
        .role = ROLE_OTHER,
        .created_at = 1,
        .completed_at = TIME_MS_MAX,
        .usage = &(Usage){.reasoning_tokens = 6, .total_tokens = 7, .input_tokens = -1},
        .model = &(ModelRef){.provider = "p", .name = "m"},
        .status = MESSAGE_STATUS_FAILED,
        .duration_ms = INT64_MAX,
        .other_role = "critic",
        .name = "nora",
        .subtype = "sub",
        .target_id = "anything",
        .hidden = true,
        .finish_reason = "stop",
        .agent = "a",
        .call_id = "c",
        .turn_id = "t",
        .reply_to_id = "r",
        .producer = PRODUCER_EXTENSION,
        .external = &(External){.source = "pi", .id = "7"},
        .error = &(ErrorInfo){.code = "e", .message = "broken"},
        .text = "text",
        .data_json = "{\"a\": [1, null]}",
    };
    Message *got = message_ok(f, entry_ok(f, session, &message)->id);
    CHECK_EQ(got->kind, MESSAGE_KIND_INJECTED);
    CHECK_EQ(got->role, ROLE_OTHER);
    CHECK_EQ(got->created_at, 1);
    CHECK_EQ(got->completed_at, TIME_MS_MAX);
    CHECK_EQ(got->usage->reasoning_tokens, 6);
    CHECK_EQ(got->usage->total_tokens, 7);
    CHECK_EQ(got->usage->input_tokens, -1);
    CHECK_STR(got->model->provider, "p");
    CHECK_STR(got->model->name, "m");
    CHECK_EQ(got->status, MESSAGE_STATUS_FAILED);
    CHECK_EQ(got->duration_ms, INT64_MAX);
    CHECK_STR(got->other_role, "critic");
    CHECK_STR(got->name, "nora");
    CHECK_STR(got->subtype, "sub");
    CHECK_STR(got->target_id, "anything");
    CHECK(got->hidden);
    CHECK_STR(got->finish_reason, "stop");
    CHECK_STR(got->agent, "a");
    CHECK_STR(got->call_id, "c");
    CHECK_STR(got->turn_id, "t");
    CHECK_STR(got->reply_to_id, "r");
    CHECK_EQ(got->producer, PRODUCER_EXTENSION);
    CHECK_STR(got->external->source, "pi");
    CHECK_STR(got->error->message, "broken");
    CHECK_STR(got->text, "text");
    CHECK_STR(got->data_json, "{\"a\": [1, null]}");
}

TEST(append_issues_part_ids_and_keeps_those_of_the_caller_in_order)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Part *parts[] = {
        text_part(f, "", "a"),
        text_part(f, "mine", "b"),
        text_part(f, "", "c"),
        text_part(f, filled(f, 'x', STRING_BYTES_MAX), "d"),
    };
    Receipt *receipt =
        entry_ok(f, session, &(NewMessage){.role = ROLE_USER, .n_parts = 4, .parts = parts});
    CHECK_EQ(receipt->n_part_ids, 4);
    CHECK_EQ(strlen(receipt->part_ids[0]), 26);
    CHECK_STR(receipt->part_ids[1], "mine");
    CHECK(strcmp(receipt->id, receipt->part_ids[0]) < 0);
    CHECK(strcmp(receipt->part_ids[0], receipt->part_ids[2]) < 0);
    Message *message = message_ok(f, receipt->id);
    CHECK_EQ(message->n_parts, 4);
    const char *texts[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < 4; i++) {
        CHECK_STR(message->parts[i]->id, receipt->part_ids[i]);
        CHECK_STR(message->parts[i]->text->text, texts[i]);
    }
}

TEST(append_takes_the_time_that_the_caller_gives)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    int64_t later = f->now_ms + 5000;
    Receipt *receipt = entry_ok(f, session, &(NewMessage){.role = ROLE_USER, .created_at = later});
    CHECK_EQ(receipt->created_at, later);
    CHECK_EQ(message_ok(f, receipt->id)->created_at, later);
    CHECK_EQ(get_ok(f, session)->last_active_at, later);
    Receipt *older = entry_ok(f, session, &(NewMessage){.role = ROLE_USER, .created_at = 5});
    CHECK_EQ(older->created_at, 5);
    CHECK(strcmp(older->id, receipt->id) > 0);
    CHECK_EQ(get_ok(f, session)->last_active_at, later);
}

TEST(append_moves_last_active_at_and_not_updated_at)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    int64_t created = f->now_ms;
    f->now_ms += 1000;
    append_ok(f, session, ROLE_USER, "m");
    CHECK_EQ(get_ok(f, session)->last_active_at, created + 1000);
    CHECK_EQ(get_ok(f, session)->updated_at, created);
}

TEST(append_issues_rising_ids_when_the_clock_goes_back)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *first = append_ok(f, session, ROLE_USER, "m1");
    f->now_ms -= 1000000;
    const char *second = append_ok(f, session, ROLE_USER, "m2");
    CHECK(strcmp(first, second) < 0);
    CHECK_EQ(message_ok(f, second)->created_at, f->now_ms);
    CHECK_STR(history_texts(f, session), "m1 m2");
}

TEST(append_wants_what_its_kind_requires)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    MessageKind roles[] = {MESSAGE_KIND_UNSPECIFIED, MESSAGE_KIND_CONVERSATION,
                           MESSAGE_KIND_INJECTED};
    for (size_t i = 0; i < 3; i++) {
        entry_fails(f, session, &(NewMessage){.kind = roles[i]}, "INVALID_ARGUMENT");
        CHECK(strstr(f->status.message, "role"));
    }
    entry_fails(f, session, &(NewMessage){.kind = MESSAGE_KIND_COMPACTION}, "INVALID_ARGUMENT");
    CHECK(strstr(f->status.message, "marker"));
    entry_fails(f, session, &(NewMessage){.kind = MESSAGE_KIND_SETTING}, "INVALID_ARGUMENT");
    CHECK(strstr(f->status.message, "subtype"));
    entry_fails(f, session, &(NewMessage){.kind = MESSAGE_KIND_CUSTOM}, "INVALID_ARGUMENT");
    CHECK(strstr(f->status.message, "subtype"));
    entry_fails(f, session, &(NewMessage){.kind = MESSAGE_KIND_LABEL}, "INVALID_ARGUMENT");
    CHECK(strstr(f->status.message, "target_id"));
    entry_fails(f, session, &(NewMessage){.role = ROLE_USER, .marker = &(Marker){.keep_all = true}},
                "INVALID_ARGUMENT");
    CHECK(strstr(f->status.message, "marker"));
    CHECK_EQ(get_ok(f, session)->entry_count, 0);
}

TEST(append_takes_each_kind_with_what_it_requires)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    NewMessage messages[] = {
        {.kind = MESSAGE_KIND_CONVERSATION, .role = ROLE_USER},
        {.kind = MESSAGE_KIND_INJECTED, .role = ROLE_SYSTEM},
        {.kind = MESSAGE_KIND_BRANCH_SUMMARY, .text = "left"},
        {.kind = MESSAGE_KIND_COMPACTION, .marker = &(Marker){.summary = "s"}},
        {.kind = MESSAGE_KIND_SETTING, .subtype = "model"},
        {.kind = MESSAGE_KIND_LABEL, .target_id = "x"},
        {.kind = MESSAGE_KIND_NAME, .text = "name"},
        {.kind = MESSAGE_KIND_CUSTOM, .subtype = "x"},
    };
    for (size_t i = 0; i < sizeof(messages) / sizeof(*messages); i++) {
        MessageKind kind = messages[i].kind;
        CHECK_EQ(message_ok(f, entry_ok(f, session, &messages[i])->id)->kind, kind);
    }
    CHECK_EQ(get_ok(f, session)->entry_count, 8);
    CHECK_EQ(get_ok(f, session)->message_count, 1);
}

TEST(append_of_a_name_makes_it_the_title)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    entry_ok(f, session, &(NewMessage){.kind = MESSAGE_KIND_NAME, .text = "one"});
    CHECK_STR(get_ok(f, session)->title, "one");
    f->now_ms += 5;
    const char *second =
        entry_ok(f, session, &(NewMessage){.kind = MESSAGE_KIND_NAME, .text = " two\n"})->id;
    CHECK_STR(get_ok(f, session)->title, "two");
    CHECK_EQ(get_ok(f, session)->updated_at, f->now_ms);
    CHECK_STR(message_ok(f, second)->text, " two\n");

    // On a branch of its own it is the session's title all the same.
    AppendMessageRequest request = {.session_id = CHARS(session),
                                    .message =
                                        &(NewMessage){.kind = MESSAGE_KIND_NAME, .text = "three"},
                                    .parent_case = APPEND_MESSAGE_REQUEST__PARENT_PARENT_ID,
                                    .parent_id = CHARS("")};
    CALL_OK(f, append_message, AppendMessage, request);
    CHECK_STR(get_ok(f, session)->title, "three");
    entry_ok(f, session, &(NewMessage){.kind = MESSAGE_KIND_NAME});
    CHECK_STR(get_ok(f, session)->title, "");
}

TEST(append_of_a_name_cuts_a_long_title)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    static char text[TITLE_BYTES_MAX + 2];
    memset(text, 'n', TITLE_BYTES_MAX - 1);
    memcpy(text + TITLE_BYTES_MAX - 1, "\xC3\xA9", 3); // two bytes, of which one would fit
    entry_ok(f, session, &(NewMessage){.kind = MESSAGE_KIND_NAME, .text = text});
    CHECK_EQ(strlen(get_ok(f, session)->title), TITLE_BYTES_MAX - 1);
}

TEST(append_wants_other_role_with_role_other_and_only_there)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    entry_fails(f, session, &(NewMessage){.role = ROLE_OTHER}, "INVALID_ARGUMENT");
    CHECK(strstr(f->status.message, "other_role"));
    entry_fails(f, session, &(NewMessage){.role = ROLE_USER, .other_role = "x"},
                "INVALID_ARGUMENT");
    entry_ok(f, session, &(NewMessage){.role = ROLE_OTHER, .other_role = "x"});
}

TEST(append_adds_usage_to_the_own_totals_and_keeps_absence)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Usage usage = {
        .input_tokens = 1,
        .output_tokens = 20,
        .cache_read_tokens = 300,
        .cache_write_tokens = 4000,
        .cost_nano_usd = 50000,
        .reasoning_tokens = 600000,
        .total_tokens = 7000000,
    };
    const char *none = append_ok(f, session, ROLE_USER, "no usage");
    Usage no_tokens = {.input_tokens = 0};
    const char *zero =
        entry_ok(f, session, &(NewMessage){.role = ROLE_USER, .usage = &no_tokens})->id;
    CHECK_EQ(get_ok(f, session)->own_totals->cost_nano_usd, 0);
    entry_ok(f, session, &(NewMessage){.role = ROLE_ASSISTANT, .usage = &usage});
    entry_ok(f, session, &(NewMessage){.role = ROLE_ASSISTANT, .usage = &usage});
    CHECK(!message_ok(f, none)->usage);
    CHECK(message_ok(f, zero)->usage);
    Totals *own = get_ok(f, session)->own_totals;
    CHECK_EQ(own->input_tokens, 2);
    CHECK_EQ(own->output_tokens, 40);
    CHECK_EQ(own->cache_read_tokens, 600);
    CHECK_EQ(own->cache_write_tokens, 8000);
    CHECK_EQ(own->cost_nano_usd, 100000);
    CHECK_EQ(get_ok(f, session)->totals->cost_nano_usd, 0);
}

TEST(append_saturates_own_totals)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Usage usage = {.cost_nano_usd = INT64_MAX, .input_tokens = INT64_MIN};
    for (int i = 0; i < 2; i++) {
        entry_ok(f, session, &(NewMessage){.role = ROLE_ASSISTANT, .usage = &usage});
    }
    CHECK_EQ(get_ok(f, session)->own_totals->cost_nano_usd, INT64_MAX);
    CHECK_EQ(get_ok(f, session)->own_totals->input_tokens, INT64_MIN);
}

TEST(append_with_propagate_usage_adds_it_to_the_session_and_its_ancestors)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *child = subagent_ok(f, root);
    Usage usage = {.cost_nano_usd = 7, .total_tokens = 9};
    NewMessage message = {.role = ROLE_ASSISTANT, .usage = &usage};
    AppendMessageRequest request = {
        .session_id = CHARS(child), .message = &message, .propagate_usage = true};
    Receipt *receipt = CALL_OK(f, append_message, AppendMessage, request)->receipt;
    CHECK_EQ(receipt->n_totals, 2);
    CHECK_STR(receipt->totals[0]->session_id, child);
    CHECK_STR(receipt->totals[1]->session_id, root);
    CHECK_EQ(receipt->totals[1]->totals->cost_nano_usd, 7);
    CHECK_EQ(get_ok(f, root)->totals->cost_nano_usd, 7);
    CHECK_EQ(get_ok(f, root)->own_totals->cost_nano_usd, 0);
    CHECK_EQ(get_ok(f, child)->totals->cost_nano_usd, 7);
    CHECK_EQ(get_ok(f, child)->own_totals->cost_nano_usd, 7);
    message.usage = NULL;
    CHECK_EQ(CALL_OK(f, append_message, AppendMessage, request)->receipt->n_totals, 0);
}

TEST(append_keeps_the_previews_of_the_session)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_ok(f, session, ROLE_ASSISTANT, "agent 1");
    append_ok(f, session, ROLE_USER, "");
    CHECK_STR(get_ok(f, session)->first_message_preview, "");
    append_ok(f, session, ROLE_USER, "user 1");
    append_ok(f, session, ROLE_USER, "user 2");
    append_ok(f, session, ROLE_USER, "");
    append_ok(f, session, ROLE_ASSISTANT, "agent 2");
    append_ok(f, session, ROLE_TOOL, "tool");
    append_ok(f, session, ROLE_SYSTEM, "system");
    NewMessage *injected = text_message(f, ROLE_USER, "injected");
    injected->kind = MESSAGE_KIND_INJECTED;
    entry_ok(f, session, injected);
    Session *got = get_ok(f, session);
    CHECK_STR(got->first_message_preview, "user 1");
    CHECK_STR(got->last_user_message, "user 2");
    CHECK_STR(got->last_agent_message, "agent 2");
}

TEST(append_joins_the_text_parts_that_are_not_empty_for_the_preview)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Part thinking = {.kind_case = PART__KIND_THINKING, .thinking = &(Thinking){.text = "hm"}};
    Part *parts[] = {&thinking, text_part(f, "", ""), text_part(f, "", "said"),
                     text_part(f, "", "more")};
    entry_ok(f, session, &(NewMessage){.role = ROLE_USER, .n_parts = 4, .parts = parts});
    CHECK_STR(get_ok(f, session)->first_message_preview, "said more");
    CHECK_STR(get_ok(f, session)->last_user_message, "said more");
}

TEST(append_cuts_joined_previews_on_a_code_point)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Part *parts[] = {text_part(f, "", filled(f, 'u', FIRST_PREVIEW_BYTES_MAX - 3)),
                     text_part(f, "", "€"), text_part(f, "", "more")};
    entry_ok(f, session, &(NewMessage){.role = ROLE_USER, .n_parts = 3, .parts = parts});
    const char *preview = get_ok(f, session)->first_message_preview;
    CHECK_EQ(strlen(preview), FIRST_PREVIEW_BYTES_MAX - 2);
    CHECK_EQ(preview[FIRST_PREVIEW_BYTES_MAX - 3], ' ');
}

// One byte, then as many three-byte characters as there is room for: a cut in bytes would fall
// inside of one.
static const char *euros(Fixture *f, size_t count)
{
    char *text = fixture_alloc(f, 3 * count + 2);
    text[0] = 'x';
    for (size_t i = 0; i < count; i++)
        memcpy(text + 1 + 3 * i, "€", 3);
    return text;
}

TEST(append_cuts_previews_on_a_code_point)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_ok(f, session, ROLE_USER, filled(f, 'u', FIRST_PREVIEW_BYTES_MAX + 1));
    CHECK_STR(get_ok(f, session)->first_message_preview, filled(f, 'u', FIRST_PREVIEW_BYTES_MAX));
    CHECK_STR(get_ok(f, session)->last_user_message, filled(f, 'u', LAST_PREVIEW_BYTES_MAX));
    append_ok(f, session, ROLE_ASSISTANT, euros(f, 100));
    CHECK_STR(get_ok(f, session)->last_agent_message, euros(f, (LAST_PREVIEW_BYTES_MAX - 1) / 3));
    const char *other = session_ok(f);
    append_ok(f, other, ROLE_USER, euros(f, 100));
    const char *cut = get_ok(f, other)->first_message_preview;
    CHECK_STR(cut, euros(f, (FIRST_PREVIEW_BYTES_MAX - 1) / 3));
}

TEST(append_keeps_external_ids_unique_within_a_session)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    External external = {.source = "pi", .id = "1"};
    NewMessage message = {.role = ROLE_USER, .external = &external};
    const char *holder = entry_ok(f, session, &message)->id;
    entry_fails(f, session, &message, "EXTERNAL_TAKEN");
    CHECK(strstr(f->status.message, holder));
    CHECK_EQ(f->status.code, STATUS_ALREADY_EXISTS);
    external.source = "hecate";
    entry_ok(f, session, &message);
    external = (External){.source = "pi", .id = "2"};
    entry_ok(f, session, &message);
    external.id = "1";
    entry_ok(f, session_ok(f), &message);
    CHECK_EQ(get_ok(f, session)->entry_count, 3);
}

TEST(append_wants_both_halves_of_an_external_id)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    External halves[] = {{.source = "pi"}, {.id = "1"}, {.source = ""}};
    for (size_t i = 0; i < 3; i++) {
        entry_fails(f, session, &(NewMessage){.role = ROLE_USER, .external = &halves[i]},
                    "INVALID_ARGUMENT");
        CHECK(strstr(f->status.message, "external"));
    }
}

TEST(append_refuses_when_the_head_is_another_than_expected)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    AppendMessageRequest request = {
        .session_id = CHARS(session),
        .message = text_message(f, ROLE_USER, "m"),
        .expected_head_case = APPEND_MESSAGE_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_ID,
        .expected_head_id = "",
    };
    const char *first = CALL_OK(f, append_message, AppendMessage, request)->receipt->id;
    CALL_FAILS(f, append_message, AppendMessage, "HEAD_MOVED", request);
    CHECK_EQ(f->status.code, STATUS_ABORTED);
    request.expected_head_id = CHARS(first);
    CALL_OK(f, append_message, AppendMessage, request);
    CALL_FAILS(f, append_message, AppendMessage, "HEAD_MOVED", request);
    request.expected_head_id = "nonsense";
    CALL_FAILS(f, append_message, AppendMessage, "INVALID_ARGUMENT", request);
    CHECK_EQ(get_ok(f, session)->entry_count, 2);
}

TEST(append_elsewhere_than_the_head_makes_a_branch)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *m1 = append_ok(f, session, ROLE_USER, "m1");
    append_ok(f, session, ROLE_USER, "m2");
    const char *b1 = append_after_ok(f, session, m1, "b1");
    CHECK_STR(message_ok(f, b1)->parent_id, m1);
    CHECK_EQ(message_ok(f, b1)->sequence, 2);
    CHECK_STR(history_texts(f, session), "m1 b1");
    const char *start = append_after_ok(f, session, "", "c1");
    CHECK_STR(message_ok(f, start)->parent_id, "");
    CHECK_STR(history_texts(f, session), "c1");
    CHECK_EQ(get_ok(f, session)->entry_count, 4);
    CHECK_STR(get_ok(f, session)->last_user_message, "c1");
    CHECK_STR(get_ok(f, session)->first_message_preview, "m1");
}

TEST(append_refuses_a_parent_that_is_unknown_or_in_another_tree)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *other = append_ok(f, session_ok(f), ROLE_USER, "other");
    AppendMessageRequest request = {
        .session_id = CHARS(session),
        .message = text_message(f, ROLE_USER, "m"),
        .parent_case = APPEND_MESSAGE_REQUEST__PARENT_PARENT_ID,
        .parent_id = CHARS(other),
    };
    CALL_FAILS(f, append_message, AppendMessage, "NOT_IN_TREE", request);
    request.parent_id = CHARS(session);
    CALL_FAILS(f, append_message, AppendMessage, "MESSAGE_NOT_FOUND", request);
    request.parent_id = "x";
    CALL_FAILS(f, append_message, AppendMessage, "INVALID_ARGUMENT", request);
    CHECK(strstr(f->status.message, "parent_id"));
    CHECK_EQ(get_ok(f, session)->entry_count, 0);
}

TEST(append_refuses_sessions_that_are_missing_deleted_or_archived)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *message = append_ok(f, session, ROLE_USER, "m");
    entry_fails(f, message, text_message(f, ROLE_USER, "m"), "SESSION_NOT_FOUND");
    entry_fails(f, "", text_message(f, ROLE_USER, "m"), "INVALID_ARGUMENT");
    delete_ok(f, session);
    entry_fails(f, session, text_message(f, ROLE_USER, "m"), "SESSION_DELETED");
    const char *archived = session_ok(f);
    archive_ok(f, archived, true);
    entry_fails(f, archived, text_message(f, ROLE_USER, "m"), "SESSION_ARCHIVED");
    CALL_FAILS(f, append_message, AppendMessage, "INVALID_ARGUMENT",
               {.session_id = CHARS(session)});
    CHECK(strstr(f->status.message, "message"));
}

TEST(append_replay_returns_the_first_receipt_and_appends_once)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    NewMessage *message = text_message(f, ROLE_ASSISTANT, "m");
    message->usage = &(Usage){.cost_nano_usd = 3};
    AppendMessageRequest request = {
        .session_id = CHARS(root), .message = message, .propagate_usage = true};
    Receipt *first = CALL_OK_WITH(f, "op", append_message, AppendMessage, request)->receipt;
    append_ok(f, root, ROLE_USER, "between");
    f->now_ms += 1000;
    Receipt *again = CALL_OK_WITH(f, "op", append_message, AppendMessage, request)->receipt;
    CHECK_STR(again->id, first->id);
    CHECK_STR(again->part_ids[0], first->part_ids[0]);
    CHECK_EQ(again->created_at, first->created_at);
    CHECK_EQ(again->totals[0]->totals->cost_nano_usd, 3);
    CHECK_STR(history_texts(f, root), "m between");
    CHECK_EQ(get_ok(f, root)->totals->cost_nano_usd, 3);
    request.propagate_usage = false;
    CALL_FAILS_WITH(f, "op", append_message, AppendMessage, "OPERATION_ID_REUSED", request);
    CHECK_EQ(f->status.code, STATUS_ABORTED);
}

TEST(append_that_failed_leaves_its_operation_id_free)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    CALL_FAILS_WITH(f, "op", append_message, AppendMessage, "INVALID_ARGUMENT",
                    {.session_id = CHARS(session), .message = &(NewMessage){.role = 0}});
    CALL_OK_WITH(f, "op", append_message, AppendMessage,
                 {.session_id = CHARS(session), .message = text_message(f, ROLE_USER, "m")});
    CHECK_STR(history_texts(f, session), "m");
}

TEST(append_survives_a_restart_with_its_operations_ids_and_order)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    AppendMessageRequest request = {
        .session_id = CHARS(session),
        .message = text_message(f, ROLE_USER, "m1"),
    };
    const char *first = CALL_OK_WITH(f, "op", append_message, AppendMessage, request)->receipt->id;
    fixture_reopen(f);
    CHECK_STR(CALL_OK_WITH(f, "op", append_message, AppendMessage, request)->receipt->id, first);
    const char *second = append_ok(f, session, ROLE_USER, "m2");
    CHECK(strcmp(first, second) < 0);
    CHECK_STR(history_texts(f, session), "m1 m2");
}

TEST(append_forgets_operation_ids_after_their_age)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    AppendMessageRequest request = {
        .session_id = CHARS(session),
        .message = text_message(f, ROLE_USER, "m"),
    };
    CALL_OK_WITH(f, "op", append_message, AppendMessage, request);
    f->now_ms += OPERATION_AGE_MS_DEFAULT + 1;
    CALL_OK_WITH(f, "other", append_message, AppendMessage, request);
    CALL_OK_WITH(f, "op", append_message, AppendMessage, request);
    CHECK_STR(history_texts(f, session), "m m m");
}

static Error count_writes(void *context, KvOperation operation, KvTable table)
{
    (void)table;
    bool is_write = operation == KV_PUT || operation == KV_DELETE;
    if (is_write) __atomic_add_fetch((int *)context, 1, __ATOMIC_RELAXED);
    return ERROR_NONE;
}

// design.md §9. The chunk, its owner, the event, the head, the state; two more where the session
// was not the last active; two for the operation; none for a text part.
TEST(append_writes_no_more_rows_than_promised)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    int writes = 0;
    f->options.store.seam = (KvSeam){count_writes, &writes};
    fixture_reopen(f);
    append_ok(f, session, ROLE_USER, "m");
    CHECK_EQ(__atomic_exchange_n(&writes, 0, __ATOMIC_RELAXED), 5);
    f->now_ms += 1000;
    append_ok(f, session, ROLE_USER, "m");
    CHECK_EQ(__atomic_exchange_n(&writes, 0, __ATOMIC_RELAXED), 5);
    session_ok(f);
    f->now_ms += 1000;
    __atomic_store_n(&writes, 0, __ATOMIC_RELAXED);
    append_ok(f, session, ROLE_USER, "m");
    CHECK_EQ(__atomic_exchange_n(&writes, 0, __ATOMIC_RELAXED), 7);
    CALL_OK_WITH(f, "op", append_message, AppendMessage,
                 {.session_id = CHARS(session), .message = text_message(f, ROLE_USER, "m")});
    CHECK_EQ(__atomic_exchange_n(&writes, 0, __ATOMIC_RELAXED), 7);
}

static Error count_event_seeks(void *context, KvOperation operation, KvTable table)
{
    bool is_seek = operation == KV_SEEK && table == TABLE_EVENTS;
    if (is_seek) __atomic_add_fetch((int *)context, 1, __ATOMIC_RELAXED);
    return ERROR_NONE;
}

// The oldest event's time is known from the append before, until that event has gone.
TEST(append_looks_for_the_oldest_event_only_when_it_is_another)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    int seeks = 0;
    f->options.store.seam = (KvSeam){count_event_seeks, &seeks};
    fixture_reopen(f);
    append_ok(f, session, ROLE_USER, "m");
    CHECK_EQ(__atomic_exchange_n(&seeks, 0, __ATOMIC_RELAXED), 1);
    append_ok(f, session, ROLE_USER, "m");
    append_ok(f, session, ROLE_USER, "m");
    CHECK_EQ(__atomic_exchange_n(&seeks, 0, __ATOMIC_RELAXED), 0);
    f->now_ms += EVENT_AGE_MS_DEFAULT + 1; // two go with each that comes
    append_ok(f, session, ROLE_USER, "m");
    CHECK_EQ(__atomic_exchange_n(&seeks, 0, __ATOMIC_RELAXED), 1);
}
