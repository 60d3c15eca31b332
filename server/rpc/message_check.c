// Lengths, UTF-8, JSON, times and enum values are checked by the field rules.

#include "rpc/message_check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "rpc/field_rules.h"

// The index of a part that is not in a message.
static const size_t INDEX_NONE = SIZE_MAX;

enum { PART_NAME_BYTES_MAX = 64 };

// "message.parts[3]", or "part".
static const char *part_name(const char *field, size_t index, char out[PART_NAME_BYTES_MAX])
{
    if (index == INDEX_NONE) return field;
    snprintf(out, PART_NAME_BYTES_MAX, "%s.parts[%zu]", field, index);
    return out;
}

static Error part_error(Rpc *rpc, const char *field, size_t index, const char *what)
{
    char name[PART_NAME_BYTES_MAX];
    return rpc_fail(rpc, ERROR_INVALID_PART, "%s.%s", part_name(field, index, name), what);
}

static Error check_image(Rpc *rpc, const char *field, size_t index, const char *name,
                         const Image *image)
{
    char what[96];
    bool has_source = (image->source_case == IMAGE__SOURCE_URL && *image->url) ||
                      (image->source_case == IMAGE__SOURCE_DATA && image->data.len > 0);
    if (*image->mime_type && has_source) return ERROR_NONE;
    snprintf(what, sizeof(what), "%s.%s is required", name,
             *image->mime_type ? "url or data" : "mime_type");
    return part_error(rpc, field, index, what);
}

static Error check_file(Rpc *rpc, const char *field, size_t index, const char *name,
                        const File *file)
{
    char what[96];
    bool has_source = (file->source_case == FILE__SOURCE_URL && *file->url) ||
                      (file->source_case == FILE__SOURCE_DATA && file->data.len > 0);
    if (*file->mime_type && has_source) return ERROR_NONE;
    snprintf(what, sizeof(what), "%s.%s is required", name,
             *file->mime_type ? "url or data" : "mime_type");
    return part_error(rpc, field, index, what);
}

static Error check_attachments(Rpc *rpc, const char *field, size_t index, const ToolResult *result)
{
    for (size_t i = 0; i < result->n_attachments; i++) {
        const Attachment *attachment = result->attachments[i];
        char name[64];
        snprintf(name, sizeof(name), "tool_result.attachments[%zu]", i);
        Error error = ERROR_NONE;
        switch (attachment->kind_case) {
        case ATTACHMENT__KIND_TEXT: break;
        case ATTACHMENT__KIND_IMAGE:
            error = check_image(rpc, field, index, name, attachment->image);
            break;
        case ATTACHMENT__KIND_FILE:
            error = check_file(rpc, field, index, name, attachment->file);
            break;
        case ATTACHMENT__KIND__NOT_SET:
        default:
            return part_error(rpc, field, index, "tool_result.attachments: a kind is required");
        }
        if (error) return error;
    }
    return ERROR_NONE;
}

static Error check_tool_use(Rpc *rpc, const char *field, size_t index, const ToolUse *use)
{
    if (!*use->id) return part_error(rpc, field, index, "tool_use.id is required");
    if (!*use->name) return part_error(rpc, field, index, "tool_use.name is required");
    if (use->input_case == TOOL_USE__INPUT_INPUT_JSON && !*use->input_json) {
        char name[PART_NAME_BYTES_MAX];
        return rpc_fail(rpc, ERROR_INVALID_JSON,
                        "%s.tool_use.input_json: empty; send {} for no arguments, or input_text "
                        "for what is not JSON",
                        part_name(field, index, name));
    }
    return ERROR_NONE;
}

static Error check_part(Rpc *rpc, const char *field, size_t index, const Part *part)
{
    switch (part->kind_case) {
    case PART__KIND_TEXT:
    case PART__KIND_THINKING: return ERROR_NONE;
    case PART__KIND_TOOL_USE: return check_tool_use(rpc, field, index, part->tool_use);
    case PART__KIND_TOOL_RESULT:
        if (!*part->tool_result->tool_use_id) {
            return part_error(rpc, field, index, "tool_result.tool_use_id is required");
        }
        return check_attachments(rpc, field, index, part->tool_result);
    case PART__KIND_IMAGE: return check_image(rpc, field, index, "image", part->image);
    case PART__KIND_FILE: return check_file(rpc, field, index, "file", part->file);
    case PART__KIND_EXTENSION:
        if (*part->extension->type) return ERROR_NONE;
        return part_error(rpc, field, index, "extension.type is required");
    case PART__KIND__NOT_SET:
    default: break;
    }
    if (field_rules_had_unknown(&part->base)) {
        char name[PART_NAME_BYTES_MAX];
        return rpc_fail(rpc, ERROR_UNKNOWN_PART_KIND,
                        "%s is of a kind that this server (version %s) does not know; send it as "
                        "an extension",
                        part_name(field, index, name), TINE_VERSION);
    }
    return part_error(rpc, field, index, "kind is required");
}

Error part_check(Rpc *rpc, const char *field, const Part *part)
{
    return check_part(rpc, field, INDEX_NONE, part);
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// If two parts had the same ID, replacing a part by its ID would be ambiguous.
static Error check_part_ids(Rpc *rpc, const char *field, const NewMessage *message)
{
    const char **ids = arena_array(&rpc->arena, const char *, message->n_parts + 1);
    if (!ids) return arena_error(&rpc->arena);
    size_t count = 0;
    for (size_t i = 0; i < message->n_parts; i++) {
        if (*message->parts[i]->id) ids[count++] = message->parts[i]->id;
    }
    qsort(ids, count, sizeof(*ids), compare_ids);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(ids[i - 1], ids[i]) == 0) {
            return rpc_fail(rpc, ERROR_INVALID_PART, "%s.parts: two parts have the id '%s'", field,
                            ids[i]);
        }
    }
    return ERROR_NONE;
}

Error marker_check(Rpc *rpc, const char *field, const Marker *marker, bool is_cut_required)
{
    if (marker->keep_all && *marker->before_message_id) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                        "%s: before_message_id and keep_all exclude each other", field);
    }
    if (is_cut_required && !marker->keep_all && !*marker->before_message_id) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                        "%s: before_message_id or keep_all is required", field);
    }
    char name[128];
    Ulid cut_off;
    snprintf(name, sizeof(name), "%s.before_message_id", field);
    return rpc_optional_id(rpc, name, marker->before_message_id, &cut_off);
}

static Error check_kind(Rpc *rpc, const char *field, const NewMessage *message)
{
    bool is_compaction = message->kind == MESSAGE_KIND_COMPACTION;
    if (is_compaction != (message->marker != NULL)) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "%s.marker %s", field,
                        is_compaction ? "is required for kind COMPACTION"
                                      : "is for kind COMPACTION alone");
    }
    if ((message->kind == MESSAGE_KIND_SETTING || message->kind == MESSAGE_KIND_CUSTOM) &&
        !*message->subtype) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                        "%s.subtype is required for kinds SETTING and CUSTOM", field);
    }
    if (message->kind == MESSAGE_KIND_LABEL && !*message->target_id) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "%s.target_id is required for kind LABEL",
                        field);
    }
    if (!is_compaction) return ERROR_NONE;
    char name[64];
    snprintf(name, sizeof(name), "%s.marker", field);
    return marker_check(rpc, name, message->marker, /* is_cut_required= */ false);
}

static Error check_role(Rpc *rpc, const char *field, NewMessage *message)
{
    bool is_required =
        message->kind == MESSAGE_KIND_CONVERSATION || message->kind == MESSAGE_KIND_INJECTED;
    if (message->role == ROLE_UNSPECIFIED) {
        if (is_required) {
            return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                            "%s.role is required: USER, ASSISTANT, TOOL, SYSTEM or OTHER", field);
        }
        message->role = ROLE_SYSTEM;
    }
    if ((message->role == ROLE_OTHER) != (*message->other_role != '\0')) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                        "%s.other_role is required with ROLE_OTHER, and only there", field);
    }
    return ERROR_NONE;
}

Error message_check(Rpc *rpc, const char *field, NewMessage *message)
{
    if (message->kind == MESSAGE_KIND_UNSPECIFIED) message->kind = MESSAGE_KIND_CONVERSATION;
    if (message->status == MESSAGE_STATUS_UNSPECIFIED) {
        message->status = MESSAGE_STATUS_COMPLETE;
    }
    Error error = check_role(rpc, field, message);
    if (!error) error = check_kind(rpc, field, message);
    if (!error) error = rpc_external(rpc, field, "external", message->external);
    if (error) return error;
    // Counted here too: protobuf merges a message that was sent in two halves, and the field rules
    // see each half by itself.
    if (message->n_parts > PART_COUNT_MAX) {
        return rpc_fail(rpc, ERROR_TOO_LONG, "%s.parts: more than %d", field, PART_COUNT_MAX);
    }
    for (size_t i = 0; i < message->n_parts; i++) {
        error = check_part(rpc, field, i, message->parts[i]);
        if (error) return error;
    }
    return check_part_ids(rpc, field, message);
}
