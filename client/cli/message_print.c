// Prints messages.

#include "message_print.h"

#include <stdlib.h>
#include <string.h>

#include "format.h"

enum {
    TEXT_LINES_MAX = 5000,
    RESULT_LINES_MAX = 20,
    THINKING_LINES_MAX = 10,
    LINE_ID_COLUMNS = 40,
};

const char *const MESSAGE_KIND_NAMES[] = {"conversation", "injected", "branch-summary",
                                          "compaction",   "setting",  "label",
                                          "name",         "custom",   NULL};
const char *const ROLE_NAMES[] = {"user", "assistant", "tool", "system", "other", NULL};

static const char INDENT[] = "    ";
const char *message_role_name(const Message *message)
{
    if (message->kind != MESSAGE_KIND_CONVERSATION && message->kind != MESSAGE_KIND_INJECTED) {
        int kind = (int)message->kind;
        return kind >= 1 && kind <= MESSAGE_KIND_CUSTOM ? MESSAGE_KIND_NAMES[kind - 1] : "?";
    }
    if (message->role == ROLE_OTHER && *message->other_role) return message->other_role;
    int role = (int)message->role;
    return role >= 1 && role <= ROLE_OTHER ? ROLE_NAMES[role - 1] : "?";
}

static void print_text(const Cli *cli, const char *text, size_t lines_max)
{
    print_block(&cli->out, slice_of(text), INDENT, lines_max);
}

// Prints the kind of a part, in brackets, before its content.
static void print_note(const Cli *cli, const char *kind, const char *name, const char *more)
{
    print(&cli->out, "%s" PRINT_DIM "[%.80s%s%.80s%s%.80s]" PRINT_NORMAL "\n", INDENT, kind,
          *name ? " " : "", name, *more ? " " : "", more);
}

static void print_tool_use(const Cli *cli, const ToolUse *use, bool is_full)
{
    print_note(cli, "tool", use->name, use->title);
    if (use->input_case == TINE__V1__TOOL_USE__INPUT_INPUT_JSON) {
        print_text(cli, use->input_json, is_full ? 0 : RESULT_LINES_MAX);
    } else if (use->input_case == TINE__V1__TOOL_USE__INPUT_INPUT_TEXT) {
        print_text(cli, use->input_text, is_full ? 0 : RESULT_LINES_MAX);
    }
}

static void print_part(const Cli *cli, const Part *part, bool is_full)
{
    switch (part->kind_case) {
    case TINE__V1__PART__KIND_TEXT:
        print_text(cli, part->text->text, is_full ? 0 : TEXT_LINES_MAX);
        break;
    case TINE__V1__PART__KIND_THINKING:
        print_note(cli, "thinking", part->thinking->redacted ? "redacted" : "", "");
        print_text(cli, part->thinking->text, is_full ? 0 : THINKING_LINES_MAX);
        break;
    case TINE__V1__PART__KIND_TOOL_USE: print_tool_use(cli, part->tool_use, is_full); break;
    case TINE__V1__PART__KIND_TOOL_RESULT:
        print_note(cli, part->tool_result->is_error ? "error of" : "result of",
                   part->tool_result->tool_name,
                   *part->tool_result->tool_name ? "" : part->tool_result->tool_use_id);
        print_text(cli, part->tool_result->content, is_full ? 0 : RESULT_LINES_MAX);
        break;
    case TINE__V1__PART__KIND_IMAGE:
        print_note(cli, "image", part->image->mime_type,
                   part->image->source_case == TINE__V1__IMAGE__SOURCE_URL
                       ? part->image->url
                       : format_bytes(part->image->data.len).text);
        break;
    case TINE__V1__PART__KIND_FILE:
        print_note(cli, "file", part->file->mime_type, part->file->filename);
        break;
    case TINE__V1__PART__KIND_EXTENSION:
        print_note(cli, part->extension->type, "", "");
        print_text(cli, part->extension->json, is_full ? 0 : RESULT_LINES_MAX);
        break;
    case TINE__V1__PART__KIND__NOT_SET: break;
    }
}

static void print_usage(const Cli *cli, const Message *message)
{
    const Usage *usage = message->usage;
    if (!usage) return;
    print(&cli->out, "  %s in, %s out", format_count(usage->input_tokens).text,
          format_count(usage->output_tokens).text);
    if (usage->cost_nano_usd) print(&cli->out, "  %s", format_money(usage->cost_nano_usd).text);
}

static void print_heading(const Cli *cli, const Message *message, const MessageStyle *style)
{
    Shown created = style->has_ages ? format_age(message->created_at, cli_now_ms())
                                    : format_time(message->created_at);
    print(&cli->out, PRINT_YELLOW "%s" PRINT_NORMAL " " PRINT_BOLD "%.80s" PRINT_NORMAL "  %s%s",
          message->id, message_role_name(message), created.text, style->has_ages ? " ago" : "");
    if (message->model) print(&cli->out, "  %.80s", message->model->name);
    print_usage(cli, message);
    static const char *const STATUS[] = {"", "", "open", "interrupted", "failed"};
    if ((unsigned)message->status < 5 && *STATUS[message->status]) {
        print(&cli->out, "  (%s)", STATUS[message->status]);
    }
    print(&cli->out, message->deleted_at ? "  (deleted)\n" : "\n");
}

// Returns the text that an entry begins with.
static const char *beginning(const Message *message)
{
    if (message->marker) return message->marker->summary;
    if (*message->text) return message->text;
    for (size_t i = 0; i < message->n_parts; i++) {
        const Part *part = message->parts[i];
        if (part->kind_case == TINE__V1__PART__KIND_TEXT) return part->text->text;
        if (part->kind_case == TINE__V1__PART__KIND_TOOL_USE) return part->tool_use->name;
        if (part->kind_case == TINE__V1__PART__KIND_TOOL_RESULT) return part->tool_result->content;
    }
    return "";
}

static void print_one_line(const Cli *cli, const Message *message)
{
    const char *role = message_role_name(message), *text = beginning(message);
    if (cli->is_terminal) {
        int columns = cli->width > LINE_ID_COLUMNS ? cli->width - LINE_ID_COLUMNS : 1;
        print(&cli->out, PRINT_YELLOW "%s" PRINT_NORMAL " %-12.12s %.*s\n", message->id, role,
              columns, text);
    } else {
        print(&cli->out, "%s\t%.12s\t%s\n", message->id, role, text);
    }
}

void message_print(const Cli *cli, const Message *message, const MessageStyle *style)
{
    if (style->one_line) {
        print_one_line(cli, message);
        return;
    }
    print_heading(cli, message, style);
    size_t lines_max = style->is_full ? 0 : TEXT_LINES_MAX;
    if (message->marker) print_text(cli, message->marker->summary, lines_max);
    if (*message->subtype) print_note(cli, message->subtype, "", "");
    print_text(cli, message->text, lines_max);
    for (size_t i = 0; i < message->n_parts; i++) {
        print_part(cli, message->parts[i], style->is_full);
    }
    if (message->error) print_note(cli, "failed", message->error->code, message->error->message);
    print(&cli->out, "\n");
}
