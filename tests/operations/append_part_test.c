// AppendPart: parts behind each other, parts in each other's place, and what follows from them.

#include "open_message.h"

#include <stdio.h>

#include "base/limits.h"
#include "os/random.h"
#include "raw.h"
#include "wire/wire.h"

TEST(append_part_puts_parts_behind_each_other)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    NewMessage *begun = text_message(f, ROLE_ASSISTANT, "I look");
    begun->parts[0]->id = "p0";
    begun->status = MESSAGE_STATUS_OPEN;
    const char *id = entry_ok(f, session, begun)->id;
    f->now_ms += 5;
    Receipt *receipt = append_part_ok(f, id, text_part(f, "p1", "here"));
    CHECK_STR(receipt->id, id);
    CHECK_STR(receipt->session_id, session);
    CHECK_EQ(receipt->created_at, f->now_ms - 5);
    CHECK_EQ(receipt->n_part_ids, 1);
    CHECK_STR(receipt->part_ids[0], "p1");
    append_part_ok(f, id, tool_part(f, "p2", "ls", TOOL_STATE_PENDING));
    CHECK_STR(parts_of(f, id), "p0=I look p1=here p2:ls/1");
    CHECK_EQ(message_ok(f, id)->status, MESSAGE_STATUS_OPEN);
    CHECK_EQ(get_ok(f, session)->message_count, 1);
    check_store_ok(f);
}

TEST(append_part_issues_an_id_that_names_the_part_from_then_on)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = open_ok(f, session, ROLE_ASSISTANT);
    const char *first = append_part_ok(f, id, text_part(f, "", "one"))->part_ids[0];
    const char *second = append_part_ok(f, id, text_part(f, "", "two"))->part_ids[0];
    CHECK_EQ(strlen(first), 26);
    CHECK(strcmp(first, second) < 0);
    CHECK_STR(message_ok(f, id)->parts[1]->id, second);
    append_part_ok(f, id, text_part(f, first, "ONE"));
    Message *message = message_ok(f, id);
    CHECK_EQ(message->n_parts, 2);
    CHECK_STR(message->parts[0]->text->text, "ONE");
    CHECK_STR(message->parts[0]->id, first);
}

TEST(append_part_with_a_known_id_replaces_the_part_in_its_place)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = open_ok(f, session, ROLE_ASSISTANT);
    append_part_ok(f, id, text_part(f, "a", "before"));
    append_part_ok(f, id, tool_part(f, "b", "ls", TOOL_STATE_PENDING));
    append_part_ok(f, id, text_part(f, "c", "after"));
    append_part_ok(f, id, tool_part(f, "b", "ls", TOOL_STATE_RUNNING));
    CHECK_STR(parts_of(f, id), "a=before b:ls/2 c=after");
    Part *done = tool_part(f, "b", filled(f, 'n', STRING_BYTES_MAX), TOOL_STATE_COMPLETED);
    done->tool_use->title = filled(f, 't', TITLE_BYTES_MAX);
    done->ended_at = 7;
    append_part_ok(f, id, done);
    Message *message = message_ok(f, id);
    CHECK_EQ(message->n_parts, 3);
    CHECK_EQ(message->parts[1]->ended_at, 7);
    CHECK_STR(message->parts[1]->tool_use->title, done->tool_use->title);
    CHECK_STR(message->parts[2]->text->text, "after");
    append_part_ok(f, id, text_part(f, "b", "another kind"));
    CHECK_STR(parts_of(f, id), "a=before b=another kind c=after");
    CHECK_EQ(table_rows(f, "parts"), 4); // its count and three ids: no tool is left
    check_store_ok(f);
}

// Each state that a message can be in, against a plain list of its parts.
TEST(append_part_random_appends_and_replacements_are_those_of_a_list)
{
    enum { PARTS_MAX = 60 };
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = open_ok(f, session, ROLE_ASSISTANT);
    Random random;
    random_seed(&random, test_seed());
    Part *parts[PARTS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < test_scaled(400); i++) {
        size_t at = random_below(&random, count < PARTS_MAX ? count + 1 : count);
        char *part_id = fixture_alloc(f, 16);
        snprintf(part_id, 16, "part-%zu", at);
        size_t size = random_below(&random, random_below(&random, 4) ? 300 : 12000);
        char *text = filled(f, (char)('a' + random_below(&random, 26)), size);
        bool is_tool = random_below(&random, 3) == 0;
        parts[at] =
            is_tool ? tool_part(f, part_id, "ls", TOOL_STATE_RUNNING) : text_part(f, part_id, text);
        if (is_tool) {
            parts[at]->tool_use->input_case = TOOL_USE__INPUT_INPUT_TEXT;
            parts[at]->tool_use->input_text = text;
        }
        append_part_ok(f, id, parts[at]);
        if (at == count) count++;
    }
    Message *message = message_ok(f, id);
    CHECK_EQ(message->n_parts, count);
    for (size_t i = 0; i < count; i++) {
        const Part *got = message->parts[i];
        CHECK_STR(got->id, parts[i]->id);
        CHECK_EQ(got->kind_case, parts[i]->kind_case);
        CHECK_STR(got->kind_case == PART__KIND_TEXT ? got->text->text : got->tool_use->input_text,
                  got->kind_case == PART__KIND_TEXT ? parts[i]->text->text
                                                    : parts[i]->tool_use->input_text);
    }
    check_store_ok(f);
    fixture_reopen(f);
    append_part_ok(f, id, text_part(f, "part-0", "again"));
    CHECK_EQ(message_ok(f, id)->n_parts, count);
    seal_ok(f, id, (SealMessageRequest){.status = 0});
    CHECK_STR(message_ok(f, id)->parts[0]->text->text, "again");
    check_store_ok(f);
}

TEST(append_part_events_name_each_part_in_order)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = open_ok(f, session, ROLE_ASSISTANT);
    uint64_t before = newest_sequence(f);
    append_part_ok(f, id, text_part(f, "a", "1"));
    append_part_ok(f, id, tool_part(f, "b", "ls", TOOL_STATE_PENDING));
    append_part_ok(f, id, tool_part(f, "b", "ls", TOOL_STATE_COMPLETED));
    seal_ok(f, id, (SealMessageRequest){.status = MESSAGE_STATUS_FAILED});
    ListEventsResponse *list =
        CALL_OK(f, list_events, ListEvents, {.after_sequence = before, .limit = 10});
    static const char *const EXPECTED[][2] = {
        {"part.appended", "a"},
        {"part.appended", "b"},
        {"part.replaced", "b"},
        {"message.sealed", ""},
    };
    CHECK_EQ(list->n_events, 4);
    for (size_t i = 0; i < 4; i++) {
        CHECK_STR(list->events[i]->type, EXPECTED[i][0]);
        CHECK_STR(list->events[i]->record_id, EXPECTED[i][1]);
        CHECK_STR(list->events[i]->message_id, id);
        CHECK_STR(list->events[i]->session_id, session);
        CHECK_EQ(list->events[i]->role, ROLE_ASSISTANT);
        CHECK_EQ(list->events[i]->previous_session_sequence, before + i);
    }
    CALL_FAILS(f, publish_event, PublishEvent, "INVALID_ARGUMENT", {.type = "part.appended"});
}

TEST(append_part_to_what_takes_none_is_refused)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *complete = append_ok(f, session, ROLE_ASSISTANT, "m");
    const char *open = open_ok(f, session, ROLE_ASSISTANT);
    const char *deleted = open_ok(f, session, ROLE_ASSISTANT);
    const char *purged = open_ok(f, session, ROLE_ASSISTANT);
    append_part_ok(f, purged, text_part(f, "a", "secret"));
    message_delete_ok(f, deleted);
    message_purge_ok(f, purged);
    CHECK(!store_holds(f, "secret"));
    Part *part = text_part(f, "a", "x");
    append_part_fails(f, complete, part, "MESSAGE_SEALED");
    append_part_fails(f, deleted, part, "MESSAGE_SEALED");
    CHECK(strstr(f->status.message, "deleted"));
    append_part_fails(f, purged, part, "MESSAGE_SEALED");
    CHECK(strstr(f->status.message, "purged"));
    CHECK_EQ(f->status.code, STATUS_FAILED_PRECONDITION);
    append_part_fails(f, UNKNOWN_ID, part, "MESSAGE_NOT_FOUND");
    append_part_fails(f, "", part, "INVALID_ARGUMENT");
    append_part_fails(f, open, NULL, "INVALID_ARGUMENT");
    CHECK(strstr(f->status.message, "part"));
    archive_ok(f, session, true);
    append_part_fails(f, open, part, "SESSION_ARCHIVED");
    archive_ok(f, session, false);
    delete_ok(f, session);
    append_part_fails(f, open, part, "SESSION_DELETED");
    restore_ok(f, session);
    CHECK_STR(parts_of(f, open), "");
    check_store_ok(f);
}

TEST(append_part_checks_the_part_as_append_message_does)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = open_ok(f, session, ROLE_ASSISTANT);
    append_part_fails(f, id, tool_part(f, "a", "", TOOL_STATE_PENDING), "INVALID_PART");
    CHECK_STR(f->status.message, "part.tool_use.name is required");
    append_part_fails(f, id, &(Part){.id = "a"}, "INVALID_PART");
    ToolUse use = {.id = "1", .name = "ls", .input_case = TOOL_USE__INPUT_INPUT_JSON};
    append_part_fails(f, id, &(Part){.kind_case = PART__KIND_TOOL_USE, .tool_use = &use},
                      "INVALID_JSON");
    Raw *part = raw_begin(f), *body = raw_begin(f), *kind = raw_begin(f);
    raw_message(part, 99, kind);
    raw_text(body, 1, id);
    raw_message(body, 2, part);
    raw_fails(f, "AppendPart", body, "UNKNOWN_PART_KIND", "part");
    CHECK_STR(parts_of(f, id), "");
}

TEST(append_part_limit_of_count_holds_at_it_and_past_it)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    NewMessage message = {.role = ROLE_ASSISTANT, .status = MESSAGE_STATUS_OPEN};
    message.n_parts = PART_COUNT_MAX - 1;
    message.parts = fixture_alloc(f, message.n_parts * sizeof(Part *));
    for (size_t i = 0; i < message.n_parts; i++)
        message.parts[i] = text_part(f, "", "x");
    const char *id = entry_ok(f, session, &message)->id;
    append_part_ok(f, id, text_part(f, "last", "y"));
    append_part_fails(f, id, text_part(f, "more", "z"), "TOO_LONG");
    append_part_ok(f, id, text_part(f, "last", "Y"));
    CHECK_STR(message_ok(f, id)->parts[PART_COUNT_MAX - 1]->text->text, "Y");
    check_store_ok(f);
    seal_ok(f, id, (SealMessageRequest){.status = MESSAGE_STATUS_COMPLETE});
    CHECK_EQ(table_rows(f, "parts"), 0);
}

// The bytes that AppendPart adds to a message with a text of this size.
static size_t text_part_bytes(size_t text_size)
{
    size_t text = wire_bytes_field_size(1, text_size);
    size_t part = wire_bytes_field_size(1, 1) + wire_bytes_field_size(10, text);
    return wire_bytes_field_size(34, part);
}

TEST(append_part_limit_of_bytes_holds_at_it_and_past_it)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_ok(f, session, ROLE_USER, "m"); // a sequence of 0 would be stored and not be counted
    const char *id = open_ok(f, session, ROLE_ASSISTANT);
    size_t used = protobuf_c_message_get_packed_size(&message_ok(f, id)->base);
    size_t room = OPEN_BYTES_MAX - used, size = room;
    while (text_part_bytes(size) > room)
        size--;
    char *text = filled(f, 'x', size + 1);
    append_part_fails(f, id, text_part(f, "a", text), "TOO_LONG");
    text[size] = '\0';
    append_part_ok(f, id, text_part(f, "a", text));
    append_part_fails(f, id, text_part(f, "b", ""), "TOO_LONG");
    text[size - 1] = '\0';
    append_part_ok(f, id, text_part(f, "a", text));
    // Its end fits, the longest error too.
    ErrorInfo said = {.code = filled(f, 'c', STRING_BYTES_MAX),
                      .message = filled(f, 'm', ERROR_MESSAGE_BYTES_MAX)};
    Usage usage = {.input_tokens = -1, .output_tokens = -1, .cost_nano_usd = -1};
    seal_ok(f, id,
            (SealMessageRequest){.status = MESSAGE_STATUS_FAILED,
                                 .error = &said,
                                 .usage = &usage,
                                 .finish_reason = filled(f, 'f', STRING_BYTES_MAX),
                                 .duration_ms = INT64_MAX});
    Message *message = message_ok(f, id);
    CHECK_EQ(strlen(message->parts[0]->text->text), size - 1);
    CHECK_EQ(strlen(message->error->message), ERROR_MESSAGE_BYTES_MAX);
    check_store_ok(f);
}

TEST(append_part_notes_the_previews)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *user = open_ok(f, session, ROLE_USER);
    append_part_ok(f, user, text_part(f, "a", ""));
    append_part_ok(f, user, text_part(f, "b", "question"));
    append_part_ok(f, user, text_part(f, "c", "more"));
    CHECK_STR(get_ok(f, session)->first_message_preview, "question more");
    CHECK_STR(get_ok(f, session)->last_user_message, "question more");
    const char *early = open_ok(f, session, ROLE_ASSISTANT);
    append_ok(f, session, ROLE_ASSISTANT, "late");
    append_part_ok(f, early, text_part(f, "a", "early"));
    CHECK_STR(get_ok(f, session)->last_agent_message, "late");
    const char *open = open_ok(f, session, ROLE_ASSISTANT);
    append_part_ok(f, open, tool_part(f, "t", "ls", TOOL_STATE_PENDING));
    CHECK_STR(get_ok(f, session)->last_agent_message, "late");
    append_part_ok(f, open, text_part(f, "x", "newest"));
    CHECK_STR(get_ok(f, session)->last_agent_message, "newest");
    append_part_ok(f, open, text_part(f, "x", "replaced"));
    CHECK_STR(get_ok(f, session)->last_agent_message, "replaced");
    append_part_ok(f, open, text_part(f, "x", ""));
    CHECK_STR(get_ok(f, session)->last_agent_message, "late");
    append_part_ok(f, user, text_part(f, "b", "QUESTION"));
    CHECK_STR(get_ok(f, session)->first_message_preview, "QUESTION more");
    append_part_ok(f, user, text_part(f, "d", filled(f, 'u', LAST_PREVIEW_BYTES_MAX)));
    append_part_ok(f, user, text_part(f, "e", filled(f, 'v', FIRST_PREVIEW_BYTES_MAX)));
    append_part_ok(f, user, text_part(f, "f", "no room"));
    CHECK_EQ(strlen(get_ok(f, session)->last_user_message), LAST_PREVIEW_BYTES_MAX);
    CHECK_EQ(strlen(get_ok(f, session)->first_message_preview), FIRST_PREVIEW_BYTES_MAX);
    check_store_ok(f);
}

TEST(append_part_replays_return_the_first_receipt)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = open_ok(f, session, ROLE_ASSISTANT);
    AppendPartRequest request = {.message_id = CHARS(id), .part = text_part(f, "", "one")};
    Receipt *first = CALL_OK_WITH(f, "op", append_part, AppendPart, request)->receipt;
    seal_ok(f, id, (SealMessageRequest){.status = MESSAGE_STATUS_COMPLETE});
    Receipt *again = CALL_OK_WITH(f, "op", append_part, AppendPart, request)->receipt;
    CHECK_STR(again->part_ids[0], first->part_ids[0]);
    CHECK_EQ(message_ok(f, id)->n_parts, 1);
    request.part = text_part(f, "", "two");
    CALL_FAILS_WITH(f, "op", append_part, AppendPart, "OPERATION_ID_REUSED", request);
}

TEST(append_part_rows_go_with_the_session)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = open_ok(f, session, ROLE_ASSISTANT);
    append_part_ok(f, id, tool_part(f, "a", "ls", TOOL_STATE_PENDING));
    CHECK_EQ(table_rows(f, "parts"), 3);
    purge_ok(f, session, /* keep_for_forks= */ false);
    append_part_fails(f, id, text_part(f, "b", "x"), "MESSAGE_NOT_FOUND");
    purges_settle(f);
    CHECK_EQ(table_rows(f, "parts"), 0);
}
