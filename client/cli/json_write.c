// Writing JSON: one walk over a message beside its descriptor, straight into the file.

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "json.h"
#include "json_value.h"

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

void json_write(FILE *file, const ProtobufCMessage *message, JsonLayout layout)
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

// What is no number in JSON is a string in proto3's.
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

// The code point at the beginning of `text` and its bytes; 0 bytes: no UTF-8.
static uint32_t code_point_at(Slice text, size_t *out_bytes)
{
    static const uint32_t LEAST[] = {0, 0, 0x80, 0x800, 0x10000};
    uint8_t first = text.bytes[0];
    size_t size = first < 0x80   ? 1
                  : first < 0xc0 ? 0
                  : first < 0xe0 ? 2
                  : first < 0xf0 ? 3
                  : first < 0xf8 ? 4
                                 : 0;
    *out_bytes = 0;
    if (size == 0 || size > text.size) return 0;
    uint32_t point = size == 1 ? first : first & (0x7fu >> size);
    for (size_t i = 1; i < size; i++) {
        if ((text.bytes[i] & 0xc0) != 0x80) return 0;
        point = point << 6 | (text.bytes[i] & 0x3f);
    }
    if (point < LEAST[size] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return 0;
    *out_bytes = size;
    return point;
}

// Controls, and what turns the direction of text or ends its lines.
static bool is_escaped(uint32_t point)
{
    return point < 0x20 || point == '"' || point == '\\' || (point >= 0x7f && point < 0xa0) ||
           point == 0x61c || point == 0x200e || point == 0x200f ||
           (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069) ||
           point == 0xfeff;
}

static void write_escape(FILE *file, uint32_t point)
{
    switch (point) {
    case '"': fputs("\\\"", file); break;
    case '\\': fputs("\\\\", file); break;
    case '\n': fputs("\\n", file); break;
    case '\r': fputs("\\r", file); break;
    case '\t': fputs("\\t", file); break;
    default: fprintf(file, "\\u%04x", (unsigned)point); break;
    }
}

void json_write_text(FILE *file, Slice text)
{
    putc('"', file);
    while (text.size > 0) {
        // What needs no escape is written in one piece.
        size_t plain = 0, size = 0;
        uint32_t point = 0;
        while (plain < text.size) {
            point = code_point_at(slice_skip(text, plain), &size);
            if (size == 0 || is_escaped(point)) break;
            plain += size;
        }
        fwrite(text.bytes, 1, plain, file);
        text = slice_skip(text, plain);
        if (text.size == 0) break;
        if (size == 0) {
            fputs("\xef\xbf\xbd", file); // U+FFFD
            size = 1;
        } else {
            write_escape(file, point);
        }
        text = slice_skip(text, size);
    }
    putc('"', file);
}

void json_write_bytes(FILE *file, Slice bytes)
{
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    putc('"', file);
    for (size_t i = 0; i < bytes.size; i += 3) {
        size_t size = bytes.size - i < 3 ? bytes.size - i : 3;
        uint32_t group = 0;
        for (size_t j = 0; j < 3; j++)
            group = group << 8 | (j < size ? bytes.bytes[i + j] : 0);
        for (size_t j = 0; j < 4; j++) {
            putc(j <= size ? DIGITS[group >> (18 - 6 * j) & 63] : '=', file);
        }
    }
    putc('"', file);
}
