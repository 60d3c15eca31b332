// Writes messages as JSON in one walk over the message and its descriptor.

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "json_message.h"
#include "json_value.h"
#include "text/json_write.h"

typedef struct JsonOut {
    FILE *file;
    JsonLayout layout;
    unsigned depth;
} JsonOut;

static void write_message(JsonOut *out, const ProtobufCMessage *message);
static bool is_written(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);
static void write_list(JsonOut *out, const ProtobufCMessage *message,
                       const ProtobufCFieldDescriptor *field);
static void write_value(JsonOut *out, const ProtobufCFieldDescriptor *field, const void *value);

void json_message_write(FILE *file, const ProtobufCMessage *message, JsonLayout layout)
{
    JsonOut out = {.file = file, .layout = layout};
    write_message(&out, message);
}

static void write_break(const JsonOut *out)
{
    if (out->layout != JSON_PRETTY) return;
    putc('\n', out->file);
    for (unsigned i = 0; i < out->depth; i++)
        fputs("  ", out->file);
}

static const void *field_value(const ProtobufCMessage *message,
                               const ProtobufCFieldDescriptor *field)
{
    return (const uint8_t *)message + field->offset;
}

static uint32_t field_case(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return *(const uint32_t *)(const void *)((const uint8_t *)message + field->quantifier_offset);
}

static size_t field_count(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return *(const size_t *)(const void *)((const uint8_t *)message + field->quantifier_offset);
}

static void write_message(JsonOut *out, const ProtobufCMessage *message)
{
    putc('{', out->file);
    out->depth++;
    bool is_first = true;
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        if (!is_written(message, field)) continue;
        if (!is_first) putc(',', out->file);
        is_first = false;
        write_break(out);
        fprintf(out->file, out->layout == JSON_PRETTY ? "\"%s\": " : "\"%s\":", field->name);
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            write_list(out, message, field);
        } else {
            write_value(out, field, field_value(message, field));
        }
    }
    out->depth--;
    if (!is_first) write_break(out);
    putc('}', out->file);
}

static bool is_written(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    if (field->label == PROTOBUF_C_LABEL_REPEATED) return field_count(message, field) > 0;
    const void *value = field_value(message, field);
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        if (field_case(message, field) != field->id) return false;
        return field->type != PROTOBUF_C_TYPE_MESSAGE ||
               *(const ProtobufCMessage *const *)value != NULL;
    }
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        return *(const ProtobufCMessage *const *)value != NULL;
    }
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        const char *text = *(const char *const *)value;
        return text && *text;
    }
    if (field->type == PROTOBUF_C_TYPE_BYTES) {
        return ((const ProtobufCBinaryData *)value)->len > 0;
    }
    return true;
}

static void write_list(JsonOut *out, const ProtobufCMessage *message,
                       const ProtobufCFieldDescriptor *field)
{
    const uint8_t *values = *(const uint8_t *const *)field_value(message, field);
    size_t count = field_count(message, field), stride = json_value_bytes(field->type);
    putc('[', out->file);
    out->depth++;
    for (size_t i = 0; i < count; i++) {
        if (i > 0) putc(',', out->file);
        write_break(out);
        write_value(out, field, values + i * stride);
    }
    out->depth--;
    write_break(out);
    putc(']', out->file);
}

static void write_enum(FILE *file, const ProtobufCEnumDescriptor *type, int number)
{
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(type, number);
    if (value) {
        fprintf(file, "\"%s\"", value->name);
    } else {
        fprintf(file, "%d", number);
    }
}

// The JSON of proto3 has these as strings.
static void write_double(FILE *file, double number)
{
    if (isnan(number)) {
        fputs("\"NaN\"", file);
    } else if (isinf(number)) {
        fputs(number < 0 ? "\"-Infinity\"" : "\"Infinity\"", file);
    } else {
        fprintf(file, "%.17g", number);
    }
}

static void write_value(JsonOut *out, const ProtobufCFieldDescriptor *field, const void *value)
{
    FILE *file = out->file;
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32: fprintf(file, "%" PRId32, *(const int32_t *)value); break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32: fprintf(file, "%" PRIu32, *(const uint32_t *)value); break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64: fprintf(file, "%" PRId64, *(const int64_t *)value); break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64: fprintf(file, "%" PRIu64, *(const uint64_t *)value); break;
    case PROTOBUF_C_TYPE_FLOAT: write_double(file, (double)*(const float *)value); break;
    case PROTOBUF_C_TYPE_DOUBLE: write_double(file, *(const double *)value); break;
    case PROTOBUF_C_TYPE_BOOL:
        fputs(*(const protobuf_c_boolean *)value ? "true" : "false", file);
        break;
    case PROTOBUF_C_TYPE_ENUM: write_enum(file, field->descriptor, *(const int *)value); break;
    case PROTOBUF_C_TYPE_STRING:
        json_write_text(file, slice_of(*(const char *const *)value));
        break;
    case PROTOBUF_C_TYPE_BYTES: {
        const ProtobufCBinaryData *bytes = value;
        json_write_bytes(file, slice(bytes->data, bytes->len));
        break;
    }
    case PROTOBUF_C_TYPE_MESSAGE:
        write_message(out, *(const ProtobufCMessage *const *)value);
        break;
    }
}
