// UIMessages. A tool's use and its result are two parts here and one there.

#include "ui_message.h"

#include <stdlib.h>
#include <string.h>

#include "json.h"

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

// Takes one code point off the front of text that was checked to be UTF-8.
static uint32_t take_code_point(const char **text)
{
    const uint8_t *at = (const uint8_t *)*text;
    size_t more = at[0] >= 0xF0 ? 3 : at[0] >= 0xE0 ? 2 : at[0] >= 0xC0 ? 1 : 0;
    uint32_t point = more == 0 ? at[0] : at[0] & (0x3Fu >> more);
    size_t size = 1;
    for (; size <= more && (at[size] & 0xC0) == 0x80; size++) {
        point = point << 6 | (at[size] & 0x3Fu);
    }
    *text += size;
    return point;
}

// White space between values would break the line; what is not ASCII is inside strings, where an
// escape means the same.
static void write_json(FILE *out, const char *json)
{
    while (*json) {
        uint32_t point = take_code_point(&json);
        if (point == '\n' || point == '\r' || point == '\t') point = ' ';
        if (point < 0x7F) {
            putc((int)point, out);
        } else if (point < 0x10000) {
            fprintf(out, "\\u%04x", (unsigned)point);
        } else {
            point -= 0x10000;
            fprintf(out, "\\u%04x\\u%04x", (unsigned)(0xD800 + (point >> 10)),
                    (unsigned)(0xDC00 + (point & 0x3FF)));
        }
    }
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
    // The name follows inside the same string: its opening quote is left away.
    char *name = NULL;
    size_t size = 0;
    FILE *quoted = open_memstream(&name, &size);
    if (quoted) {
        json_write_text(quoted, slice_of(use->name));
        if (fclose(quoted) == 0) fputs(name + 1, out);
    }
    free(name);
    write_field(out, "toolCallId", use->id);
    write_field(out, "state", state);
    if (use->input_case == TINE__V1__TOOL_USE__INPUT_INPUT_TEXT) {
        write_field(out, "input", use->input_text);
    } else {
        fputs(",\"input\":", out);
        bool has_json = use->input_case == TINE__V1__TOOL_USE__INPUT_INPUT_JSON;
        write_json(out, has_json ? use->input_json : "{}");
    }
    if (strcmp(state, "output-error") == 0) {
        write_field(out, "errorText", result ? result->content : "");
    } else if (result) {
        write_field(out, "output", result->content);
    } else if (strcmp(state, "output-available") == 0) {
        fputs(",\"output\":null", out); // the state promises one; it is in another message
    }
    putc('}', out);
}

static void write_data_url(FILE *out, const char *mime_type, ProtobufCBinaryData data)
{
    char *type = NULL, *content = NULL;
    size_t type_size = 0, content_size = 0;
    FILE *quoted_type = open_memstream(&type, &type_size);
    FILE *quoted = open_memstream(&content, &content_size);
    if (quoted_type) json_write_text(quoted_type, slice_of(mime_type));
    if (quoted) json_write_bytes(quoted, slice(data.data, data.len));
    bool is_whole = quoted_type && fclose(quoted_type) == 0;
    is_whole = quoted && fclose(quoted) == 0 && is_whole;
    // Both are one string: without the quotes between them.
    if (is_whole) {
        fprintf(out, "\"data:%.*s;base64,%s", (int)type_size - 2, type + 1, content + 1);
    } else {
        fputs("\"\"", out);
    }
    free(type);
    free(content);
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
    case PART__KIND_TOOL_RESULT: // said with its use
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
