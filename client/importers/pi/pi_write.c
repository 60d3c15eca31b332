// Writing lines. Members that the import kept in data_json are written at the end of the object
// that they came from.

#include "importers/pi/pi_write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "importers/iso_time.h"
#include "importers/pi/pi_entry.h"
#include "importers/pi/pi_own_order.h"
#include "text/json_walk.h"
#include "text/json_write.h"

typedef struct Line {
    FILE *out;
    const Message *message;
    const PiNames *names;
    Slice data;         // the members that were kept: an object, or empty …
    Slice message_rest; // … and those of its message
    Buffer rest;        // … and those of the entry, without braces
} Line;

void pi_write_text(FILE *out, const char *text)
{
    json_write_text_as_js(out, slice_of(text));
}

static void put_member(FILE *out, const char *name, const char *text)
{
    fprintf(out, ",\"%s\":", name);
    pi_write_text(out, text);
}

static void put_json(FILE *out, const char *name, const char *json)
{
    if (*json) fprintf(out, ",\"%s\":%s", name, json);
}

// Writes members with a comma before them.
static void put_rest(FILE *out, Slice members)
{
    if (members.size == 0) return;
    putc(',', out);
    fwrite(members.bytes, 1, members.size, out);
}

// Writes a text, unless it was too long for its field: then the members that were kept have all of
// it.
static void put_text_member(FILE *out, const char *name, const char *text, Slice kept)
{
    Slice whole;
    if (json_members(kept, &name, 1, &whole, NULL) == ERROR_NONE && whole.size > 0) return;
    put_member(out, name, text);
}

static Slice members_of(Slice object)
{
    return object.size > 2 ? slice(object.bytes + 1, object.size - 2) : (Slice){NULL, 0};
}

static void put_base(const Line *line)
{
    char time[ISO_TIME_BYTES];
    const Message *message = line->message;
    bool is_turn = message->kind == MESSAGE_KIND_CONVERSATION;
    int64_t time_ms =
        is_turn && message->completed_at ? message->completed_at : message->created_at;
    iso_time_write(time_ms, time);
    put_member(line->out, "id", line->names->id);
    if (*line->names->parent_id) {
        put_member(line->out, "parentId", line->names->parent_id);
    } else {
        fputs(",\"parentId\":null", line->out);
    }
    put_member(line->out, "timestamp", time);
}

static void put_image(FILE *out, const Image *image)
{
    fputs("{\"type\":\"image\",\"data\":", out);
    if (image->source_case == IMAGE__SOURCE_DATA) {
        json_write_bytes(out, slice(image->data.data, image->data.len));
    } else {
        pi_write_text(out, image->url);
    }
    put_member(out, "mimeType", image->mime_type);
    putc('}', out);
}

static void put_text_block(FILE *out, const char *text)
{
    fputs("{\"type\":\"text\",\"text\":", out);
    pi_write_text(out, text);
}

static void put_signature(FILE *out, const char *name, const Part *part)
{
    char text[4096 + 1];
    if (part->signature.len == 0) return;
    if (part->signature.len < sizeof(text)) {
        memcpy(text, part->signature.data, part->signature.len);
        text[part->signature.len] = '\0';
        put_member(out, name, text);
        return;
    }
    char *longer = strndup((const char *)part->signature.data, part->signature.len);
    put_member(out, name, longer ? longer : "");
    free(longer);
}

static void put_tool_use(FILE *out, const ToolUse *use)
{
    fputs("{\"type\":\"toolCall\"", out);
    put_member(out, "id", use->id);
    put_member(out, "name", use->name);
    if (use->input_case == TOOL_USE__INPUT_INPUT_TEXT) {
        put_member(out, "arguments", use->input_text);
    } else {
        put_json(out, "arguments", use->input_case ? use->input_json : "{}");
    }
}

// Writes a part as a block. A part that pi has no block for becomes a block of another type, which
// pi ignores.
static void put_block(FILE *out, const Part *part)
{
    switch (part->kind_case) {
    case PART__KIND_TEXT:
        put_text_block(out, part->text->text);
        put_signature(out, "textSignature", part);
        break;
    case PART__KIND_THINKING:
        fputs("{\"type\":\"thinking\"", out);
        put_member(out, "thinking", part->thinking->text);
        put_signature(out, "thinkingSignature", part);
        if (part->thinking->redacted) fputs(",\"redacted\":true", out);
        break;
    case PART__KIND_TOOL_USE:
        put_tool_use(out, part->tool_use);
        put_signature(out, "thoughtSignature", part);
        break;
    case PART__KIND_IMAGE: put_image(out, part->image); return;
    case PART__KIND_EXTENSION:
        if (*part->extension->json) {
            fputs(part->extension->json, out);
            return;
        }
        fputs("{\"type\":", out);
        pi_write_text(out, part->extension->type);
        break;
    case PART__KIND_TOOL_RESULT: put_text_block(out, part->tool_result->content); break;
    case PART__KIND_FILE: put_text_block(out, part->file->filename); break;
    case PART__KIND__NOT_SET:
    default: fputs("{\"type\":\"unknown\"", out); break;
    }
    put_rest(out, members_of(slice_of(part->metadata_json)));
    putc('}', out);
}

static void put_content(FILE *out, const Message *message)
{
    fputs(",\"content\":[", out);
    for (size_t i = 0; i < message->n_parts; i++) {
        if (i > 0) putc(',', out);
        put_block(out, message->parts[i]);
    }
    putc(']', out);
}

static void put_result(FILE *out, const ToolResult *result)
{
    put_member(out, "toolCallId", result->tool_use_id);
    put_member(out, "toolName", result->tool_name);
    fputs(",\"content\":[", out);
    if (*result->content) {
        put_text_block(out, result->content);
        putc('}', out);
    }
    for (size_t i = 0; i < result->n_attachments; i++) {
        const Attachment *attachment = result->attachments[i];
        if (i > 0 || *result->content) putc(',', out);
        if (attachment->kind_case == ATTACHMENT__KIND_IMAGE) {
            put_image(out, attachment->image);
            continue;
        }
        bool is_text = attachment->kind_case == ATTACHMENT__KIND_TEXT;
        put_text_block(out, is_text ? attachment->text->text : attachment->file->filename);
        putc('}', out);
    }
    putc(']', out);
    put_json(out, "details", result->data_json);
    fprintf(out, ",\"isError\":%s", result->is_error ? "true" : "false");
}

static void put_usage(FILE *out, const Usage *usage)
{
    static const Usage NONE;
    if (!usage) usage = &NONE;
    fprintf(out,
            ",\"usage\":{\"input\":%" PRId64 ",\"output\":%" PRId64 ",\"cacheRead\":%" PRId64
            ",\"cacheWrite\":%" PRId64 ",\"totalTokens\":%" PRId64 ",\"cost\":{\"input\":0,"
            "\"output\":0,\"cacheRead\":0,\"cacheWrite\":0,\"total\":%.15g}}",
            usage->input_tokens, usage->output_tokens, usage->cache_read_tokens,
            usage->cache_write_tokens, usage->total_tokens, (double)usage->cost_nano_usd / 1e9);
}

static const char *stop_reason(const Message *message)
{
    if (*message->finish_reason) return message->finish_reason;
    if (message->status == MESSAGE_STATUS_INTERRUPTED) return "aborted";
    return message->status == MESSAGE_STATUS_FAILED ? "error" : "stop";
}

static void put_assistant(FILE *out, const Message *message)
{
    put_content(out, message);
    put_member(out, "provider", message->model ? message->model->provider : "unknown");
    put_member(out, "model", message->model ? message->model->name : "unknown");
    put_usage(out, message->usage);
    put_member(out, "stopReason", stop_reason(message));
}

static const ToolResult *result_of(const Message *message)
{
    bool is_result = message->role == ROLE_TOOL && message->n_parts > 0 &&
                     message->parts[0]->kind_case == PART__KIND_TOOL_RESULT;
    return is_result ? message->parts[0]->tool_result : NULL;
}

static const char *role_of(const Message *message)
{
    switch (message->role) {
    case ROLE_USER: return "user";
    case ROLE_ASSISTANT: return "assistant";
    case ROLE_TOOL: return "toolResult";
    case ROLE_OTHER: return message->other_role;
    case ROLE_SYSTEM: return "system";
    case ROLE_UNSPECIFIED:
    default: return "unknown";
    }
}

static void put_message(const Line *line)
{
    FILE *out = line->out;
    const Message *message = line->message;
    const ToolResult *result = result_of(message);
    fputs("{\"type\":\"message\"", out);
    put_base(line);
    fputs(",\"message\":{\"role\":", out);
    pi_write_text(out, role_of(message));
    if (*message->subtype) put_member(out, "customType", message->subtype);
    if (result) {
        put_result(out, result);
        if (message->usage) put_usage(out, message->usage);
    } else if (message->role == ROLE_ASSISTANT) {
        put_assistant(out, message);
    } else if (strcmp(role_of(message), "bashExecution") == 0 && message->n_parts > 0 &&
               message->parts[0]->kind_case == PART__KIND_TEXT) {
        put_member(out, "output", message->parts[0]->text->text);
        if (message->parts[0]->text->ignored) fputs(",\"excludeFromContext\":true", out);
    } else {
        put_content(out, message);
    }
    if (*message->subtype || message->hidden) {
        fprintf(out, ",\"display\":%s", message->hidden ? "false" : "true");
    }
    fprintf(out, ",\"timestamp\":%" PRId64, message->created_at);
    if (message->error) {
        put_text_member(out, "errorMessage", message->error->message, line->message_rest);
    }
    put_rest(out, members_of(line->message_rest));
    putc('}', out);
}

// Writes who made a compaction or a branch summary, and what it cost.
static void put_making(const Line *line)
{
    const Message *message = line->message;
    if (message->producer != PRODUCER_UNSPECIFIED) {
        fprintf(line->out, ",\"fromHook\":%s",
                message->producer == PRODUCER_EXTENSION ? "true" : "false");
    }
    if (message->usage) put_usage(line->out, message->usage);
}

static void put_compaction(const Line *line)
{
    const Marker *marker = line->message->marker;
    fputs("{\"type\":\"compaction\"", line->out);
    put_base(line);
    put_text_member(line->out, "summary", marker->summary, line->data);
    put_member(line->out, "firstKeptEntryId", line->names->first_kept_id);
    fprintf(line->out, ",\"tokensBefore\":%" PRId64, marker->tokens_before);
    put_json(line->out, "details", marker->details_json);
    put_making(line);
}

static void put_branch_summary(const Line *line)
{
    fputs("{\"type\":\"branch_summary\"", line->out);
    put_base(line);
    put_member(line->out, "fromId", *line->names->target_id ? line->names->target_id : "root");
    put_text_member(line->out, "summary", line->message->text, line->data);
    put_making(line);
}

static void put_setting(const Line *line)
{
    const Message *message = line->message;
    if (message->model) {
        fputs("{\"type\":\"model_change\"", line->out);
        put_base(line);
        put_member(line->out, "provider", message->model->provider);
        put_member(line->out, "modelId", message->model->name);
    } else if (strcmp(message->subtype, PI_SETTING_THINKING) == 0) {
        fputs("{\"type\":\"thinking_level_change\"", line->out);
        put_base(line);
        put_text_member(line->out, "thinkingLevel", message->text, line->data);
    } else {
        fputs("{\"type\":\"custom\",\"customType\":", line->out);
        pi_write_text(line->out, message->subtype);
        put_member(line->out, "data", message->text);
        put_base(line);
    }
}

static void put_injected(const Line *line)
{
    fputs("{\"type\":\"custom_message\",\"customType\":", line->out);
    pi_write_text(line->out, *line->message->subtype ? line->message->subtype : "tine");
    put_content(line->out, line->message);
    fprintf(line->out, ",\"display\":%s", line->message->hidden ? "false" : "true");
    put_base(line);
}

static void put_note(const Line *line, const char *type)
{
    fputs("{\"type\":\"custom\",\"customType\":", line->out);
    pi_write_text(line->out, type);
    put_base(line);
    bool has_usage = line->message->usage && !line->message->deleted_at;
    if (has_usage) put_usage(line->out, line->message->usage);
}

static void put_label(const Line *line)
{
    fputs("{\"type\":\"label\"", line->out);
    put_base(line);
    put_member(line->out, "targetId", line->names->target_id);
    if (*line->message->text) put_text_member(line->out, "label", line->message->text, line->data);
}

static void put_by_kind(const Line *line)
{
    switch (line->message->kind) {
    case MESSAGE_KIND_CONVERSATION: put_message(line); return;
    case MESSAGE_KIND_INJECTED: put_injected(line); return;
    case MESSAGE_KIND_BRANCH_SUMMARY: put_branch_summary(line); return;
    case MESSAGE_KIND_COMPACTION: put_compaction(line); return;
    case MESSAGE_KIND_SETTING: put_setting(line); return;
    case MESSAGE_KIND_LABEL: put_label(line); return;
    case MESSAGE_KIND_NAME:
        fputs("{\"type\":\"session_info\"", line->out);
        put_base(line);
        put_text_member(line->out, "name", line->message->text, line->data);
        return;
    case MESSAGE_KIND_CUSTOM:
    case MESSAGE_KIND_UNSPECIFIED:
    default: put_note(line, line->message->subtype); return;
    }
}

Error pi_write_entry(FILE *out, const Message *message, const PiNames *names)
{
    enum { MESSAGE, POSITION, COUNT };
    static const char *const NAMES[] = {"message", PI_POSITION_NAME};
    Slice values[COUNT];
    Line line = {.out = out, .message = message, .names = names};
    line.data = slice_of(message->deleted_at ? "" : message->data_json);
    Error error = json_members(line.data, NAMES, COUNT, values, &line.rest);
    line.message_rest = values[MESSAGE];
    if (!error) {
        if (message->deleted_at) {
            put_note(&line, "tine.deleted");
        } else {
            put_by_kind(&line);
        }
        put_rest(out, buffer_slice(&line.rest));
        fputs("}\n", out);
    }
    buffer_free(&line.rest);
    return error;
}

static void put_parent(FILE *out, const char *parent_id)
{
    if (*parent_id) {
        pi_write_text(out, parent_id);
    } else {
        fputs("null", out);
    }
}

static void put_slice(FILE *out, Slice text)
{
    fwrite(text.bytes, 1, text.size, out);
}

// Writes a message of version 1 or 2, in which messages of hooks have another role.
static void put_message_again(FILE *out, Slice message)
{
    Slice key, value;
    const char *comma = "";
    putc('{', out);
    for (JsonWalk walk = json_walk(message); json_walk_next(&walk, &key, &value); comma = ",") {
        bool is_hook = json_key_is(key, "role") && json_key_is(value, "hookMessage");
        fputs(comma, out);
        put_slice(out, key);
        putc(':', out);
        put_slice(out, is_hook ? slice_of("\"custom\"") : value);
    }
    putc('}', out);
}

void pi_write_again(FILE *out, Slice line, const PiNames *names, unsigned version)
{
    Slice key, value;
    bool has_id = false, has_parent = false;
    const char *comma = "";
    putc('{', out);
    for (JsonWalk walk = json_walk(line); json_walk_next(&walk, &key, &value);) {
        if (version < 2 && json_key_is(key, "firstKeptEntryIndex")) continue;
        fputs(comma, out);
        comma = ",";
        put_slice(out, key);
        putc(':', out);
        if (json_key_is(key, "id")) {
            has_id = true;
            pi_write_text(out, names->id);
        } else if (json_key_is(key, "parentId")) {
            has_parent = true;
            put_parent(out, names->parent_id);
        } else if (version < 3 && json_key_is(key, "message") && json_is_object(value)) {
            put_message_again(out, value);
        } else {
            put_slice(out, value);
        }
    }
    if (!has_id) {
        fprintf(out, "%s\"id\":", comma);
        pi_write_text(out, names->id);
    }
    if (!has_parent) {
        fputs(",\"parentId\":", out);
        put_parent(out, names->parent_id);
    }
    if (version < 2 && *names->first_kept_id) {
        put_member(out, "firstKeptEntryId", names->first_kept_id);
    }
    putc('}', out);
}
