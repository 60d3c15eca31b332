// Maps entries, type by type. What an entry says goes into our fields. What is left is kept
// verbatim in data_json: {…members of the entry, "message": {…members of its message}}.

#include "importers/pi/pi_entry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "importers/field.h"
#include "importers/iso_time.h"
#include "importers/members.h"
#include "importers/pi/pi_message.h"
#include "importers/pi/pi_own_order.h"
#include "importers/pi/pi_parts.h"
#include "text/json_walk.h"

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
    ENTRY_USAGE,
    ENTRY_SYSTEM_MESSAGE,
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
    [ENTRY_USAGE] = "usage",
    [ENTRY_SYSTEM_MESSAGE] = "systemMessage",
};

// The state while one entry is mapped.
typedef struct Mapping {
    Arena *arena;
    NewMessage *out;
    PiReferences *references;
    Members fields;
    Buffer message_rest; // members of the entry's message that have no field of ours
    unsigned version;    // of the file
} Mapping;

static char EMPTY[] = "";

static Error out_of(const Mapping *mapping)
{
    return arena_error(mapping->arena);
}

// An entry that pi leaves out of the context. It is a node of the tree like others.
static Error map_custom(Mapping *mapping, char *subtype)
{
    static char unknown[] = "unknown";
    if (!subtype) return out_of(mapping);
    mapping->out->kind = MESSAGE_KIND_CUSTOM;
    mapping->out->subtype = *subtype ? subtype : unknown;
    mapping->references->target_id =
        members_name(&mapping->fields, ENTRY_TARGET_ID, mapping->arena);
    return mapping->references->target_id ? ERROR_NONE : out_of(mapping);
}

static Error map_thinking_level(Mapping *mapping)
{
    static char subtype[] = PI_SETTING_THINKING;
    mapping->out->kind = MESSAGE_KIND_SETTING;
    mapping->out->subtype = subtype;
    mapping->out->text =
        members_text(&mapping->fields, ENTRY_THINKING_LEVEL, SUMMARY_BYTES_MAX, mapping->arena);
    return mapping->out->text ? ERROR_NONE : out_of(mapping);
}

static Error map_model(Mapping *mapping)
{
    static char subtype[] = "model";
    mapping->out->kind = MESSAGE_KIND_SETTING;
    mapping->out->subtype = subtype;
    return pi_message_set_model(mapping->arena,
                                members_name(&mapping->fields, ENTRY_PROVIDER, mapping->arena),
                                members_name(&mapping->fields, ENTRY_MODEL_ID, mapping->arena),
                                mapping->out);
}

static void take_producer(Mapping *mapping)
{
    Slice from_hook = mapping->fields.values[ENTRY_FROM_HOOK];
    if (json_is_true(from_hook)) mapping->out->producer = PRODUCER_EXTENSION;
    if (json_is_false(from_hook)) mapping->out->producer = PRODUCER_AGENT;
    mapping->fields.is_used[ENTRY_FROM_HOOK] = mapping->out->producer != PRODUCER_UNSPECIFIED;
}

static Error take_usage(Mapping *mapping)
{
    Slice usage = mapping->fields.values[ENTRY_USAGE];
    Error error = pi_message_set_usage(mapping->arena, usage, mapping->out);
    mapping->fields.is_used[ENTRY_USAGE] = mapping->out->usage != NULL;
    return error;
}

// Maps the system prompt that the context begins with after a compaction. Its content becomes the
// parts of the entry. All of it stays in data_json too, because it has more fields.
static Error take_system_message(Mapping *mapping)
{
    static const char *const NAMES[] = {"content"};
    Slice content, message = mapping->fields.values[ENTRY_SYSTEM_MESSAGE];
    Error error = json_members(message, NAMES, 1, &content, NULL);
    return error ? error : pi_parts(mapping->arena, content, mapping->out);
}

static Error map_compaction(Mapping *mapping)
{
    Marker *marker = arena_new(mapping->arena, Marker);
    if (!marker) return out_of(mapping);
    tine__v1__marker__init(marker);
    PiReferences *references = mapping->references;
    Slice first_kept = mapping->fields.values[ENTRY_FIRST_KEPT_ID];
    Slice place = mapping->fields.values[ENTRY_FIRST_KEPT_INDEX];
    mapping->out->kind = MESSAGE_KIND_COMPACTION;
    mapping->out->marker = marker;
    references->first_kept_id =
        members_text(&mapping->fields, ENTRY_FIRST_KEPT_ID, SUMMARY_BYTES_MAX, mapping->arena);
    references->has_first_kept = json_is_text(first_kept);
    if (place.size > 0) references->first_kept_place = json_integer(place);
    marker->first_kept_external = field_name(mapping->arena, references->first_kept_id);
    marker->summary =
        members_text(&mapping->fields, ENTRY_SUMMARY, SUMMARY_BYTES_MAX, mapping->arena);
    marker->tokens_before = json_integer(mapping->fields.values[ENTRY_TOKENS_BEFORE]);
    mapping->fields.is_used[ENTRY_TOKENS_BEFORE] = true;
    marker->details_json =
        members_json(&mapping->fields, ENTRY_DETAILS, DETAILS_JSON_BYTES_MAX, mapping->arena);
    take_producer(mapping);
    bool is_whole = marker->first_kept_external && marker->summary && marker->details_json;
    if (!is_whole) return out_of(mapping);
    Error error = take_usage(mapping);
    return error ? error : take_system_message(mapping);
}

// pi leaves a branch summary without text out of the context: it becomes a note.
static Error map_branch_summary(Mapping *mapping, char *type)
{
    char *summary =
        members_text(&mapping->fields, ENTRY_SUMMARY, SUMMARY_BYTES_MAX, mapping->arena);
    if (!summary) return out_of(mapping);
    Error error = *summary ? ERROR_NONE : map_custom(mapping, type);
    if (error) return error;
    if (*summary) mapping->out->kind = MESSAGE_KIND_BRANCH_SUMMARY;
    mapping->out->text = summary;
    mapping->references->target_id = members_name(&mapping->fields, ENTRY_FROM_ID, mapping->arena);
    take_producer(mapping);
    return mapping->references->target_id ? take_usage(mapping) : out_of(mapping);
}

static Error map_custom_message(Mapping *mapping)
{
    static char custom[] = "custom";
    NewMessage *out = mapping->out;
    out->kind = MESSAGE_KIND_INJECTED;
    out->role = ROLE_OTHER;
    out->other_role = custom;
    out->subtype = members_name(&mapping->fields, ENTRY_CUSTOM_TYPE, mapping->arena);
    out->hidden = json_is_false(mapping->fields.values[ENTRY_DISPLAY]);
    mapping->fields.is_used[ENTRY_DISPLAY] = mapping->fields.is_used[ENTRY_CONTENT] = true;
    if (!out->subtype) return out_of(mapping);
    return pi_parts(mapping->arena, mapping->fields.values[ENTRY_CONTENT], out);
}

static Error map_label(Mapping *mapping, char *type)
{
    char *target = members_name(&mapping->fields, ENTRY_TARGET_ID, mapping->arena);
    if (!target) return out_of(mapping);
    if (!*target) return map_custom(mapping, type);
    mapping->out->kind = MESSAGE_KIND_LABEL;
    mapping->references->target_id = target;
    mapping->out->text =
        members_text(&mapping->fields, ENTRY_LABEL, SUMMARY_BYTES_MAX, mapping->arena);
    return mapping->out->text ? ERROR_NONE : out_of(mapping);
}

static Error map_name(Mapping *mapping)
{
    mapping->out->kind = MESSAGE_KIND_NAME;
    mapping->out->text =
        members_text(&mapping->fields, ENTRY_NAME, SUMMARY_BYTES_MAX, mapping->arena);
    return mapping->out->text ? ERROR_NONE : out_of(mapping);
}

static Error map_by_type(Mapping *mapping, char *type)
{
    if (strcmp(type, "message") == 0 && json_is_object(mapping->fields.values[ENTRY_MESSAGE])) {
        mapping->fields.is_used[ENTRY_MESSAGE] = true;
        return pi_message_map(mapping->arena, mapping->fields.values[ENTRY_MESSAGE],
                              mapping->version, mapping->out, &mapping->message_rest);
    }
    if (strcmp(type, "thinking_level_change") == 0) return map_thinking_level(mapping);
    if (strcmp(type, "model_change") == 0) return map_model(mapping);
    if (strcmp(type, "compaction") == 0) return map_compaction(mapping);
    if (strcmp(type, "branch_summary") == 0) return map_branch_summary(mapping, type);
    if (strcmp(type, "custom") == 0) {
        return map_custom(mapping,
                          members_name(&mapping->fields, ENTRY_CUSTOM_TYPE, mapping->arena));
    }
    if (strcmp(type, "custom_message") == 0) return map_custom_message(mapping);
    if (strcmp(type, "label") == 0) return map_label(mapping, type);
    if (strcmp(type, "session_info") == 0) return map_name(mapping);
    return map_custom(mapping, type);
}

// Appends the members of the message that have no field of ours to those of the entry.
static Error keep_message_rest(Mapping *mapping)
{
    Buffer *rest = &mapping->fields.rest;
    if (buffer_size(&mapping->message_rest) == 0) return ERROR_NONE;
    Error error = ERROR_NONE;
    if (buffer_size(rest) > 0) error = buffer_append(rest, slice_of(","));
    if (!error) error = buffer_append(rest, slice_of("\"message\":{"));
    if (!error) error = buffer_append(rest, buffer_slice(&mapping->message_rest));
    return error ? error : buffer_append(rest, slice_of("}"));
}

static Error join_data(Slice mark, Slice rest, Buffer *out)
{
    Error error = buffer_append(out, slice_of("{"));
    if (!error) error = buffer_append(out, mark);
    if (!error && mark.size > 0 && rest.size > 0) error = buffer_append(out, slice_of(","));
    if (!error) error = buffer_append(out, rest);
    return error ? error : buffer_append(out, slice_of("}"));
}

// Fills data_json: first the entry's position in the file, if it is stored ahead of its turn, then
// what is left of the entry, unless that is nested too deep.
static Error put_data(Mapping *mapping, uint32_t position)
{
    char mark[64] = "";
    CLEANUP(buffer_free) Buffer data = {0}, mark_data = {0};
    Error error = members_keep_unused(&mapping->fields);
    if (!error) error = keep_message_rest(mapping);
    if (error) return error;
    Slice rest = buffer_slice(&mapping->fields.rest);
    if (position != UINT32_MAX) {
        snprintf(mark, sizeof(mark), "\"" PI_POSITION_NAME "\":%" PRIu32, position);
    } else if (rest.size == 0) {
        return ERROR_NONE;
    }
    error = join_data(slice_of(mark), rest, &data);
    if (error) return error;
    char *json = field_json(mapping->arena, buffer_slice(&data));
    if (json && !*json && *mark) {
        error = join_data(slice_of(mark), (Slice){NULL, 0}, &mark_data);
        if (error) return error;
        json = field_json(mapping->arena, buffer_slice(&mark_data));
    }
    mapping->out->data_json = json;
    return json ? ERROR_NONE : out_of(mapping);
}

static Error map(Mapping *mapping, const PiEntrySource *source)
{
    NewMessage *out = mapping->out;
    char *type = members_name(&mapping->fields, ENTRY_TYPE, mapping->arena);
    External *external = arena_new(mapping->arena, External);
    if (!type || !external) return out_of(mapping);
    static char external_source[] = PI_SOURCE;
    tine__v1__external__init(external);
    external->source = external_source;
    external->id = source->external_id;
    out->external = external;
    mapping->fields.is_used[ENTRY_ID] = mapping->fields.is_used[ENTRY_PARENT_ID] = true;
    out->created_at = iso_time_ms(mapping->fields.values[ENTRY_TIMESTAMP]);
    mapping->fields.is_used[ENTRY_TIMESTAMP] = out->created_at != 0;
    if (out->created_at == 0) out->created_at = source->time_ms;
    Error error = map_by_type(mapping, type);
    return error ? error : put_data(mapping, source->position);
}

Error pi_entry_map(Arena *arena, const PiEntrySource *source, NewMessage **out,
                   PiReferences *out_references)
{
    PiReferences references = {.target_id = EMPTY, .first_kept_id = EMPTY, .first_kept_place = -1};
    Mapping mapping = {.arena = arena, .references = &references, .version = source->version};
    mapping.out = arena_new(arena, NewMessage);
    if (!mapping.out) return arena_error(arena);
    tine__v1__new_message__init(mapping.out);
    Error error = members_read(&mapping.fields, ENTRY_FIELDS, ENTRY_FIELD_COUNT, source->json);
    if (!error) error = map(&mapping, source);
    members_free(&mapping.fields);
    buffer_free(&mapping.message_rest);
    if (error) return error;
    *out = mapping.out;
    *out_references = references;
    return ERROR_NONE;
}
