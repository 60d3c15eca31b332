// Maps blocks of text, thinking, images and tool calls to parts. Any other block becomes an
// extension with its JSON.

#include "importers/pi/pi_parts.h"

#include <string.h>

#include "base/limits.h"
#include "importers/field.h"
#include "text/base64.h"
#include "text/json_walk.h"

enum {
    BLOCK_TYPE,
    BLOCK_TEXT,
    BLOCK_TEXT_SIGNATURE,
    BLOCK_THINKING,
    BLOCK_THINKING_SIGNATURE,
    BLOCK_REDACTED,
    BLOCK_DATA,
    BLOCK_MIME_TYPE,
    BLOCK_ID,
    BLOCK_NAME,
    BLOCK_ARGUMENTS,
    BLOCK_THOUGHT_SIGNATURE,
    BLOCK_FIELD_COUNT,
};

static const char *const BLOCK_FIELDS[BLOCK_FIELD_COUNT] = {
    [BLOCK_TYPE] = "type",
    [BLOCK_TEXT] = "text",
    [BLOCK_TEXT_SIGNATURE] = "textSignature",
    [BLOCK_THINKING] = "thinking",
    [BLOCK_THINKING_SIGNATURE] = "thinkingSignature",
    [BLOCK_REDACTED] = "redacted",
    [BLOCK_DATA] = "data",
    [BLOCK_MIME_TYPE] = "mimeType",
    [BLOCK_ID] = "id",
    [BLOCK_NAME] = "name",
    [BLOCK_ARGUMENTS] = "arguments",
    [BLOCK_THOUGHT_SIGNATURE] = "thoughtSignature",
};

static Part *new_part(Arena *arena, Part__KindCase kind, void *value)
{
    Part *part = arena_new(arena, Part);
    if (!part || !value) return NULL;
    tine__v1__part__init(part);
    part->kind_case = kind;
    part->text = value; // all members of the oneof are pointers
    return part;
}

static Part *text_part(Arena *arena, Slice value)
{
    Text *text = arena_new(arena, Text);
    if (!text) return NULL;
    tine__v1__text__init(text);
    text->text = json_text(arena, value);
    return text->text ? new_part(arena, PART__KIND_TEXT, text) : NULL;
}

static Part *thinking_part(Arena *arena, const Slice *fields)
{
    Thinking *thinking = arena_new(arena, Thinking);
    if (!thinking) return NULL;
    tine__v1__thinking__init(thinking);
    thinking->text = json_text(arena, fields[BLOCK_THINKING]);
    thinking->redacted = json_is_true(fields[BLOCK_REDACTED]);
    return thinking->text ? new_part(arena, PART__KIND_THINKING, thinking) : NULL;
}

static Part *tool_use_part(Arena *arena, const Slice *fields)
{
    ToolUse *use = arena_new(arena, ToolUse);
    if (!use) return NULL;
    tine__v1__tool_use__init(use);
    use->id = field_name(arena, json_text(arena, fields[BLOCK_ID]));
    use->name = field_name(arena, json_text(arena, fields[BLOCK_NAME]));
    if (fields[BLOCK_ARGUMENTS].size > 0) {
        char *json = field_json(arena, fields[BLOCK_ARGUMENTS]);
        if (!json) return NULL;
        use->input_case = *json ? TOOL_USE__INPUT_INPUT_JSON : TOOL_USE__INPUT_INPUT_TEXT;
        use->input_json = *json ? json : field_text(arena, fields[BLOCK_ARGUMENTS]);
        if (!use->input_json) return NULL;
    }
    return use->id && use->name ? new_part(arena, PART__KIND_TOOL_USE, use) : NULL;
}

// Only canonical base64: anything else could not be exported as it was.
static bool decode_base64(Arena *arena, Slice text, ProtobufCBinaryData *out)
{
    out->data = arena_alloc(arena, base64_decoded_bytes_max(text.size));
    if (!out->data) return false;
    out->len = base64_decode(text, BASE64_CANONICAL, out->data);
    return out->len > 0 && out->len != SIZE_MAX;
}

static Image *new_image(Arena *arena, const Slice *fields)
{
    Image *image = arena_new(arena, Image);
    Slice data = fields[BLOCK_DATA];
    if (!image || !json_is_text(data)) return NULL;
    tine__v1__image__init(image);
    image->mime_type = field_name(arena, json_text(arena, fields[BLOCK_MIME_TYPE]));
    image->source_case = IMAGE__SOURCE_DATA;
    bool is_whole = image->mime_type && *image->mime_type &&
                    decode_base64(arena, slice(data.bytes + 1, data.size - 2), &image->data);
    return is_whole ? image : NULL;
}

static Part *extension_part(Arena *arena, Slice block, char *type)
{
    static char unknown[] = "unknown";
    Extension *extension = arena_new(arena, Extension);
    if (!extension) return NULL;
    tine__v1__extension__init(extension);
    extension->type = type && *type ? field_name(arena, type) : unknown;
    extension->json = field_json(arena, block);
    return extension->type && extension->json ? new_part(arena, PART__KIND_EXTENSION, extension)
                                              : NULL;
}

// Returns members that have no field of ours as an object; "" if there are none or they are too
// long.
static char *rest_json(Arena *arena, const Buffer *rest, size_t bytes_max)
{
    static char empty[] = "";
    size_t size = buffer_size(rest);
    if (size == 0 || size + 2 > bytes_max) return empty;
    char *text = arena_alloc(arena, size + 3);
    if (!text) return NULL;
    text[0] = '{';
    memcpy(text + 1, buffer_slice(rest).bytes, size);
    text[size + 1] = '}';
    text[size + 2] = '\0';
    return field_json(arena, slice(text, size + 2));
}

static bool set_signature(Arena *arena, Slice value, Part *part)
{
    if (!json_is_text(value)) return true;
    char *text = json_text(arena, value);
    if (!text) return false;
    part->signature.data = (uint8_t *)text;
    part->signature.len = strlen(text);
    return true;
}

static Part *make_part(Arena *arena, Slice block, char *type, const Slice *fields)
{
    Part *part = NULL;
    Slice signature = {NULL, 0};
    if (strcmp(type, "text") == 0 && json_is_text(fields[BLOCK_TEXT])) {
        part = text_part(arena, fields[BLOCK_TEXT]);
        signature = fields[BLOCK_TEXT_SIGNATURE];
    } else if (strcmp(type, "thinking") == 0 && json_is_text(fields[BLOCK_THINKING])) {
        part = thinking_part(arena, fields);
        signature = fields[BLOCK_THINKING_SIGNATURE];
    } else if (strcmp(type, "toolCall") == 0 && fields[BLOCK_ID].size > 2 &&
               json_is_text(fields[BLOCK_ID]) && fields[BLOCK_NAME].size > 2 &&
               json_is_text(fields[BLOCK_NAME])) {
        part = tool_use_part(arena, fields);
        signature = fields[BLOCK_THOUGHT_SIGNATURE];
    } else if (strcmp(type, "image") == 0) {
        Image *image = new_image(arena, fields);
        if (image) part = new_part(arena, PART__KIND_IMAGE, image);
        if (!image) part = extension_part(arena, block, type);
    } else {
        part = extension_part(arena, block, type);
    }
    return part && set_signature(arena, signature, part) ? part : NULL;
}

static Error block_part(Arena *arena, Slice block, Part **out)
{
    Slice fields[BLOCK_FIELD_COUNT];
    CLEANUP(buffer_free) Buffer rest = {0};
    Error error = json_members(block, BLOCK_FIELDS, BLOCK_FIELD_COUNT, fields, &rest);
    if (error) return error;
    char *type = json_text(arena, fields[BLOCK_TYPE]);
    *out = type ? make_part(arena, block, type, fields) : NULL;
    if (!*out) return arena_error(arena);
    if ((*out)->kind_case == PART__KIND_EXTENSION) return ERROR_NONE;
    (*out)->metadata_json = rest_json(arena, &rest, METADATA_JSON_BYTES_MAX);
    return (*out)->metadata_json ? ERROR_NONE : arena_error(arena);
}

static size_t block_count(Slice content)
{
    size_t count = 0;
    Slice key, block;
    for (JsonWalk walk = json_walk(content); json_walk_next(&walk, &key, &block);)
        count++;
    return count;
}

// Fills the last part with all blocks that are left, if there are too many for one message.
static Error put_rest(Arena *arena, Slice content, size_t at, Part **out)
{
    static char type[] = "content";
    Slice all = slice(content.bytes + at, content.size - at);
    char *text = arena_alloc(arena, all.size + 2);
    if (!text) return arena_error(arena);
    text[0] = '[';
    memcpy(text + 1, all.bytes, all.size);
    *out = extension_part(arena, slice(text, all.size + 1), type);
    return *out ? ERROR_NONE : arena_error(arena);
}

Error pi_parts(Arena *arena, Slice content, NewMessage *out)
{
    if (!json_is_text(content) && !json_is_list(content)) return ERROR_NONE;
    size_t count = json_is_list(content) ? block_count(content) : 1;
    size_t room = count < PART_COUNT_MAX ? count : PART_COUNT_MAX;
    out->parts = arena_array(arena, Part *, room + 1);
    if (!out->parts) return arena_error(arena);
    if (json_is_text(content)) {
        out->parts[0] = text_part(arena, content);
        if (!out->parts[0]) return arena_error(arena);
        out->n_parts = 1;
        return ERROR_NONE;
    }
    JsonWalk walk = json_walk(content);
    Slice key, block;
    Error error = ERROR_NONE;
    for (size_t at = walk.at; !error && out->n_parts < room; at = walk.at) {
        if (!json_walk_next(&walk, &key, &block)) break;
        bool is_over = out->n_parts + 1 == PART_COUNT_MAX && count > PART_COUNT_MAX;
        error = is_over ? put_rest(arena, content, at, &out->parts[out->n_parts])
                        : block_part(arena, block, &out->parts[out->n_parts]);
        if (!error) out->n_parts++;
    }
    return error;
}

static Attachment *new_attachment(Arena *arena, Slice block)
{
    Slice fields[BLOCK_FIELD_COUNT];
    Attachment *attachment = arena_new(arena, Attachment);
    if (!attachment) return NULL;
    if (json_members(block, BLOCK_FIELDS, BLOCK_FIELD_COUNT, fields, NULL)) return NULL;
    tine__v1__attachment__init(attachment);
    const char *type = json_text(arena, fields[BLOCK_TYPE]);
    if (type && strcmp(type, "image") == 0) {
        attachment->kind_case = ATTACHMENT__KIND_IMAGE;
        attachment->image = new_image(arena, fields);
        if (attachment->image) return attachment;
    }
    Text *text = arena_new(arena, Text);
    if (!text) return NULL;
    tine__v1__text__init(text);
    bool is_text = type && strcmp(type, "text") == 0 && json_is_text(fields[BLOCK_TEXT]);
    text->text = is_text ? json_text(arena, fields[BLOCK_TEXT]) : field_json(arena, block);
    text->synthetic = !is_text;
    attachment->kind_case = ATTACHMENT__KIND_TEXT;
    attachment->text = text;
    return text->text ? attachment : NULL;
}

// A single text block becomes the content; otherwise each block becomes an attachment.
static Error result_content(Arena *arena, Slice content, ToolResult *result)
{
    size_t count = block_count(content);
    if (count > ATTACHMENT_COUNT_MAX) count = ATTACHMENT_COUNT_MAX;
    result->content = json_text(arena, content);
    result->attachments = arena_array(arena, Attachment *, count + 1);
    if (!result->content || !result->attachments) return arena_error(arena);
    JsonWalk walk = json_walk(content);
    Slice key, block;
    while (result->n_attachments < count && json_walk_next(&walk, &key, &block)) {
        Attachment *attachment = new_attachment(arena, block);
        if (!attachment) return arena_error(arena);
        result->attachments[result->n_attachments++] = attachment;
    }
    bool is_single = count == 1 && result->attachments[0]->kind_case == ATTACHMENT__KIND_TEXT &&
                     !result->attachments[0]->text->synthetic;
    if (!is_single) return ERROR_NONE;
    result->content = result->attachments[0]->text->text;
    result->n_attachments = 0;
    return ERROR_NONE;
}

Error pi_tool_result(Arena *arena, const PiToolResult *source, NewMessage *out)
{
    if (!json_is_text(source->tool_call_id) || source->tool_call_id.size <= 2) {
        return pi_parts(arena, source->content, out);
    }
    ToolResult *result = arena_new(arena, ToolResult);
    out->parts = arena_array(arena, Part *, 1);
    if (!result || !out->parts) return arena_error(arena);
    tine__v1__tool_result__init(result);
    result->tool_use_id = field_name(arena, json_text(arena, source->tool_call_id));
    result->tool_name = field_name(arena, json_text(arena, source->tool_name));
    result->is_error = json_is_true(source->is_error);
    if (source->details.size > 0) result->data_json = field_json(arena, source->details);
    if (!result->tool_use_id || !result->tool_name || !result->data_json) {
        return arena_error(arena);
    }
    Error error = result_content(arena, source->content, result);
    if (error) return error;
    out->parts[0] = new_part(arena, PART__KIND_TOOL_RESULT, result);
    out->n_parts = 1;
    return out->parts[0] ? ERROR_NONE : arena_error(arena);
}
