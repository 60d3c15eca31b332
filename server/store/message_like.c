// Likeness: compares two messages field by field. The fields compared are those that a model is
// given.

#include "store/message_like.h"

#include <string.h>

static bool is_same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static bool is_same_data(ProtobufCBinaryData a, ProtobufCBinaryData b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static bool image_is_like(const Image *a, const Image *b)
{
    if (!is_same(a->mime_type, b->mime_type) || !is_same(a->detail, b->detail)) return false;
    if (a->source_case != b->source_case) return false;
    if (a->source_case == IMAGE__SOURCE_URL) return is_same(a->url, b->url);
    return a->source_case != IMAGE__SOURCE_DATA || is_same_data(a->data, b->data);
}

static bool file_is_like(const File *a, const File *b)
{
    if (!is_same(a->mime_type, b->mime_type) || !is_same(a->filename, b->filename)) return false;
    if (a->source_case != b->source_case) return false;
    if (a->source_case == FILE__SOURCE_URL) return is_same(a->url, b->url);
    return a->source_case != FILE__SOURCE_DATA || is_same_data(a->data, b->data);
}

static bool attachment_is_like(const Attachment *a, const Attachment *b)
{
    if (a->kind_case != b->kind_case) return false;
    switch (a->kind_case) {
    case ATTACHMENT__KIND_TEXT: return is_same(a->text->text, b->text->text);
    case ATTACHMENT__KIND_IMAGE: return image_is_like(a->image, b->image);
    case ATTACHMENT__KIND_FILE: return file_is_like(a->file, b->file);
    case ATTACHMENT__KIND__NOT_SET:
    default: return true;
    }
}

static bool tool_use_is_like(const ToolUse *a, const ToolUse *b)
{
    if (!is_same(a->id, b->id) || !is_same(a->name, b->name)) return false;
    if (a->input_case != b->input_case) return false;
    if (a->input_case == TOOL_USE__INPUT_INPUT_JSON) return is_same(a->input_json, b->input_json);
    return a->input_case != TOOL_USE__INPUT_INPUT_TEXT || is_same(a->input_text, b->input_text);
}

static bool tool_result_is_like(const ToolResult *a, const ToolResult *b)
{
    if (!is_same(a->tool_use_id, b->tool_use_id) || !is_same(a->content, b->content) ||
        a->is_error != b->is_error || a->n_attachments != b->n_attachments) {
        return false;
    }
    for (size_t i = 0; i < a->n_attachments; i++) {
        if (!attachment_is_like(a->attachments[i], b->attachments[i])) return false;
    }
    return true;
}

static bool part_is_like(const Part *a, const Part *b)
{
    if (a->kind_case != b->kind_case || !is_same_data(a->signature, b->signature)) return false;
    switch (a->kind_case) {
    case PART__KIND_TEXT: return is_same(a->text->text, b->text->text);
    case PART__KIND_THINKING:
        return is_same(a->thinking->text, b->thinking->text) &&
               a->thinking->redacted == b->thinking->redacted &&
               is_same_data(a->thinking->data, b->thinking->data);
    case PART__KIND_TOOL_USE: return tool_use_is_like(a->tool_use, b->tool_use);
    case PART__KIND_TOOL_RESULT: return tool_result_is_like(a->tool_result, b->tool_result);
    case PART__KIND_IMAGE: return image_is_like(a->image, b->image);
    case PART__KIND_FILE: return file_is_like(a->file, b->file);
    case PART__KIND_EXTENSION:
        return is_same(a->extension->type, b->extension->type) &&
               is_same(a->extension->json, b->extension->json);
    case PART__KIND__NOT_SET:
    default: return true;
    }
}

bool message_is_like(const NewMessage *sent, const Message *stored)
{
    if (sent->kind != stored->kind || sent->role != stored->role ||
        !is_same(sent->other_role, stored->other_role) || !is_same(sent->name, stored->name) ||
        sent->n_parts != stored->n_parts) {
        return false;
    }
    for (size_t i = 0; i < sent->n_parts; i++) {
        if (!part_is_like(sent->parts[i], stored->parts[i])) return false;
    }
    return true;
}

bool message_is_prompt(const NewMessage *sent, const char *prompt)
{
    if (sent->role != ROLE_SYSTEM || !*prompt) return false;
    for (size_t i = 0; i < sent->n_parts; i++) {
        const Part *part = sent->parts[i];
        if (part->kind_case != PART__KIND_TEXT) return false;
        size_t size = strlen(part->text->text);
        if (strncmp(prompt, part->text->text, size) != 0) return false;
        prompt += size;
    }
    return *prompt == '\0';
}
