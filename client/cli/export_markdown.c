// Exports the current history of one session as Markdown, for people.

#include <string.h>

#include "export.h"
#include "format.h"
#include "message_print.h"

// A fence must be longer than any run of backticks inside it.
static void write_fenced(FILE *out, const char *language, const char *text)
{
    size_t longest = 2, run = 0, size = strlen(text);
    for (const char *at = text; *at; at++) {
        run = *at == '`' ? run + 1 : 0;
        if (run > longest) longest = run;
    }
    for (size_t i = 0; i <= longest; i++)
        putc('`', out);
    fprintf(out, "%s\n%s%s", language, text, size > 0 && text[size - 1] == '\n' ? "" : "\n");
    for (size_t i = 0; i <= longest; i++)
        putc('`', out);
    fputs("\n\n", out);
}

static void write_text(FILE *out, const char *text)
{
    if (*text) fprintf(out, "%s\n\n", text);
}

static void write_data(FILE *out, const char *what, const char *name, const char *url, size_t bytes)
{
    if (*url) {
        fprintf(out, "*%s %s: <%s>*\n\n", what, name, url);
    } else {
        fprintf(out, "*%s %s, %s*\n\n", what, name, format_bytes(bytes).text);
    }
}

static void write_image(FILE *out, const Image *image)
{
    bool has_url = image->source_case == TINE__V1__IMAGE__SOURCE_URL;
    write_data(out, "image", image->mime_type, has_url ? image->url : "",
               has_url ? 0 : image->data.len);
}

static void write_file(FILE *out, const File *file)
{
    bool has_url = file->source_case == TINE__V1__FILE__SOURCE_URL;
    write_data(out, "file", *file->filename ? file->filename : file->mime_type,
               has_url ? file->url : "", has_url ? 0 : file->data.len);
}

static void write_tool_use(FILE *out, const ToolUse *use)
{
    bool is_json = use->input_case == TINE__V1__TOOL_USE__INPUT_INPUT_JSON;
    bool is_text = use->input_case == TINE__V1__TOOL_USE__INPUT_INPUT_TEXT;
    fprintf(out, "**tool** `%s`\n\n", use->name);
    if (is_json) write_fenced(out, "json", use->input_json);
    if (is_text) write_fenced(out, "", use->input_text);
}

static void write_tool_result(FILE *out, const ToolResult *result)
{
    fprintf(out, "**%s** `%s`\n\n", result->is_error ? "error of" : "result of",
            *result->tool_name ? result->tool_name : result->tool_use_id);
    write_fenced(out, "", result->content);
    for (size_t i = 0; i < result->n_attachments; i++) {
        const Attachment *attachment = result->attachments[i];
        if (attachment->kind_case == TINE__V1__ATTACHMENT__KIND_TEXT) {
            write_text(out, attachment->text->text);
        } else if (attachment->kind_case == TINE__V1__ATTACHMENT__KIND_IMAGE) {
            write_image(out, attachment->image);
        } else if (attachment->kind_case == TINE__V1__ATTACHMENT__KIND_FILE) {
            write_file(out, attachment->file);
        }
    }
}

static void write_part(FILE *out, const Part *part)
{
    switch (part->kind_case) {
    case PART__KIND_TEXT: write_text(out, part->text->text); break;
    case PART__KIND_THINKING:
        if (!*part->thinking->text) break;
        fprintf(out, "<details><summary>thinking</summary>\n\n");
        write_text(out, part->thinking->text);
        fprintf(out, "</details>\n\n");
        break;
    case PART__KIND_TOOL_USE: write_tool_use(out, part->tool_use); break;
    case PART__KIND_TOOL_RESULT: write_tool_result(out, part->tool_result); break;
    case PART__KIND_IMAGE: write_image(out, part->image); break;
    case PART__KIND_FILE: write_file(out, part->file); break;
    case PART__KIND_EXTENSION:
        fprintf(out, "**%s**\n\n", part->extension->type);
        if (*part->extension->json) write_fenced(out, "json", part->extension->json);
        break;
    case PART__KIND__NOT_SET: break;
    }
}

static void write_message(FILE *out, const Message *message)
{
    if (message->kind == MESSAGE_KIND_COMPACTION) {
        fprintf(out, "---\n\n*compacted here; what came before, in short:*\n\n");
        if (message->marker) write_text(out, message->marker->summary);
        fprintf(out, "---\n\n");
        return;
    }
    fprintf(out, "## %s\n\n", message_role_name(message));
    fprintf(out, "*%s*\n\n", format_time(message->created_at).text);
    write_text(out, message->text);
    for (size_t i = 0; i < message->n_parts; i++)
        write_part(out, message->parts[i]);
    if (message->error) {
        fprintf(out, "*failed: %s %s*\n\n", message->error->code, message->error->message);
    }
}

static void write_heading(FILE *out, const Session *session)
{
    const char *title = *session->title ? session->title : session->slug;
    fprintf(out, "# %s\n\n", *title ? title : session->id);
    fprintf(out, "- session: `%s`\n- project: `%s`\n- model: `%s/%s`\n- begun: %s\n\n", session->id,
            session->project_dir, session->model ? session->model->provider : "",
            session->model ? session->model->name : "", format_time(session->created_at).text);
}

int export_session_markdown(Cli *cli, FILE *out, const char *id)
{
    static MessageKind SHOWN[] = {
        MESSAGE_KIND_CONVERSATION,
        MESSAGE_KIND_INJECTED,
        MESSAGE_KIND_BRANCH_SUMMARY,
        MESSAGE_KIND_COMPACTION,
    };
    GetSessionRequest session_request = GET_SESSION_REQUEST__INIT;
    MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
    CLEANUP(message_freep) GetSessionResponse *session = NULL;
    CLEANUP(message_freep) MessagesForSessionResponse *reply = NULL;
    session_request.session_id = request.session_id = (char *)(uintptr_t)id;
    request.kinds = SHOWN;
    request.n_kinds = sizeof(SHOWN) / sizeof(*SHOWN);
    if (tine_get_session(cli->tine, &cli->call, &session_request, &session)) {
        return cli_fail(cli, &cli->status);
    }
    write_heading(out, session->session);
    do {
        MessagesForSessionResponse *next = NULL;
        if (tine_messages_for_session(cli->tine, &cli->call, &request, &next)) {
            return cli_fail(cli, &cli->status);
        }
        message_freep(&reply);
        reply = next;
        for (size_t i = 0; i < reply->n_messages; i++)
            write_message(out, reply->messages[i]);
        request.cursor = reply->next_cursor;
    } while (*request.cursor && !ferror(out));
    return EXIT_OK;
}
