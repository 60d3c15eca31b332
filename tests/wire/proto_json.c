// One walk over a message beside its descriptor.

#include "proto_json.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>

#include "json_value.h"
#include "text/json_write.h"

typedef ProtobufCFieldDescriptor Field;

static const void *value_of(const ProtobufCMessage *message, const Field *field)
{
    return (const uint8_t *)message + field->offset;
}

static size_t count_of(const ProtobufCMessage *message, const Field *field)
{
    return *(const size_t *)(const void *)((const uint8_t *)message + field->quantifier_offset);
}

static bool is_default(const Field *field, const void *value)
{
    ProtobufCType type = field->type;
    if (type == PROTOBUF_C_TYPE_STRING) {
        const char *text = *(const char *const *)value;
        return !text || !*text;
    }
    if (type == PROTOBUF_C_TYPE_BYTES) return ((const ProtobufCBinaryData *)value)->len == 0;
    if (type == PROTOBUF_C_TYPE_MESSAGE) return *(const ProtobufCMessage *const *)value == NULL;
    bool is_long = type == PROTOBUF_C_TYPE_INT64 || type == PROTOBUF_C_TYPE_UINT64;
    return is_long ? *(const uint64_t *)value == 0 : *(const uint32_t *)value == 0;
}

static bool is_written(const ProtobufCMessage *message, const Field *field)
{
    if (field->label == PROTOBUF_C_LABEL_REPEATED) return count_of(message, field) > 0;
    if (!(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF))
        return !is_default(field, value_of(message, field));
    const uint8_t *which = (const uint8_t *)message + field->quantifier_offset;
    return *(const uint32_t *)(const void *)which == field->id;
}

static void write_enum(FILE *out, const ProtobufCEnumDescriptor *type, int number)
{
    const ProtobufCEnumValue *named = protobuf_c_enum_descriptor_get_value(type, number);
    if (named)
        fprintf(out, "\"%s\"", named->name);
    else
        fprintf(out, "%d", number);
}

static void write_value(FILE *out, const Field *field, const void *value)
{
    ProtobufCType type = field->type;
    if (type == PROTOBUF_C_TYPE_INT32) {
        fprintf(out, "%" PRId32, *(const int32_t *)value);
    } else if (type == PROTOBUF_C_TYPE_UINT32) {
        fprintf(out, "%" PRIu32, *(const uint32_t *)value);
    } else if (type == PROTOBUF_C_TYPE_INT64) {
        fprintf(out, "\"%" PRId64 "\"", *(const int64_t *)value);
    } else if (type == PROTOBUF_C_TYPE_UINT64) {
        fprintf(out, "\"%" PRIu64 "\"", *(const uint64_t *)value);
    } else if (type == PROTOBUF_C_TYPE_BOOL) {
        fputs(*(const protobuf_c_boolean *)value ? "true" : "false", out);
    } else if (type == PROTOBUF_C_TYPE_ENUM) {
        write_enum(out, field->descriptor, *(const int *)value);
    } else if (type == PROTOBUF_C_TYPE_STRING) {
        json_write_text(out, slice_of(*(const char *const *)value));
    } else if (type == PROTOBUF_C_TYPE_BYTES) {
        const ProtobufCBinaryData *bytes = value;
        json_write_bytes(out, slice(bytes->data, bytes->len));
    } else {
        assert(type == PROTOBUF_C_TYPE_MESSAGE); // the contract uses no other
        proto_json_write(out, *(const ProtobufCMessage *const *)value);
    }
}

static void write_name(FILE *out, const char *name)
{
    fputc('"', out);
    for (bool is_upper = false; *name; name++) {
        if (*name != '_') fputc(is_upper ? toupper((unsigned char)*name) : *name, out);
        is_upper = *name == '_';
    }
    fputs("\":", out);
}

void proto_json_write(FILE *out, const ProtobufCMessage *message)
{
    fputc('{', out);
    const char *before = "";
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const Field *field = &message->descriptor->fields[i];
        if (!is_written(message, field)) continue;
        fputs(before, out);
        before = ",";
        write_name(out, field->name);
        const void *value = value_of(message, field);
        if (field->label != PROTOBUF_C_LABEL_REPEATED) {
            write_value(out, field, value);
            continue;
        }
        const uint8_t *elements = *(const uint8_t *const *)value;
        size_t stride = json_value_bytes(field->type);
        fputc('[', out);
        for (size_t j = 0; j < count_of(message, field); j++) {
            if (j > 0) fputc(',', out);
            write_value(out, field, elements + j * stride);
        }
        fputc(']', out);
    }
    fputc('}', out);
}
