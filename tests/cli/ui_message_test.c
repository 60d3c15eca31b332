// UIMessages: how each part is written, and what is left out.

#include "ui_message.h"

#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "harness.h"
#include "shell.h"
#include "text/json.h"

#define CHARS(text) ((char *)(uintptr_t)(text))

static char *written;
static size_t written_bytes;

// Returns the JSON of the parts of an assistant message.
static const char *ui_parts(Part *parts, size_t count)
{
    enum { PARTS_MAX = 8 };
    Part *pointers[PARTS_MAX];
    CHECK(count <= PARTS_MAX);
    for (size_t i = 0; i < count; i++)
        pointers[i] = &parts[i];
    Message message = MESSAGE__INIT;
    message.id = "m1";
    message.role = ROLE_ASSISTANT;
    message.n_parts = count;
    message.parts = pointers;
    free(written);
    FILE *out = open_memstream(&written, &written_bytes);
    CHECK(out != NULL);
    ui_message_write(out, &message);
    CHECK_EQ(fclose(out), 0);
    size_t offset;
    CHECK(json_is_valid(slice_of(written), &offset));
    CHECK(memchr(written, '\n', written_bytes) == NULL);
    static const char BEGIN[] = "{\"id\":\"m1\",\"role\":\"assistant\",\"parts\":";
    CHECK(strncmp(written, BEGIN, strlen(BEGIN)) == 0);
    written[written_bytes - 1] = '\0';
    return written + strlen(BEGIN);
}

static Part tool(ToolUse *use, const char *name, ToolState state, const char *input_json)
{
    *use = (ToolUse)TOOL_USE__INIT;
    use->id = "c1";
    use->name = CHARS(name);
    use->state = state;
    if (input_json) {
        use->input_case = TINE__V1__TOOL_USE__INPUT_INPUT_JSON;
        use->input_json = CHARS(input_json);
    }
    Part part = PART__INIT;
    part.kind_case = PART__KIND_TOOL_USE;
    part.tool_use = use;
    return part;
}

static Part result(ToolResult *content, const char *text, bool is_error)
{
    *content = (ToolResult)TOOL_RESULT__INIT;
    content->tool_use_id = "c1";
    content->content = CHARS(text);
    content->is_error = is_error;
    Part part = PART__INIT;
    part.kind_case = PART__KIND_TOOL_RESULT;
    part.tool_result = content;
    return part;
}

TEST(ui_text_and_reasoning_without_ignored_text)
{
    Text shown = TEXT__INIT, ignored = TEXT__INIT;
    Thinking thinking = THINKING__INIT;
    Part parts[] = {PART__INIT, PART__INIT, PART__INIT};
    shown.text = "a \"b\"";
    ignored.text = "no";
    ignored.ignored = true;
    thinking.text = "why";
    parts[0].kind_case = parts[1].kind_case = PART__KIND_TEXT;
    parts[0].text = &ignored;
    parts[1].text = &shown;
    parts[2].kind_case = PART__KIND_THINKING;
    parts[2].thinking = &thinking;
    CHECK_STR(ui_parts(parts, 3), "[{\"type\":\"text\",\"text\":\"a \\\"b\\\"\"},"
                                  "{\"type\":\"reasoning\",\"text\":\"why\"}]");
}

TEST(ui_files_but_plain_text_and_directories)
{
    static const char *const TYPES[] = {"text/plain", "application/x-directory", "text/x-c",
                                        "image/png"};
    File files[4];
    Part parts[4];
    static uint8_t bytes[] = {1, 2, 3};
    for (size_t i = 0; i < 4; i++) {
        files[i] = (File)FILE__INIT;
        files[i].mime_type = CHARS(TYPES[i]);
        files[i].source_case = TINE__V1__FILE__SOURCE_URL;
        files[i].url = "file:///a";
        files[i].filename = "a";
        parts[i] = (Part)PART__INIT;
        parts[i].kind_case = PART__KIND_FILE;
        parts[i].file = &files[i];
    }
    files[3].source_case = TINE__V1__FILE__SOURCE_DATA;
    files[3].data = (ProtobufCBinaryData){sizeof(bytes), bytes};
    files[3].filename = "";
    CHECK_STR(ui_parts(parts, 4),
              "[{\"type\":\"file\",\"url\":\"file:///a\",\"mediaType\":\"text/x-c\","
              "\"filename\":\"a\"},"
              "{\"type\":\"file\",\"url\":\"data:image/png;base64,AQID\","
              "\"mediaType\":\"image/png\"}]");
}

TEST(ui_extensions_are_left_out_but_the_start_of_a_step)
{
    static const char *const TYPES[] = {"step-start", "step-finish", "patch",
                                        "snapshot",   "compaction",  "agent"};
    Extension extensions[6];
    Part parts[6];
    for (size_t i = 0; i < 6; i++) {
        extensions[i] = (Extension)EXTENSION__INIT;
        extensions[i].type = CHARS(TYPES[i]);
        parts[i] = (Part)PART__INIT;
        parts[i].kind_case = PART__KIND_EXTENSION;
        parts[i].extension = &extensions[i];
    }
    CHECK_STR(ui_parts(parts, 6), "[{\"type\":\"step-start\"}]");
}

TEST(ui_tool_that_is_completed_has_its_output)
{
    ToolUse use;
    ToolResult content;
    Part parts[] = {tool(&use, "read", TOOL_STATE_COMPLETED, "{\"p\":\n \"\xe2\x80\xae\"}"),
                    result(&content, "text", false)};
    CHECK_STR(ui_parts(parts, 2),
              "[{\"type\":\"tool-read\",\"toolCallId\":\"c1\",\"state\":\"output-available\","
              "\"input\":{\"p\":  \"\\u202e\"},\"output\":\"text\"}]");
    CHECK_STR(ui_parts(parts, 1),
              "[{\"type\":\"tool-read\",\"toolCallId\":\"c1\",\"state\":\"output-available\","
              "\"input\":{\"p\":  \"\\u202e\"},\"output\":null}]");
}

TEST(ui_tool_that_failed_has_its_error)
{
    ToolUse use;
    ToolResult content;
    Part parts[] = {tool(&use, "a\"b", TOOL_STATE_ERROR, NULL), result(&content, "gone", true)};
    CHECK_STR(ui_parts(parts, 2), "[{\"type\":\"tool-a\\\"b\",\"toolCallId\":\"c1\",\"state\":"
                                  "\"output-error\",\"input\":{},\"errorText\":\"gone\"}]");
}

TEST(ui_tool_without_an_end_has_its_input)
{
    ToolUse use;
    Part part = tool(&use, "ls", TOOL_STATE_RUNNING, "[\"\xf0\x9f\x98\x80\"]");
    CHECK_STR(ui_parts(&part, 1), "[{\"type\":\"tool-ls\",\"toolCallId\":\"c1\",\"state\":"
                                  "\"input-available\",\"input\":[\"\\ud83d\\ude00\"]}]");
    part = tool(&use, "ls", TOOL_STATE_PENDING, NULL);
    use.input_case = TINE__V1__TOOL_USE__INPUT_INPUT_TEXT;
    use.input_text = "{\"pa";
    CHECK_STR(ui_parts(&part, 1), "[{\"type\":\"tool-ls\",\"toolCallId\":\"c1\",\"state\":"
                                  "\"input-streaming\",\"input\":\"{\\\"pa\"}]");
}

TEST(ui_shows_turns_of_users_assistants_and_the_system)
{
    Message message = MESSAGE__INIT;
    message.kind = MESSAGE_KIND_CONVERSATION;
    for (int role = ROLE_USER; role <= ROLE_OTHER; role++) {
        message.role = (Role)role;
        bool is_shown = role == ROLE_USER || role == ROLE_ASSISTANT || role == ROLE_SYSTEM;
        CHECK_EQ(ui_message_is_shown(&message), is_shown);
    }
    message.role = ROLE_USER;
    message.kind = MESSAGE_KIND_LABEL;
    CHECK(!ui_message_is_shown(&message));
    message.kind = MESSAGE_KIND_CONVERSATION;
    message.deleted_at = 1;
    CHECK(!ui_message_is_shown(&message));
}

TEST(log_ui_prints_the_turns_of_a_history)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_tined_start(shell);
    shell_ok(shell, "tine new -s plan -m anthropic/claude");
    shell_ok(shell, "tine append plan question");
    shell_ok(shell, "tine append plan -r assistant --parts "
                    "'[{\"tool_use\":{\"id\":\"c1\",\"name\":\"ls\"}},"
                    "{\"tool_result\":{\"tool_use_id\":\"c1\",\"content\":\"a.c\"}}]'");
    shell_ok(shell, "echo '{\"kind\":\"name\",\"text\":\"n\"}' | tine append plan --message -");
    shell_ok(shell, "tine log plan --ui | jq -c '[.role,.parts[0].type,.parts[0].output]'");
    CHECK_STR(shell->output, "[\"user\",\"text\",null]\n[\"assistant\",\"tool-ls\",\"a.c\"]\n");
    shell_fails(shell, 2, "tine log plan --ui --oneline");
}
