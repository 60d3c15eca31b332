// Writes UIMessages. A tool use and its result are two parts here and one part there.

#include "ui_message.h"

#include <string.h>

#include "text/json_write.h"

bool ui_message_is_shown(const Message *message)
{
    return message->kind == MESSAGE_KIND_CONVERSATION && message->deleted_at == 0 &&
           (message->role == ROLE_USER || message->role == ROLE_ASSISTANT ||
            message->role == ROLE_SYSTEM);
}

static void write_field(FILE *out, const char *name, const char *text)
{
    fprintf(out, ",\"%s\":", name);
    json_write_text(out, slice_of(text));
}

static const ToolResult *result_of(const Message *message, const char *tool_use_id)
{
    const ToolResult *result = NULL;
    for (size_t i = 0; i < message->n_parts; i++) {
        const Part *part = message->parts[i];
        if (part->kind_case != PART__KIND_TOOL_RESULT) continue;
        if (strcmp(part->tool_result->tool_use_id, tool_use_id) == 0) result = part->tool_result;
    }
    return result;
}

static const char *state_of(const ToolUse *use, const ToolResult *result)
{
    if (use->state == TOOL_STATE_COMPLETED) return "output-available";
    if (use->state == TOOL_STATE_ERROR) return "output-error";
    if (result) return result->is_error ? "output-error" : "output-available";
    return use->state == TOOL_STATE_PENDING ? "input-streaming" : "input-available";
}

static void write_tool(FILE *out, const Message *message, const ToolUse *use)
{
    const ToolResult *result = result_of(message, use->id);
    const char *state = state_of(use, result);
    fputs("{\"type\":\"tool-", out);
    json_write_text_piece(out, slice_of(use->name));
    putc('"', out);
    write_field(out, "toolCallId", use->id);
    write_field(out, "state", state);
    if (use->input_case == TINE__V1__TOOL_USE__INPUT_INPUT_TEXT) {
        write_field(out, "input", use->input_text);
    } else {
        fputs(",\"input\":", out);
        bool has_json = use->input_case == TINE__V1__TOOL_USE__INPUT_INPUT_JSON;
        json_write_value(out, slice_of(has_json ? use->input_json : "{}"));
    }
    if (strcmp(state, "output-error") == 0) {
        write_field(out, "errorText", result ? result->content : "");
    } else if (result) {
        write_field(out, "output", result->content);
    } else if (strcmp(state, "output-available") == 0) {
        fputs(",\"output\":null", out); // the state requires one; it is in another message
    }
    putc('}', out);
}

static void write_data_url(FILE *out, const char *mime_type, ProtobufCBinaryData data)
{
    fputs("\"data:", out);
    json_write_text_piece(out, slice_of(mime_type));
    fputs(";base64,", out);
    json_write_bytes_piece(out, slice(data.data, data.len));
    putc('"', out);
}

static void write_file(FILE *out, const char *mime_type, const char *url,
                       const ProtobufCBinaryData *data, const char *filename)
{
    fputs("{\"type\":\"file\",\"url\":", out);
    if (data) {
        write_data_url(out, mime_type, *data);
    } else {
        json_write_text(out, slice_of(url));
    }
    write_field(out, "mediaType", mime_type);
    if (*filename) write_field(out, "filename", filename);
    putc('}', out);
}

static void write_text(FILE *out, const char *type, const char *text)
{
    fprintf(out, "{\"type\":\"%s\"", type);
    write_field(out, "text", text);
    putc('}', out);
}

static bool file_is_shown(const File *file)
{
    return strcmp(file->mime_type, "text/plain") != 0 &&
           strcmp(file->mime_type, "application/x-directory") != 0;
}

static bool part_is_shown(const Part *part)
{
    switch (part->kind_case) {
    case PART__KIND_TEXT: return !part->text->ignored;
    case PART__KIND_THINKING:
    case PART__KIND_TOOL_USE:
    case PART__KIND_IMAGE: return true;
    case PART__KIND_FILE: return file_is_shown(part->file);
    case PART__KIND_EXTENSION: return strcmp(part->extension->type, "step-start") == 0;
    case PART__KIND_TOOL_RESULT: // written with its use
    case PART__KIND__NOT_SET:
    default: return false;
    }
}

static void write_part(FILE *out, const Message *message, const Part *part)
{
    switch (part->kind_case) {
    case PART__KIND_TEXT: write_text(out, "text", part->text->text); break;
    case PART__KIND_THINKING: write_text(out, "reasoning", part->thinking->text); break;
    case PART__KIND_TOOL_USE: write_tool(out, message, part->tool_use); break;
    case PART__KIND_IMAGE: {
        const Image *image = part->image;
        bool has_data = image->source_case == TINE__V1__IMAGE__SOURCE_DATA;
        write_file(out, image->mime_type, has_data ? "" : image->url,
                   has_data ? &image->data : NULL, "");
        break;
    }
    case PART__KIND_FILE: {
        const File *file = part->file;
        bool has_data = file->source_case == TINE__V1__FILE__SOURCE_DATA;
        write_file(out, file->mime_type, has_data ? "" : file->url, has_data ? &file->data : NULL,
                   file->filename);
        break;
    }
    case PART__KIND_EXTENSION: fputs("{\"type\":\"step-start\"}", out); break;
    case PART__KIND_TOOL_RESULT:
    case PART__KIND__NOT_SET:
    default: break;
    }
}

void ui_message_write(FILE *out, const Message *message)
{
    const char *role = message->role == ROLE_USER     ? "user"
                       : message->role == ROLE_SYSTEM ? "system"
                                                      : "assistant";
    fputs("{\"id\":", out);
    json_write_text(out, slice_of(message->id));
    write_field(out, "role", role);
    fputs(",\"parts\":[", out);
    bool is_first = true;
    for (size_t i = 0; i < message->n_parts; i++) {
        if (!part_is_shown(message->parts[i])) continue;
        if (!is_first) putc(',', out);
        is_first = false;
        write_part(out, message, message->parts[i]);
    }
    fputs("]}", out);
}
