// Maps messages, role by role. Members that have no field of ours stay in `fields.rest`.

#include "importers/pi/pi_message.h"

#include <string.h>

#include "base/limits.h"
#include "importers/field.h"
#include "importers/members.h"
#include "importers/pi/pi_parts.h"
#include "text/json_walk.h"

enum {
    MESSAGE_ROLE,
    MESSAGE_CONTENT,
    MESSAGE_TIMESTAMP,
    MESSAGE_PROVIDER,
    MESSAGE_MODEL,
    MESSAGE_USAGE,
    MESSAGE_STOP_REASON,
    MESSAGE_ERROR,
    MESSAGE_TOOL_CALL_ID,
    MESSAGE_TOOL_NAME,
    MESSAGE_DETAILS,
    MESSAGE_IS_ERROR,
    MESSAGE_OUTPUT,
    MESSAGE_EXCLUDED,
    MESSAGE_CUSTOM_TYPE,
    MESSAGE_DISPLAY,
    MESSAGE_FIELD_COUNT,
};

static const char *const MESSAGE_FIELDS[MESSAGE_FIELD_COUNT] = {
    [MESSAGE_ROLE] = "role",
    [MESSAGE_CONTENT] = "content",
    [MESSAGE_TIMESTAMP] = "timestamp",
    [MESSAGE_PROVIDER] = "provider",
    [MESSAGE_MODEL] = "model",
    [MESSAGE_USAGE] = "usage",
    [MESSAGE_STOP_REASON] = "stopReason",
    [MESSAGE_ERROR] = "errorMessage",
    [MESSAGE_TOOL_CALL_ID] = "toolCallId",
    [MESSAGE_TOOL_NAME] = "toolName",
    [MESSAGE_DETAILS] = "details",
    [MESSAGE_IS_ERROR] = "isError",
    [MESSAGE_OUTPUT] = "output",
    [MESSAGE_EXCLUDED] = "excludeFromContext",
    [MESSAGE_CUSTOM_TYPE] = "customType",
    [MESSAGE_DISPLAY] = "display",
};

typedef struct Mapping {
    Arena *arena;
    NewMessage *out;
    Members fields;
    unsigned version; // of the file
} Mapping;

static Error out_of(const Mapping *mapping)
{
    return arena_error(mapping->arena);
}

Error pi_message_set_model(Arena *arena, char *provider, char *name, NewMessage *out)
{
    if (!provider || !name) return arena_error(arena);
    if (!*provider && !*name) return ERROR_NONE;
    ModelRef *model = arena_new(arena, ModelRef);
    if (!model) return arena_error(arena);
    tine__v1__model_ref__init(model);
    model->provider = provider;
    model->name = name;
    out->model = model;
    return ERROR_NONE;
}

Error pi_message_set_usage(Arena *arena, Slice json, NewMessage *out)
{
    enum { INPUT, OUTPUT, CACHE_READ, CACHE_WRITE, TOTAL, REASONING, COST, COUNT };
    static const char *const NAMES[] = {"input",       "output",    "cacheRead", "cacheWrite",
                                        "totalTokens", "reasoning", "cost"};
    static const char *const COST_NAMES[] = {"total"};
    Slice values[COUNT], cost;
    if (!json_is_object(json)) return ERROR_NONE;
    Error error = json_members(json, NAMES, COUNT, values, NULL);
    if (!error) error = json_members(values[COST], COST_NAMES, 1, &cost, NULL);
    if (error) return error;
    Usage *usage = arena_new(arena, Usage);
    if (!usage) return arena_error(arena);
    tine__v1__usage__init(usage);
    usage->input_tokens = json_integer(values[INPUT]);
    usage->output_tokens = json_integer(values[OUTPUT]);
    usage->cache_read_tokens = json_integer(values[CACHE_READ]);
    usage->cache_write_tokens = json_integer(values[CACHE_WRITE]);
    usage->total_tokens = json_integer(values[TOTAL]);
    usage->reasoning_tokens = json_integer(values[REASONING]);
    usage->cost_nano_usd = json_round(json_number(cost) * 1e9); // pi counts in USD
    out->usage = usage;
    return ERROR_NONE;
}

static Error take_usage(Mapping *mapping)
{
    Slice usage = mapping->fields.values[MESSAGE_USAGE];
    Error error = pi_message_set_usage(mapping->arena, usage, mapping->out);
    mapping->fields.is_used[MESSAGE_USAGE] = mapping->out->usage != NULL;
    return error;
}

static Error set_failure(Mapping *mapping)
{
    NewMessage *out = mapping->out;
    bool has_error = json_is_text(mapping->fields.values[MESSAGE_ERROR]);
    out->finish_reason = members_name(&mapping->fields, MESSAGE_STOP_REASON, mapping->arena);
    if (!out->finish_reason) return out_of(mapping);
    if (strcmp(out->finish_reason, "aborted") == 0) out->status = MESSAGE_STATUS_INTERRUPTED;
    if (strcmp(out->finish_reason, "error") == 0) out->status = MESSAGE_STATUS_FAILED;
    if (!has_error) return ERROR_NONE;
    out->error = arena_new(mapping->arena, ErrorInfo);
    if (!out->error) return out_of(mapping);
    tine__v1__error__init(out->error);
    char *text =
        members_text(&mapping->fields, MESSAGE_ERROR, ERROR_MESSAGE_BYTES_MAX, mapping->arena);
    if (!text) return out_of(mapping);
    out->error->message = text;
    return ERROR_NONE;
}

static Error map_assistant(Mapping *mapping)
{
    NewMessage *out = mapping->out;
    out->role = ROLE_ASSISTANT;
    Error error =
        pi_message_set_model(mapping->arena,
                             members_name(&mapping->fields, MESSAGE_PROVIDER, mapping->arena),
                             members_name(&mapping->fields, MESSAGE_MODEL, mapping->arena), out);
    if (!error) error = take_usage(mapping);
    if (!error) error = set_failure(mapping);
    return error ? error : pi_parts(mapping->arena, mapping->fields.values[MESSAGE_CONTENT], out);
}

static Error map_tool_result(Mapping *mapping)
{
    const Slice *message = mapping->fields.values;
    mapping->out->role = ROLE_TOOL;
    for (size_t i = MESSAGE_TOOL_CALL_ID; i <= MESSAGE_IS_ERROR; i++) {
        mapping->fields.is_used[i] = true;
    }
    PiToolResult result = {message[MESSAGE_TOOL_CALL_ID], message[MESSAGE_TOOL_NAME],
                           message[MESSAGE_CONTENT], message[MESSAGE_DETAILS],
                           message[MESSAGE_IS_ERROR]};
    Error error = take_usage(mapping);
    return error ? error : pi_tool_result(mapping->arena, &result, mapping->out);
}

// A command that a person ran: its output becomes a text, ignored if pi leaves it out of the
// context.
static Error map_bash(Mapping *mapping)
{
    Error error = pi_parts(mapping->arena, mapping->fields.values[MESSAGE_OUTPUT], mapping->out);
    if (error || mapping->out->n_parts == 0) return error;
    mapping->fields.is_used[MESSAGE_OUTPUT] = mapping->fields.is_used[MESSAGE_EXCLUDED] = true;
    if (mapping->out->parts[0]->kind_case == PART__KIND_TEXT) {
        mapping->out->parts[0]->text->ignored =
            json_is_true(mapping->fields.values[MESSAGE_EXCLUDED]);
    }
    return ERROR_NONE;
}

static Error map_other(Mapping *mapping, char *role)
{
    static char unknown[] = "unknown", custom[] = "custom";
    NewMessage *out = mapping->out;
    out->role = ROLE_OTHER;
    out->other_role = *role ? role : unknown;
    if (strcmp(role, "bashExecution") == 0) return map_bash(mapping);
    if (strcmp(role, "hookMessage") == 0 && mapping->version < 3) out->other_role = custom;
    if (strcmp(out->other_role, custom) == 0) {
        out->subtype = members_name(&mapping->fields, MESSAGE_CUSTOM_TYPE, mapping->arena);
        out->hidden = json_is_false(mapping->fields.values[MESSAGE_DISPLAY]);
        mapping->fields.is_used[MESSAGE_DISPLAY] = true;
    }
    return out->subtype ? pi_parts(mapping->arena, mapping->fields.values[MESSAGE_CONTENT], out)
                        : out_of(mapping);
}

static Error map_role(Mapping *mapping)
{
    NewMessage *out = mapping->out;
    char *role = members_name(&mapping->fields, MESSAGE_ROLE, mapping->arena);
    if (!role) return out_of(mapping);
    out->kind = MESSAGE_KIND_CONVERSATION;
    mapping->fields.is_used[MESSAGE_CONTENT] = true;

    // pi sorts by the message's own time. The entry's time is when it was written.
    int64_t time_ms = json_integer(mapping->fields.values[MESSAGE_TIMESTAMP]);
    if (time_ms > 0 && time_ms <= TIME_MS_MAX) {
        out->completed_at = out->created_at;
        out->created_at = time_ms;
        mapping->fields.is_used[MESSAGE_TIMESTAMP] = true;
    }
    if (strcmp(role, "user") == 0 || strcmp(role, "system") == 0) {
        out->role = *role == 'u' ? ROLE_USER : ROLE_SYSTEM;
        return pi_parts(mapping->arena, mapping->fields.values[MESSAGE_CONTENT], out);
    }
    if (strcmp(role, "assistant") == 0) return map_assistant(mapping);
    if (strcmp(role, "toolResult") == 0) return map_tool_result(mapping);
    return map_other(mapping, role);
}

Error pi_message_map(Arena *arena, Slice json, unsigned version, NewMessage *out, Buffer *rest)
{
    Mapping mapping = {.arena = arena, .out = out, .version = version};
    Error error = members_read(&mapping.fields, MESSAGE_FIELDS, MESSAGE_FIELD_COUNT, json);
    if (!error) error = map_role(&mapping);
    if (!error) error = members_keep_unused(&mapping.fields);
    if (!error) error = buffer_append(rest, buffer_slice(&mapping.fields.rest));
    members_free(&mapping.fields);
    return error;
}
