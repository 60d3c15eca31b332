// Messages.

#include "message_print.h"

#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "text.h"

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
static const char YELLOW[] = "\033[33m", BOLD[] = "\033[1m", DIM[] = "\033[2m", NONE[] = "\033[0m";

static const char *colour(const Cli *cli, const char *code)
{
    return cli->has_colour ? code : "";
}

static TextUse use_of(const Cli *cli)
{
    return cli->is_terminal ? TEXT_TERMINAL : TEXT_PLAIN;
}

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

static void print_word(const Cli *cli, const char *text)
{
    char *safe = text_line(text, use_of(cli), 80);
    fputs(safe ? safe : "", stdout);
    free(safe);
}

static void print_text(const Cli *cli, const char *text, size_t lines_max)
{
    text_print_block(stdout, slice_of(text), use_of(cli), INDENT, lines_max);
}

// What a part is, in brackets, before its content.
static void print_note(const Cli *cli, const char *kind, const char *name, const char *more)
{
    printf("%s%s[%s", INDENT, colour(cli, DIM), kind);
    if (*name) putchar(' ');
    print_word(cli, name);
    if (*more) putchar(' ');
    print_word(cli, more);
    printf("]%s\n", colour(cli, NONE));
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

static void print_usage(const Message *message)
{
    const Usage *usage = message->usage;
    if (!usage) return;
    printf("  %s in, %s out", format_count(usage->input_tokens).text,
           format_count(usage->output_tokens).text);
    if (usage->cost_nano_usd) printf("  %s", format_money(usage->cost_nano_usd).text);
}

static void print_head(const Cli *cli, const Message *message, const MessageStyle *style)
{
    printf("%s%s%s %s", colour(cli, YELLOW), message->id, colour(cli, NONE), colour(cli, BOLD));
    print_word(cli, message_role_name(message));
    printf("%s  %s", colour(cli, NONE),
           style->has_ages ? format_age(message->created_at, cli_now_ms()).text
                           : format_time(message->created_at).text);
    if (style->has_ages) printf(" ago");
    if (message->model) {
        printf("  ");
        print_word(cli, message->model->name);
    }
    print_usage(message);
    static const char *const STATUS[] = {"", "", "open", "interrupted", "failed"};
    if ((unsigned)message->status < 5 && *STATUS[message->status]) {
        printf("  (%s)", STATUS[message->status]);
    }
    if (message->deleted_at) printf("  (deleted)");
    putchar('\n');
}

// The first words of an entry.
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
    size_t columns = cli->width > LINE_ID_COLUMNS ? (size_t)(cli->width - LINE_ID_COLUMNS) : 1;
    char *role = text_line(message_role_name(message), use_of(cli), 12);
    char *text = text_line(beginning(message), use_of(cli), cli->is_terminal ? columns : 0);
    if (cli->is_terminal) {
        printf("%s%s%s %-12s %s\n", colour(cli, YELLOW), message->id, colour(cli, NONE),
               role ? role : "", text ? text : "");
    } else {
        printf("%s\t%s\t%s\n", message->id, role ? role : "", text ? text : "");
    }
    free(role);
    free(text);
}

void message_print(const Cli *cli, const Message *message, const MessageStyle *style)
{
    if (style->one_line) {
        print_one_line(cli, message);
        return;
    }
    print_head(cli, message, style);
    size_t lines_max = style->is_full ? 0 : TEXT_LINES_MAX;
    if (message->marker) print_text(cli, message->marker->summary, lines_max);
    if (*message->subtype) print_note(cli, message->subtype, "", "");
    print_text(cli, message->text, lines_max);
    for (size_t i = 0; i < message->n_parts; i++) {
        print_part(cli, message->parts[i], style->is_full);
    }
    if (message->error) print_note(cli, "failed", message->error->code, message->error->message);
    putchar('\n');
}
