// A table, built once, maps the descriptor of each message to the rules of its fields. The check
// walks the encoded bytes and the descriptors in parallel. No message of the contract contains
// itself, so the schema bounds the depth of the walk.

#include "rpc/field_rules.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "dispatch_table.h"
#include "text/json.h"
#include "text/utf8.h"
#include "wire/wire.h"

enum { TABLE_SLOTS = 512, DEPTH_MAX = 8 };

typedef struct NamedLimit {
    const char *name; // "Message.field", or "*.field" for any message
    uint32_t max;
} NamedLimit;

// Strings whose limit is not STRING_BYTES_MAX. The first match applies.
static const NamedLimit STRING_LIMITS[] = {
    {"Text.text", 0},
    {"Thinking.text", 0},
    {"ToolUse.input_json", 0},
    {"ToolUse.input_text", 0},
    {"ToolUse.title", TITLE_BYTES_MAX},
    {"ToolResult.content", 0},
    {"ToolResult.data_json", 0},
    {"Image.url", 0},
    {"File.url", 0},
    {"File.filename", PATH_BYTES_MAX},
    {"File.source_json", 0},
    {"Extension.json", 0},
    {"Error.message", ERROR_MESSAGE_BYTES_MAX},
    {"Marker.summary", SUMMARY_BYTES_MAX},
    {"Marker.details_json", DETAILS_JSON_BYTES_MAX},
    {"NewMessage.text", SUMMARY_BYTES_MAX},
    {"NewMessage.data_json", 0},
    {"NewMemory.content", MEMORY_CONTENT_BYTES_MAX},
    {"NewMemory.body", MEMORY_CONTENT_BYTES_MAX},
    {"TodoItem.content", TODO_CONTENT_BYTES_MAX},
    {"PublishEventRequest.data_json", EVENT_DATA_JSON_BYTES_MAX},
    {"BroadcastEventRequest.data_json", EVENT_DATA_JSON_BYTES_MAX},
    {"ListSessionsRequest.query", QUERY_BYTES_MAX},
    {"*.slug", SLUG_BYTES_MAX},
    {"*.title", TITLE_BYTES_MAX},
    {"*.project_dir", PATH_BYTES_MAX},
    {"*.path", PATH_BYTES_MAX},
    {"*.system_prompt", SYSTEM_PROMPT_BYTES_MAX},
    {"*.metadata_json", METADATA_JSON_BYTES_MAX},
    {"*.data_json", SESSION_DATA_JSON_BYTES_MAX},
    {"*.cursor", CURSOR_BYTES_MAX},
};

static const NamedLimit COUNT_LIMITS[] = {
    {"NewMessage.parts", PART_COUNT_MAX},
    {"AppendExchangeRequest.messages", EXCHANGE_MESSAGE_COUNT_MAX},
    {"AppendExchangeRequest.originals", EXCHANGE_MESSAGE_COUNT_MAX},
    {"ToolResult.attachments", ATTACHMENT_COUNT_MAX},
    {"ReplaceSessionTodosRequest.items", TODO_COUNT_MAX},
    {"UpdateSessionRequest.mask", UPDATE_MASK_COUNT_MAX},
    {"*.kinds", KIND_FILTER_COUNT_MAX},
};

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

typedef struct Entry {
    const ProtobufCMessageDescriptor *descriptor;
    FieldRule *rules;
} Entry;

static Entry entries[TABLE_SLOTS];
static pthread_once_t entries_once = PTHREAD_ONCE_INIT;

static Entry *entry_slot(const ProtobufCMessageDescriptor *descriptor)
{
    for (size_t i = ((uintptr_t)descriptor >> 4) * 0x9E3779B1u;; i++) {
        Entry *entry = &entries[i % TABLE_SLOTS];
        if (!entry->descriptor || entry->descriptor == descriptor) return entry;
    }
}

static bool ends_with(const char *text, const char *ending)
{
    size_t size = strlen(text), ending_size = strlen(ending);
    return size >= ending_size && strcmp(text + size - ending_size, ending) == 0;
}

static uint32_t limit_find(const NamedLimit *limits, size_t count, const char *message,
                           const char *field, uint32_t otherwise)
{
    char name[128], any[128];
    snprintf(name, sizeof(name), "%s.%s", message, field);
    snprintf(any, sizeof(any), "*.%s", field);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(limits[i].name, name) == 0 || strcmp(limits[i].name, any) == 0) {
            return limits[i].max;
        }
    }
    return otherwise;
}

static FieldRule rule_make(const char *message, const ProtobufCFieldDescriptor *field)
{
    FieldRule rule = {.bytes_max = 0};
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        rule.bytes_max = limit_find(STRING_LIMITS, LENGTH(STRING_LIMITS), message, field->name,
                                    STRING_BYTES_MAX);
        rule.is_json = strcmp(field->name, "json") == 0 || ends_with(field->name, "_json");
    }
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        rule.count_max = limit_find(COUNT_LIMITS, LENGTH(COUNT_LIMITS), message, field->name, 0);
    }
    if (field->type == PROTOBUF_C_TYPE_INT64) {
        rule.is_time = ends_with(field->name, "_at") || ends_with(field->name, "_until") ||
                       ends_with(field->name, "_since");
        rule.is_duration = ends_with(field->name, "duration_ms");
    }
    return rule;
}

static void entries_add(const ProtobufCMessageDescriptor *descriptor)
{
    Entry *entry = entry_slot(descriptor);
    if (entry->descriptor) return;
    entry->rules = calloc(descriptor->n_fields + 1u, sizeof(FieldRule));
    if (!entry->rules) abort(); // a few kilobytes, at start-up
    entry->descriptor = descriptor;
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        entry->rules[i] = rule_make(descriptor->short_name, field);
        if (field->type == PROTOBUF_C_TYPE_MESSAGE) entries_add(field->descriptor);
    }
}

static void entries_build(void)
{
    for (size_t i = 0; i < METHOD_COUNT; i++)
        entries_add(METHODS[i].request);
}

const FieldRule *field_rules_of(const ProtobufCMessageDescriptor *descriptor)
{
    pthread_once(&entries_once, entries_build);
    Entry *entry = entry_slot(descriptor);
    assert(entry->descriptor);
    return entry->rules;
}

const char *field_rules_limit(size_t index, uint64_t *out_max)
{
    *out_max = 0;
    if (index < LENGTH(STRING_LIMITS)) {
        *out_max = STRING_LIMITS[index].max ? STRING_LIMITS[index].max : REQUEST_BYTES_MAX;
        return STRING_LIMITS[index].name;
    }
    index -= LENGTH(STRING_LIMITS);
    if (index >= LENGTH(COUNT_LIMITS)) return NULL;
    *out_max = COUNT_LIMITS[index].max;
    return COUNT_LIMITS[index].name;
}

// The position of the check: the fields from the request down to the one that is being checked.
typedef struct Path {
    const ProtobufCFieldDescriptor *fields[DEPTH_MAX];
    uint32_t indexes[DEPTH_MAX];
    size_t depth;
    bool has_unknown; // one was ignored
    ErrorDetail *detail;
} Path;

static void path_format(const Path *path, char *out, size_t out_bytes_max)
{
    size_t size = 0;
    out[0] = '\0';
    for (size_t i = 0; i < path->depth && size < out_bytes_max; i++) {
        const ProtobufCFieldDescriptor *field = path->fields[i];
        int written;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            written = snprintf(out + size, out_bytes_max - size, "%s%s[%u]", i ? "." : "",
                               field->name, path->indexes[i]);
        } else {
            written = snprintf(out + size, out_bytes_max - size, "%s%s", i ? "." : "", field->name);
        }
        size += (size_t)written;
    }
}

static Error check_string(const Path *path, const FieldRule *rule, Slice text)
{
    char name[256];
    if (rule->bytes_max && text.size > rule->bytes_max) {
        path_format(path, name, sizeof(name));
        return error_say(path->detail, ERROR_TOO_LONG, "%s: %zu bytes, the limit is %u", name,
                         text.size, rule->bytes_max);
    }
    if (!utf8_is_valid(text) || (text.size && memchr(text.bytes, 0, text.size))) {
        path_format(path, name, sizeof(name));
        return error_say(path->detail, ERROR_INVALID_UTF8,
                         "%s: not valid UTF-8, or it holds a NUL; send binary content in a bytes "
                         "field",
                         name);
    }
    size_t offset;
    if (rule->is_json && text.size && !json_is_valid(text, &offset)) {
        path_format(path, name, sizeof(name));
        return error_say(path->detail, ERROR_INVALID_JSON, "%s: not valid JSON at byte %zu", name,
                         offset);
    }
    return ERROR_NONE;
}

static Error check_number(const Path *path, const FieldRule *rule, int64_t value)
{
    char name[256];
    bool is_wrong =
        (rule->is_time && (value < 0 || value > TIME_MS_MAX)) || (rule->is_duration && value < 0);
    if (!is_wrong) return ERROR_NONE;
    path_format(path, name, sizeof(name));
    return error_say(path->detail, ERROR_INVALID_ARGUMENT,
                     "%s: %lld is out of range; times are milliseconds since the epoch, 0 to %lld",
                     name, (long long)value, (long long)TIME_MS_MAX);
}

static Error check_enum_value(const Path *path, uint64_t value)
{
    const ProtobufCFieldDescriptor *field = path->fields[path->depth - 1];
    const ProtobufCEnumDescriptor *descriptor = field->descriptor;
    if (value <= INT32_MAX && protobuf_c_enum_descriptor_get_value(descriptor, (int)value)) {
        return ERROR_NONE;
    }
    char name[256];
    path_format(path, name, sizeof(name));
    return error_say(path->detail, ERROR_INVALID_ARGUMENT, "%s: %lld is no value of %s", name,
                     (long long)value, descriptor->short_name);
}

static Error check_enum(const Path *path, const WireField *field)
{
    if (field->type == WIRE_VARINT) return check_enum_value(path, field->value);
    Slice rest = field->bytes; // packed
    while (rest.size > 0) {
        uint64_t value = 0;
        size_t size = 0;
        for (bool more = true; more && size < rest.size && size < WIRE_VARINT_BYTES_MAX; size++) {
            value |= (uint64_t)(rest.bytes[size] & 0x7F) << (7 * size);
            more = rest.bytes[size] & 0x80;
        }
        rest = slice_skip(rest, size);
        Error error = check_enum_value(path, value);
        if (error) return error;
    }
    return ERROR_NONE;
}

static Error check_message(Path *path, const ProtobufCMessageDescriptor *descriptor, Slice bytes);

// protobuf-c accepts some wrong wire types, and never says which field is wrong.
static bool wire_type_fits(const ProtobufCFieldDescriptor *descriptor, WireType type)
{
    bool is_repeated = descriptor->label == PROTOBUF_C_LABEL_REPEATED;
    if (descriptor->type == PROTOBUF_C_TYPE_STRING || descriptor->type == PROTOBUF_C_TYPE_BYTES ||
        descriptor->type == PROTOBUF_C_TYPE_MESSAGE) {
        return type == WIRE_BYTES;
    }
    return type == WIRE_VARINT ||
           (is_repeated && type == WIRE_BYTES); // the contract has no fixed types
}

static Error check_field(Path *path, const FieldRule *rule, const WireField *field)
{
    const ProtobufCFieldDescriptor *descriptor = path->fields[path->depth - 1];
    if (!wire_type_fits(descriptor, field->type)) {
        char name[256];
        path_format(path, name, sizeof(name));
        return error_say(path->detail, ERROR_INVALID_ARGUMENT,
                         "%s: the bytes are not those of this field's type (wire type %d)", name,
                         (int)field->type);
    }
    if (descriptor->type == PROTOBUF_C_TYPE_ENUM) return check_enum(path, field);
    if (descriptor->type == PROTOBUF_C_TYPE_INT64) {
        return check_number(path, rule, (int64_t)field->value);
    }
    if (descriptor->type == PROTOBUF_C_TYPE_STRING) return check_string(path, rule, field->bytes);
    if (descriptor->type == PROTOBUF_C_TYPE_MESSAGE) {
        return check_message(path, descriptor->descriptor, field->bytes);
    }
    return ERROR_NONE;
}

// Returns how many values a field has. A packed field has one for each byte below 0x80.
static uint32_t values_in(const ProtobufCFieldDescriptor *descriptor, const WireField *field)
{
    if (descriptor->type != PROTOBUF_C_TYPE_ENUM || field->type != WIRE_BYTES) return 1;
    uint32_t count = 0;
    for (size_t i = 0; i < field->bytes.size; i++)
        count += field->bytes.bytes[i] < 0x80;
    return count;
}

static Error count_field(const Path *path, const FieldRule *rule, uint32_t count)
{
    if (rule->count_max == 0 || count <= rule->count_max) return ERROR_NONE;
    Path parent = *path;
    parent.depth--;
    char name[256];
    path_format(&parent, name, sizeof(name));
    return error_say(path->detail, ERROR_TOO_LONG, "%s%s%s: more than %u", name,
                     parent.depth ? "." : "", path->fields[path->depth - 1]->name, rule->count_max);
}

static Error check_message(Path *path, const ProtobufCMessageDescriptor *descriptor, Slice bytes)
{
    assert(path->depth < DEPTH_MAX);
    const FieldRule *rules = field_rules_of(descriptor);
    const ProtobufCFieldDescriptor *last = NULL;
    uint32_t counts[64] = {0};
    assert(descriptor->n_fields <= sizeof(counts) / sizeof(*counts));
    path->depth++;
    WireField field;
    while (wire_next(&bytes, &field)) {
        if (!last || last->id != field.number) {
            last = protobuf_c_message_descriptor_get_field(descriptor, field.number);
        }
        if (!last) {
            path->has_unknown = true;
            continue;
        }
        size_t index = (size_t)(last - descriptor->fields);
        path->fields[path->depth - 1] = last;
        path->indexes[path->depth - 1] = counts[index];
        counts[index] += values_in(last, &field);
        Error error = count_field(path, &rules[index], counts[index]);
        if (!error) error = check_field(path, &rules[index], &field);
        if (error) return error;
    }
    path->depth--;
    if (bytes.size == 0) return ERROR_NONE;
    return error_say(path->detail, ERROR_INVALID_ARGUMENT, "the bytes of a %s cannot be decoded",
                     descriptor->short_name);
}

Error field_rules_check(const ProtobufCMessageDescriptor *descriptor, Slice bytes,
                        ErrorDetail *detail, bool *out_has_unknown)
{
    Path path = {.depth = 0, .detail = detail};
    Error error = check_message(&path, descriptor, bytes);
    *out_has_unknown = path.has_unknown;
    return error;
}

static void drop_in_field(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    uint8_t *base = (uint8_t *)message;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        size_t count = *(size_t *)(void *)(base + field->quantifier_offset);
        ProtobufCMessage **items = *(ProtobufCMessage ***)(void *)(base + field->offset);
        for (size_t i = 0; i < count; i++)
            field_rules_drop_unknown(items[i]);
        return;
    }
    bool is_oneof = field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;
    if (is_oneof && *(uint32_t *)(void *)(base + field->quantifier_offset) != field->id) return;
    ProtobufCMessage *item = *(ProtobufCMessage **)(void *)(base + field->offset);
    if (item) field_rules_drop_unknown(item);
}

void field_rules_drop_unknown(ProtobufCMessage *message)
{
    message->n_unknown_fields = 0;
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        if (field->type == PROTOBUF_C_TYPE_MESSAGE) drop_in_field(message, field);
    }
}

// field_rules_drop_unknown clears the count and leaves the pointer.
bool field_rules_had_unknown(const ProtobufCMessage *message)
{
    return message->unknown_fields != NULL;
}
