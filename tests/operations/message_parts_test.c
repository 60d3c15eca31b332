// Parts: what each kind requires, and what of it comes back.

#include "base/limits.h"
#include "entries.h"
#include "raw.h"
#include "store/message_part.h"

static ProtobufCBinaryData data_of(const char *text)
{
    return (ProtobufCBinaryData){strlen(text), (uint8_t *)(uintptr_t)text};
}

// Appends the part and returns what GetMessage says of it.
static Part *stored(Fixture *f, const char *session, Part part)
{
    Part *again = message_ok(f, part_ok(f, session, &part)->id)->parts[0];
    CHECK_EQ(again->kind_case, part.kind_case);
    return again;
}

static void refused(Fixture *f, const char *session, Part part, const char *field)
{
    part_fails(f, session, &part, "INVALID_PART");
    CHECK(strstr(f->status.message, "message.parts[0]"));
    CHECK(strstr(f->status.message, field));
    CHECK_EQ(f->status.code, STATUS_INVALID_ARGUMENT);
    CHECK_EQ(get_ok(f, session)->entry_count, 0);
}

TEST(part_fields_of_any_kind_come_back)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Part *part = stored(f, session,
                        (Part){
                            .id = "p1",
                            .started_at = 1,
                            .ended_at = TIME_MS_MAX,
                            .signature = data_of("\xff\xfe"),
                            .metadata_json = "{\"k\":1}",
                            .kind_case = PART__KIND_TEXT,
                            .text = &(Text){.text = "t", .synthetic = true, .ignored = true},
                        });
    CHECK_STR(part->id, "p1");
    CHECK_EQ(part->started_at, 1);
    CHECK_EQ(part->ended_at, TIME_MS_MAX);
    CHECK_EQ(part->signature.len, 2);
    CHECK_EQ(part->signature.data[0], 0xff);
    CHECK_STR(part->metadata_json, "{\"k\":1}");
    CHECK(part->text->synthetic && part->text->ignored);
}

TEST(part_text_and_thinking_may_be_empty)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Part text = {.kind_case = PART__KIND_TEXT, .text = &(Text){.text = ""}};
    CHECK_STR(stored(f, session, text)->text->text, "");
    Part thinking = {.kind_case = PART__KIND_THINKING, .thinking = &(Thinking){.text = ""}};
    CHECK_STR(stored(f, session, thinking)->thinking->text, "");
    Thinking redacted = {.redacted = true, .data = data_of("opaque")};
    thinking.thinking = &redacted;
    Thinking *again = stored(f, session, thinking)->thinking;
    CHECK(again->redacted);
    CHECK_EQ(again->data.len, 6);
}

TEST(part_tool_use_wants_id_and_name)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Part part = {.kind_case = PART__KIND_TOOL_USE};
    part.tool_use = &(ToolUse){.name = "bash"};
    refused(f, session, part, "tool_use.id");
    part.tool_use = &(ToolUse){.id = "t1"};
    refused(f, session, part, "tool_use.name");
    part.tool_use = &(ToolUse){
        .id = "t1",
        .name = "bash",
        .input_case = TOOL_USE__INPUT_INPUT_JSON,
        .input_json = "{\"cmd\":\"ls\"}",
        .state = TOOL_STATE_RUNNING,
        .title = "lists",
    };
    ToolUse *use = stored(f, session, part)->tool_use;
    CHECK_STR(use->id, "t1");
    CHECK_STR(use->name, "bash");
    CHECK_STR(use->input_json, "{\"cmd\":\"ls\"}");
    CHECK_EQ(use->state, TOOL_STATE_RUNNING);
    CHECK_STR(use->title, "lists");
    part.tool_use = &(ToolUse){.id = "t1", .name = "bash"};
    CHECK_EQ(stored(f, session, part)->tool_use->input_case, TOOL_USE__INPUT__NOT_SET);
}

TEST(part_tool_use_input_json_must_be_json_and_input_text_need_not)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    ToolUse use = {.id = "t", .name = "n", .input_case = TOOL_USE__INPUT_INPUT_JSON};
    Part part = {.kind_case = PART__KIND_TOOL_USE, .tool_use = &use};
    const char *wrong[] = {"{\"a\":", "{a:1}", "{} {}", "", "nul", "{\"a\":1,}", "\"\\x\"", "01"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        use.input_json = CHARS(wrong[i]);
        part_fails(f, session, &part, "INVALID_JSON");
        CHECK(strstr(f->status.message, "message.parts[0].tool_use.input_json"));
    }
    CHECK_EQ(get_ok(f, session)->entry_count, 0);
    const char *right[] = {"{}", " [1, 2.5e3] ", "null", "\"\\u00e9\"", "true", "-0"};
    for (size_t i = 0; i < sizeof(right) / sizeof(*right); i++) {
        use.input_json = CHARS(right[i]);
        CHECK_STR(stored(f, session, part)->tool_use->input_json, right[i]);
    }
    use.input_case = TOOL_USE__INPUT_INPUT_TEXT;
    use.input_text = "{\"a\":";
    CHECK_STR(stored(f, session, part)->tool_use->input_text, "{\"a\":");
    use.input_text = "";
    CHECK_EQ(stored(f, session, part)->tool_use->input_case, TOOL_USE__INPUT_INPUT_TEXT);
}

TEST(part_tool_result_wants_the_id_of_its_use)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Part part = {.kind_case = PART__KIND_TOOL_RESULT, .tool_result = &(ToolResult){.content = "x"}};
    refused(f, session, part, "tool_result.tool_use_id");
    part.tool_result = &(ToolResult){
        .tool_use_id = "t1",
        .tool_name = "bash",
        .content = "",
        .is_error = true,
        .data_json = "[]",
    };
    ToolResult *result = stored(f, session, part)->tool_result;
    CHECK_STR(result->tool_use_id, "t1");
    CHECK_STR(result->tool_name, "bash");
    CHECK(result->is_error);
    CHECK_STR(result->data_json, "[]");
}

TEST(part_attachments_want_a_kind_and_what_the_kind_requires)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Attachment attachment = {.kind_case = ATTACHMENT__KIND__NOT_SET};
    Attachment *attachments[] = {&attachment};
    ToolResult result = {.tool_use_id = "t", .n_attachments = 1, .attachments = attachments};
    Part part = {.kind_case = PART__KIND_TOOL_RESULT, .tool_result = &result};
    refused(f, session, part, "attachments");
    attachment.kind_case = ATTACHMENT__KIND_IMAGE;
    attachment.image = &(Image){.source_case = IMAGE__SOURCE_URL, .url = "u"};
    refused(f, session, part, "tool_result.attachments[0].mime_type");
    attachment.image = &(Image){.mime_type = "image/png"};
    refused(f, session, part, "tool_result.attachments[0].url or data");
    attachment.kind_case = ATTACHMENT__KIND_FILE;
    attachment.file = &(File){.mime_type = "text/plain", .source_case = FILE__SOURCE_URL};
    refused(f, session, part, "tool_result.attachments[0].url or data");
    attachment.file = &(File){.source_case = FILE__SOURCE_DATA, .data = data_of("x")};
    refused(f, session, part, "tool_result.attachments[0].mime_type");

    attachment.file->mime_type = "text/plain";
    Attachment text = {.kind_case = ATTACHMENT__KIND_TEXT, .text = &(Text){.text = "note"}};
    Attachment *both[] = {&attachment, &text};
    result.n_attachments = 2;
    result.attachments = both;
    ToolResult *again = stored(f, session, part)->tool_result;
    CHECK_EQ(again->n_attachments, 2);
    CHECK_STR(again->attachments[0]->file->mime_type, "text/plain");
    CHECK_STR(again->attachments[1]->text->text, "note");
}

TEST(part_image_wants_a_type_and_a_source)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Part part = {.kind_case = PART__KIND_IMAGE};
    part.image = &(Image){.source_case = IMAGE__SOURCE_DATA, .data = data_of("x")};
    refused(f, session, part, "image.mime_type");
    part.image = &(Image){.mime_type = "image/png"};
    refused(f, session, part, "image.url or data");
    part.image = &(Image){.mime_type = "image/png", .source_case = IMAGE__SOURCE_URL};
    refused(f, session, part, "image.url or data");
    part.image = &(Image){.mime_type = "image/png", .source_case = IMAGE__SOURCE_DATA};
    refused(f, session, part, "image.url or data");
    part.image = &(Image){
        .mime_type = "image/png",
        .source_case = IMAGE__SOURCE_DATA,
        .data = data_of("\x89PNG"),
        .detail = "high",
    };
    Image *image = stored(f, session, part)->image;
    CHECK_EQ(image->data.len, 4);
    CHECK_STR(image->detail, "high");
}

TEST(part_file_wants_a_type_and_a_source)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Part part = {.kind_case = PART__KIND_FILE};
    part.file = &(File){.source_case = FILE__SOURCE_URL, .url = "file:///x"};
    refused(f, session, part, "file.mime_type");
    part.file = &(File){.mime_type = "text/plain"};
    refused(f, session, part, "file.url or data");
    part.file = &(File){.mime_type = "text/plain", .source_case = FILE__SOURCE_DATA};
    refused(f, session, part, "file.url or data");
    part.file = &(File){
        .mime_type = "text/plain",
        .filename = filled(f, 'n', PATH_BYTES_MAX),
        .source_case = FILE__SOURCE_URL,
        .url = "file:///x",
        .source_json = "{}",
    };
    File *file = stored(f, session, part)->file;
    CHECK_STR(file->filename, filled(f, 'n', PATH_BYTES_MAX));
    CHECK_STR(file->url, "file:///x");
    CHECK_STR(file->source_json, "{}");
}

TEST(part_extension_wants_a_type)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Part part = {.kind_case = PART__KIND_EXTENSION, .extension = &(Extension){.json = "{}"}};
    refused(f, session, part, "extension.type");
    part.extension = &(Extension){.type = "patch", .json = "{"};
    part_fails(f, session, &part, "INVALID_JSON");
    CHECK(strstr(f->status.message, "message.parts[0].extension.json"));
    part.extension = &(Extension){.type = "patch"};
    CHECK_STR(stored(f, session, part)->extension->type, "patch");
}

TEST(part_without_a_kind_is_invalid)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    refused(f, session, (Part){.id = "p"}, "kind");
}

TEST(part_of_an_unknown_kind_is_refused_as_such)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Raw *part = raw_begin(f);
    raw_text(part, 1, "p1");
    raw_text(part, 99, "a kind of tomorrow");
    Raw *message = raw_begin(f);
    raw_number(message, 6, ROLE_USER);
    raw_message(message, 34, part);
    Raw *body = raw_begin(f);
    raw_text(body, 1, session);
    raw_message(body, 2, message);
    raw_fails(f, "AppendMessage", body, "UNKNOWN_PART_KIND", "message.parts[0]");
    CHECK_EQ(f->status.code, STATUS_INVALID_ARGUMENT);
    CHECK_EQ(get_ok(f, session)->entry_count, 0);
}

TEST(part_ids_must_differ_within_a_message)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Text text = {.text = "x"};
    Part a = {.id = "same", .kind_case = PART__KIND_TEXT, .text = &text};
    Part b = {.kind_case = PART__KIND_TEXT, .text = &text};
    Part c = {.id = "same", .kind_case = PART__KIND_TEXT, .text = &text};
    Part *parts[] = {&a, &b, &c};
    NewMessage message = {.role = ROLE_USER, .n_parts = 3, .parts = parts};
    entry_fails(f, session, &message, "INVALID_PART");
    CHECK(strstr(f->status.message, "same"));
    c.id = "other";
    entry_ok(f, session, &message);
    entry_ok(f, session, &message);
    CHECK_EQ(get_ok(f, session)->entry_count, 2);
}

TEST(part_that_is_wrong_is_named_by_its_place)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Part good = {.kind_case = PART__KIND_TEXT, .text = &(Text){.text = "x"}};
    Part bad = {.kind_case = PART__KIND_EXTENSION, .extension = &(Extension){.json = ""}};
    Part *parts[] = {&good, &good, &bad};
    entry_fails(f, session, &(NewMessage){.role = ROLE_USER, .n_parts = 3, .parts = parts},
                "INVALID_PART");
    CHECK(strstr(f->status.message, "message.parts[2]"));
}

static NewMessage *many_parts(Fixture *f, size_t count)
{
    NewMessage *message = fixture_alloc(f, sizeof(NewMessage));
    message->role = ROLE_USER;
    message->n_parts = count;
    message->parts = fixture_alloc(f, count * sizeof(Part *));
    Part *part = fixture_alloc(f, sizeof(Part));
    part->kind_case = PART__KIND_TEXT;
    part->text = fixture_alloc(f, sizeof(Text));
    part->text->text = filled(f, 'x', 100);
    for (size_t i = 0; i < count; i++)
        message->parts[i] = part;
    return message;
}

TEST(part_count_is_limited)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Receipt *receipt = entry_ok(f, session, many_parts(f, PART_COUNT_MAX));
    CHECK_EQ(receipt->n_part_ids, PART_COUNT_MAX);
    Message *message = message_ok(f, receipt->id);
    CHECK_EQ(message->n_parts, PART_COUNT_MAX);
    CHECK_STR(message->parts[PART_COUNT_MAX - 1]->id, receipt->part_ids[PART_COUNT_MAX - 1]);
    entry_fails(f, session, many_parts(f, PART_COUNT_MAX + 1), "TOO_LONG");
    CHECK(strstr(f->status.message, "message.parts"));
    CHECK_EQ(get_ok(f, session)->entry_count, 1);
}

// protobuf merges a sub-message that is sent twice: the parts of both add up.
TEST(part_count_is_limited_over_merged_messages)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Raw *half = raw_of(f, &new_message__descriptor, &many_parts(f, PART_COUNT_MAX)->base);
    Raw *body = raw_begin(f);
    raw_text(body, 1, session);
    raw_message(body, 2, half);
    raw_message(body, 2, half);
    raw_fails(f, "AppendMessage", body, "TOO_LONG", "parts");
    CHECK_EQ(get_ok(f, session)->entry_count, 0);
}

TEST(part_attachments_are_limited_in_number)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Attachment text = {.kind_case = ATTACHMENT__KIND_TEXT, .text = &(Text){.text = "x"}};
    Attachment *attachments[ATTACHMENT_COUNT_MAX + 1];
    for (size_t i = 0; i <= ATTACHMENT_COUNT_MAX; i++)
        attachments[i] = &text;
    ToolResult result = {
        .tool_use_id = "t",
        .n_attachments = ATTACHMENT_COUNT_MAX,
        .attachments = attachments,
    };
    Part part = {.kind_case = PART__KIND_TOOL_RESULT, .tool_result = &result};
    CHECK_EQ(stored(f, session, part)->tool_result->n_attachments, ATTACHMENT_COUNT_MAX);
    result.n_attachments++;
    part_fails(f, session, &part, "TOO_LONG");
    CHECK(strstr(f->status.message, "message.parts[0].tool_result.attachments"));
}

TEST(part_rows_of_tools_files_and_extensions_are_indexed_and_go_with_their_message)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    ToolUse use = {.id = "t1", .name = "needle_tool"};
    Part part = {.kind_case = PART__KIND_TOOL_USE, .tool_use = &use};
    const char *message = part_ok(f, session, &part)->id;
    CHECK_EQ(table_rows(f, "parts"), 1);
    append_ok(f, session, ROLE_USER, "text has no row");
    CHECK_EQ(table_rows(f, "parts"), 1);
    message_delete_ok(f, message);
    CHECK_EQ(table_rows(f, "parts"), 0);
}
