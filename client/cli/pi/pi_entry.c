// Entries. What an entry says that has a field of ours goes there; what is left of it is kept as it
// stands in data_json: {…members of the entry, "message": {…members of its message}}.

#include "pi/pi_entry.h"

#include <stdio.h>

#include "base/hash.h"
#include "base/limits.h"
#include "pi/pi_json.h"
#include "text/utf8.h"

enum {
    ENTRY_TYPE,
    ENTRY_ID,
    ENTRY_PARENT_ID,
    ENTRY_TIMESTAMP,
    ENTRY_MESSAGE,
    ENTRY_THINKING_LEVEL,
    ENTRY_PROVIDER,
    ENTRY_MODEL_ID,
    ENTRY_SUMMARY,
    ENTRY_FIRST_KEPT_ID,
    ENTRY_FIRST_KEPT_INDEX,
    ENTRY_TOKENS_BEFORE,
    ENTRY_DETAILS,
    ENTRY_FROM_HOOK,
    ENTRY_FROM_ID,
    ENTRY_CUSTOM_TYPE,
    ENTRY_CONTENT,
    ENTRY_DISPLAY,
    ENTRY_TARGET_ID,
    ENTRY_LABEL,
    ENTRY_NAME,
    ENTRY_FIELD_COUNT,
};

static const char *const ENTRY_FIELDS[ENTRY_FIELD_COUNT] = {
    [ENTRY_TYPE] = "type",
    [ENTRY_ID] = "id",
    [ENTRY_PARENT_ID] = "parentId",
    [ENTRY_TIMESTAMP] = "timestamp",
    [ENTRY_MESSAGE] = "message",
    [ENTRY_THINKING_LEVEL] = "thinkingLevel",
    [ENTRY_PROVIDER] = "provider",
    [ENTRY_MODEL_ID] = "modelId",
    [ENTRY_SUMMARY] = "summary",
    [ENTRY_FIRST_KEPT_ID] = "firstKeptEntryId",
    [ENTRY_FIRST_KEPT_INDEX] = "firstKeptEntryIndex",
    [ENTRY_TOKENS_BEFORE] = "tokensBefore",
    [ENTRY_DETAILS] = "details",
    [ENTRY_FROM_HOOK] = "fromHook",
    [ENTRY_FROM_ID] = "fromId",
    [ENTRY_CUSTOM_TYPE] = "customType",
    [ENTRY_CONTENT] = "content",
    [ENTRY_DISPLAY] = "display",
    [ENTRY_TARGET_ID] = "targetId",
    [ENTRY_LABEL] = "label",
    [ENTRY_NAME] = "name",
};

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

// One entry on its way.
typedef struct Mapping {
    Arena *arena;
    NewMessage *out;
    PiReferences *references;
    Slice fields[ENTRY_FIELD_COUNT];
    bool is_used[ENTRY_FIELD_COUNT]; // has a field of ours
    Slice message[MESSAGE_FIELD_COUNT];
    bool is_message_used[MESSAGE_FIELD_COUNT];
    Buffer rest, message_rest;
    unsigned version;
} Mapping;

static char EMPTY[] = "";

char *pi_name(Arena *arena, char *text)
{
    enum { HASH_TEXT_BYTES = 2 * HASH_BYTES + 1 };
    if (!text || strlen(text) <= STRING_BYTES_MAX) return text;
    Hash hash = hash_bytes(slice_of(text));
    Slice kept = utf8_cut(slice_of(text), STRING_BYTES_MAX - HASH_TEXT_BYTES);
    char *out = arena_alloc(arena, STRING_BYTES_MAX + 1);
    if (!out) return NULL;
    memcpy(out, text, kept.size);
    out[kept.size] = '~';
    for (size_t i = 0; i < HASH_BYTES; i++) {
        snprintf(out + kept.size + 1 + 2 * i, 3, "%02x", hash.bytes[i]);
    }
    return out;
}

// The text of a field that is one; then the field is used. What is longer than our texts is cut.
static char *take_text(Mapping *mapping, size_t field)
{
    if (!pi_is_text(mapping->fields[field])) return EMPTY;
    mapping->is_used[field] = true;
    char *text = pi_text(mapping->arena, mapping->fields[field]);
    if (!text) return NULL;
    size_t size = utf8_cut(slice_of(text), SUMMARY_BYTES_MAX).size;
    if (text[size]) text[size] = '\0';
    return text;
}

static char *take_name(Mapping *mapping, size_t field)
{
    return pi_name(mapping->arena, take_text(mapping, field));
}

static char *take_message_text(Mapping *mapping, size_t field)
{
    if (!pi_is_text(mapping->message[field])) return EMPTY;
    mapping->is_message_used[field] = true;
    return pi_text(mapping->arena, mapping->message[field]);
}

static char *take_message_name(Mapping *mapping, size_t field)
{
    return pi_name(mapping->arena, take_message_text(mapping, field));
}

static Error out_of(const Mapping *mapping)
{
    return arena_error(mapping->arena);
}

static Error set_model(Mapping *mapping, char *provider, char *name)
{
    if (!provider || !name) return out_of(mapping);
    if (!*provider && !*name) return ERROR_NONE;
    ModelRef *model = arena_new(mapping->arena, ModelRef);
    if (!model) return out_of(mapping);
    tine__v1__model_ref__init(model);
    model->provider = provider;
    model->name = name;
    mapping->out->model = model;
    return ERROR_NONE;
}

static Error set_usage(Mapping *mapping)
{
    enum { INPUT, OUTPUT, CACHE_READ, CACHE_WRITE, TOTAL, REASONING, COST, COUNT };
    static const char *const NAMES[] = {"input",       "output",    "cacheRead", "cacheWrite",
                                        "totalTokens", "reasoning", "cost"};
    static const char *const COST_NAMES[] = {"total"};
    Slice values[COUNT], cost;
    if (!pi_is_object(mapping->message[MESSAGE_USAGE])) return ERROR_NONE;
    Error error = pi_members(mapping->message[MESSAGE_USAGE], NAMES, COUNT, values, NULL);
    if (!error) error = pi_members(values[COST], COST_NAMES, 1, &cost, NULL);
    if (error) return error;
    Usage *usage = arena_new(mapping->arena, Usage);
    if (!usage) return out_of(mapping);
    tine__v1__usage__init(usage);
    usage->input_tokens = pi_integer(values[INPUT]);
    usage->output_tokens = pi_integer(values[OUTPUT]);
    usage->cache_read_tokens = pi_integer(values[CACHE_READ]);
    usage->cache_write_tokens = pi_integer(values[CACHE_WRITE]);
    usage->total_tokens = pi_integer(values[TOTAL]);
    usage->reasoning_tokens = pi_integer(values[REASONING]);
    usage->cost_nano_usd = pi_round(pi_number(cost) * 1e9); // pi counts in USD
    mapping->out->usage = usage;
    mapping->is_message_used[MESSAGE_USAGE] = true;
    return ERROR_NONE;
}

static Error set_failure(Mapping *mapping)
{
    NewMessage *out = mapping->out;
    bool has_error = pi_is_text(mapping->message[MESSAGE_ERROR]);
    out->finish_reason = take_message_name(mapping, MESSAGE_STOP_REASON);
    if (!out->finish_reason) return out_of(mapping);
    if (strcmp(out->finish_reason, "aborted") == 0) out->status = MESSAGE_STATUS_INTERRUPTED;
    if (strcmp(out->finish_reason, "error") == 0) out->status = MESSAGE_STATUS_FAILED;
    if (!has_error) return ERROR_NONE;
    out->error = arena_new(mapping->arena, ErrorInfo);
    if (!out->error) return out_of(mapping);
    tine__v1__error__init(out->error);
    char *text = take_message_text(mapping, MESSAGE_ERROR);
    if (!text) return out_of(mapping);
    text = arena_string(mapping->arena, utf8_cut(slice_of(text), ERROR_MESSAGE_BYTES_MAX));
    if (!text) return out_of(mapping);
    out->error->message = text;
    return ERROR_NONE;
}

static Error map_assistant(Mapping *mapping)
{
    NewMessage *out = mapping->out;
    out->role = ROLE_ASSISTANT;
    Error error = set_model(mapping, take_message_name(mapping, MESSAGE_PROVIDER),
                            take_message_name(mapping, MESSAGE_MODEL));
    if (!error) error = set_usage(mapping);
    if (!error) error = set_failure(mapping);
    return error ? error : pi_parts(mapping->arena, mapping->message[MESSAGE_CONTENT], out);
}

static Error map_tool_result(Mapping *mapping)
{
    const Slice *message = mapping->message;
    mapping->out->role = ROLE_TOOL;
    for (size_t i = MESSAGE_TOOL_CALL_ID; i <= MESSAGE_IS_ERROR; i++) {
        mapping->is_message_used[i] = true;
    }
    PiToolResult result = {message[MESSAGE_TOOL_CALL_ID], message[MESSAGE_TOOL_NAME],
                           message[MESSAGE_CONTENT], message[MESSAGE_DETAILS],
                           message[MESSAGE_IS_ERROR]};
    return pi_tool_result(mapping->arena, &result, mapping->out);
}

// What a person ran: its output is a text, kept from the model if pi keeps it from there.
static Error map_bash(Mapping *mapping)
{
    Error error = pi_parts(mapping->arena, mapping->message[MESSAGE_OUTPUT], mapping->out);
    if (error || mapping->out->n_parts == 0) return error;
    mapping->is_message_used[MESSAGE_OUTPUT] = mapping->is_message_used[MESSAGE_EXCLUDED] = true;
    if (mapping->out->parts[0]->kind_case == PART__KIND_TEXT) {
        mapping->out->parts[0]->text->ignored = pi_is_true(mapping->message[MESSAGE_EXCLUDED]);
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
        out->subtype = take_message_name(mapping, MESSAGE_CUSTOM_TYPE);
        out->hidden = pi_is_false(mapping->message[MESSAGE_DISPLAY]);
        mapping->is_message_used[MESSAGE_DISPLAY] = true;
    }
    return out->subtype ? pi_parts(mapping->arena, mapping->message[MESSAGE_CONTENT], out)
                        : out_of(mapping);
}

// What no field took, of one object.
static Error keep_unused(const char *const *names, const Slice *values, const bool *is_used,
                         size_t count, Buffer *rest)
{
    Error error = ERROR_NONE;
    for (size_t i = 0; i < count && !error; i++) {
        if (is_used[i] || values[i].size == 0) continue;
        if (buffer_size(rest) > 0) error = buffer_append(rest, slice_of(","));
        if (!error) error = buffer_append(rest, slice_of("\""));
        if (!error) error = buffer_append(rest, slice_of(names[i]));
        if (!error) error = buffer_append(rest, slice_of("\":"));
        if (!error) error = buffer_append(rest, values[i]);
    }
    return error;
}

static Error map_message(Mapping *mapping)
{
    Error error = pi_members(mapping->fields[ENTRY_MESSAGE], MESSAGE_FIELDS, MESSAGE_FIELD_COUNT,
                             mapping->message, &mapping->message_rest);
    if (error) return error;
    NewMessage *out = mapping->out;
    char *role = take_message_name(mapping, MESSAGE_ROLE);
    if (!role) return out_of(mapping);
    out->kind = MESSAGE_KIND_CONVERSATION;
    mapping->is_used[ENTRY_MESSAGE] = true;
    mapping->is_message_used[MESSAGE_CONTENT] = true;

    // The message's own clock is what pi sorts by; the entry's is when it was written.
    int64_t time_ms = pi_integer(mapping->message[MESSAGE_TIMESTAMP]);
    if (time_ms > 0 && time_ms <= TIME_MS_MAX) {
        out->completed_at = out->created_at;
        out->created_at = time_ms;
        mapping->is_message_used[MESSAGE_TIMESTAMP] = true;
    }
    if (strcmp(role, "user") == 0 || strcmp(role, "system") == 0) {
        out->role = *role == 'u' ? ROLE_USER : ROLE_SYSTEM;
        error = pi_parts(mapping->arena, mapping->message[MESSAGE_CONTENT], out);
    } else if (strcmp(role, "assistant") == 0) {
        error = map_assistant(mapping);
    } else if (strcmp(role, "toolResult") == 0) {
        error = map_tool_result(mapping);
    } else {
        error = map_other(mapping, role);
    }
    if (error) return error;
    return keep_unused(MESSAGE_FIELDS, mapping->message, mapping->is_message_used,
                       MESSAGE_FIELD_COUNT, &mapping->message_rest);
}

// An entry that pi ignores for the context; in the tree it is one like the others.
static Error map_custom(Mapping *mapping, char *subtype)
{
    static char unknown[] = "unknown";
    if (!subtype) return out_of(mapping);
    mapping->out->kind = MESSAGE_KIND_CUSTOM;
    mapping->out->subtype = *subtype ? subtype : unknown;
    mapping->references->target_id = take_name(mapping, ENTRY_TARGET_ID);
    return mapping->references->target_id ? ERROR_NONE : out_of(mapping);
}

static Error map_thinking_level(Mapping *mapping)
{
    static char subtype[] = PI_SETTING_THINKING;
    mapping->out->kind = MESSAGE_KIND_SETTING;
    mapping->out->subtype = subtype;
    mapping->out->text = take_text(mapping, ENTRY_THINKING_LEVEL);
    return mapping->out->text ? ERROR_NONE : out_of(mapping);
}

static Error map_model(Mapping *mapping)
{
    static char subtype[] = "model";
    mapping->out->kind = MESSAGE_KIND_SETTING;
    mapping->out->subtype = subtype;
    return set_model(mapping, take_name(mapping, ENTRY_PROVIDER),
                     take_name(mapping, ENTRY_MODEL_ID));
}

static void take_producer(Mapping *mapping)
{
    Slice from_hook = mapping->fields[ENTRY_FROM_HOOK];
    if (pi_is_true(from_hook)) mapping->out->producer = PRODUCER_EXTENSION;
    if (pi_is_false(from_hook)) mapping->out->producer = PRODUCER_AGENT;
    mapping->is_used[ENTRY_FROM_HOOK] = mapping->out->producer != PRODUCER_UNSPECIFIED;
}

static char *take_json(Mapping *mapping, size_t field, size_t bytes_max)
{
    if (mapping->fields[field].size == 0 || mapping->fields[field].size > bytes_max) return EMPTY;
    char *json = pi_raw(mapping->arena, mapping->fields[field]);
    mapping->is_used[field] = json && *json;
    return json;
}

static Error map_compaction(Mapping *mapping)
{
    Marker *marker = arena_new(mapping->arena, Marker);
    if (!marker) return out_of(mapping);
    tine__v1__marker__init(marker);
    PiReferences *references = mapping->references;
    Slice first_kept = mapping->fields[ENTRY_FIRST_KEPT_ID];
    Slice place = mapping->fields[ENTRY_FIRST_KEPT_INDEX];
    mapping->out->kind = MESSAGE_KIND_COMPACTION;
    mapping->out->marker = marker;
    references->first_kept_id = take_text(mapping, ENTRY_FIRST_KEPT_ID);
    references->has_first_kept = pi_is_text(first_kept);
    if (place.size > 0) references->first_kept_place = pi_integer(place);
    marker->first_kept_external = pi_name(mapping->arena, references->first_kept_id);
    marker->summary = take_text(mapping, ENTRY_SUMMARY);
    marker->tokens_before = pi_integer(mapping->fields[ENTRY_TOKENS_BEFORE]);
    mapping->is_used[ENTRY_TOKENS_BEFORE] = true;
    marker->details_json = take_json(mapping, ENTRY_DETAILS, DETAILS_JSON_BYTES_MAX);
    take_producer(mapping);
    bool is_whole = marker->first_kept_external && marker->summary && marker->details_json;
    return is_whole ? ERROR_NONE : out_of(mapping);
}

// pi shows one with an empty summary to nobody; it is a note like other notes.
static Error map_branch_summary(Mapping *mapping, char *type)
{
    char *summary = take_text(mapping, ENTRY_SUMMARY);
    if (!summary) return out_of(mapping);
    Error error = *summary ? ERROR_NONE : map_custom(mapping, type);
    if (error) return error;
    if (*summary) mapping->out->kind = MESSAGE_KIND_BRANCH_SUMMARY;
    mapping->out->text = summary;
    mapping->references->target_id = take_name(mapping, ENTRY_FROM_ID);
    take_producer(mapping);
    return mapping->references->target_id ? ERROR_NONE : out_of(mapping);
}

static Error map_custom_message(Mapping *mapping)
{
    static char custom[] = "custom";
    NewMessage *out = mapping->out;
    out->kind = MESSAGE_KIND_INJECTED;
    out->role = ROLE_OTHER;
    out->other_role = custom;
    out->subtype = take_name(mapping, ENTRY_CUSTOM_TYPE);
    out->hidden = pi_is_false(mapping->fields[ENTRY_DISPLAY]);
    mapping->is_used[ENTRY_DISPLAY] = mapping->is_used[ENTRY_CONTENT] = true;
    if (!out->subtype) return out_of(mapping);
    return pi_parts(mapping->arena, mapping->fields[ENTRY_CONTENT], out);
}

static Error map_label(Mapping *mapping, char *type)
{
    char *target = take_name(mapping, ENTRY_TARGET_ID);
    if (!target) return out_of(mapping);
    if (!*target) return map_custom(mapping, type);
    mapping->out->kind = MESSAGE_KIND_LABEL;
    mapping->references->target_id = target;
    mapping->out->text = take_text(mapping, ENTRY_LABEL);
    return mapping->out->text ? ERROR_NONE : out_of(mapping);
}

static Error map_name(Mapping *mapping)
{
    mapping->out->kind = MESSAGE_KIND_NAME;
    mapping->out->text = take_text(mapping, ENTRY_NAME);
    return mapping->out->text ? ERROR_NONE : out_of(mapping);
}

static Error map_by_type(Mapping *mapping, char *type)
{
    if (strcmp(type, "message") == 0 && pi_is_object(mapping->fields[ENTRY_MESSAGE])) {
        return map_message(mapping);
    }
    if (strcmp(type, "thinking_level_change") == 0) return map_thinking_level(mapping);
    if (strcmp(type, "model_change") == 0) return map_model(mapping);
    if (strcmp(type, "compaction") == 0) return map_compaction(mapping);
    if (strcmp(type, "branch_summary") == 0) return map_branch_summary(mapping, type);
    if (strcmp(type, "custom") == 0) {
        return map_custom(mapping, take_name(mapping, ENTRY_CUSTOM_TYPE));
    }
    if (strcmp(type, "custom_message") == 0) return map_custom_message(mapping);
    if (strcmp(type, "label") == 0) return map_label(mapping, type);
    if (strcmp(type, "session_info") == 0) return map_name(mapping);
    return map_custom(mapping, type);
}

static Error put_data(Mapping *mapping)
{
    Error error = keep_unused(ENTRY_FIELDS, mapping->fields, mapping->is_used, ENTRY_FIELD_COUNT,
                              &mapping->rest);
    Buffer *rest = &mapping->rest;
    if (!error && buffer_size(&mapping->message_rest) > 0) {
        if (buffer_size(rest) > 0) error = buffer_append(rest, slice_of(","));
        if (!error) error = buffer_append(rest, slice_of("\"message\":{"));
        if (!error) error = buffer_append(rest, buffer_slice(&mapping->message_rest));
        if (!error) error = buffer_append(rest, slice_of("}"));
    }
    if (error || buffer_size(rest) == 0) return error;
    error = buffer_append(rest, slice_of("}"));
    if (error) return error;
    char *json = arena_alloc(mapping->arena, buffer_size(rest) + 1);
    if (!json) return out_of(mapping);
    json[0] = '{';
    memcpy(json + 1, buffer_slice(rest).bytes, buffer_size(rest));
    mapping->out->data_json = pi_raw(mapping->arena, slice(json, buffer_size(rest) + 1));
    return mapping->out->data_json ? ERROR_NONE : out_of(mapping);
}

static Error map(Mapping *mapping, const PiEntrySource *source)
{
    NewMessage *out = mapping->out;
    char *type = take_name(mapping, ENTRY_TYPE);
    External *external = arena_new(mapping->arena, External);
    if (!type || !external) return out_of(mapping);
    static char external_source[] = PI_SOURCE;
    tine__v1__external__init(external);
    external->source = external_source;
    external->id = source->external_id;
    out->external = external;
    mapping->is_used[ENTRY_ID] = mapping->is_used[ENTRY_PARENT_ID] = true;
    out->created_at = pi_time_ms(mapping->fields[ENTRY_TIMESTAMP]);
    mapping->is_used[ENTRY_TIMESTAMP] = out->created_at != 0;
    if (out->created_at == 0) out->created_at = source->time_ms;
    Error error = map_by_type(mapping, type);
    return error ? error : put_data(mapping);
}

Error pi_entry_map(Arena *arena, const PiEntrySource *source, NewMessage **out,
                   PiReferences *out_references)
{
    PiReferences references = {.target_id = EMPTY, .first_kept_id = EMPTY, .first_kept_place = -1};
    Mapping mapping = {.arena = arena, .references = &references, .version = source->version};
    mapping.out = arena_new(arena, NewMessage);
    if (!mapping.out) return arena_error(arena);
    tine__v1__new_message__init(mapping.out);
    Error error =
        pi_members(source->json, ENTRY_FIELDS, ENTRY_FIELD_COUNT, mapping.fields, &mapping.rest);
    if (!error) error = map(&mapping, source);
    buffer_free(&mapping.rest);
    buffer_free(&mapping.message_rest);
    if (error) return error;
    *out = mapping.out;
    *out_references = references;
    return ERROR_NONE;
}
