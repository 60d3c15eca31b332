// Encoding from the end. Which fields are left out, and what a NULL means, is as protobuf-c has it:
// a test compares the two over every message of the contract.

#include "base/encode.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/wire.h"

// A member of a message, whatever it is.
static const void *member_at(const ProtobufCMessage *message, unsigned offset)
{
    return (const uint8_t *)message + offset;
}

static uint8_t *varint_before(uint8_t *end, uint64_t value)
{
    if (value < 0x80) {
        *--end = (uint8_t)value;
        return end;
    }
    end -= wire_varint_size(value);
    (void)wire_put_varint(end, value);
    return end;
}

static uint8_t *tag_before(uint8_t *end, uint32_t number, WireType type)
{
    return varint_before(end, (uint64_t)number << 3 | (uint64_t)type);
}

static uint8_t *bytes_before(uint8_t *end, const void *bytes, size_t size)
{
    end -= size;
    if (size > 0) memcpy(end, bytes, size);
    return varint_before(end, size);
}

// The value of a scalar as the varint that stands for it: a negative number has ten bytes.
static uint64_t varint_of(const ProtobufCFieldDescriptor *field, const void *member)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_BOOL: return *(const protobuf_c_boolean *)member != 0;
    case PROTOBUF_C_TYPE_ENUM:
    case PROTOBUF_C_TYPE_INT32: return (uint64_t)(int64_t) * (const int32_t *)member;
    case PROTOBUF_C_TYPE_UINT32: return *(const uint32_t *)member;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64: return *(const uint64_t *)member;
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
    default: assert(!"a type that the contract does not have"); return 0;
    }
}

// One value, with its tag.
static uint8_t *value_before(uint8_t *end, const ProtobufCFieldDescriptor *field,
                             const void *member)
{
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        const char *text = *(const char *const *)member;
        end = bytes_before(end, text, text ? strlen(text) : 0);
    } else if (field->type == PROTOBUF_C_TYPE_BYTES) {
        const ProtobufCBinaryData *data = member;
        end = bytes_before(end, data->data, data->len);
    } else if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        const ProtobufCMessage *message = *(const ProtobufCMessage *const *)member;
        uint8_t *begin = message ? encode_before(end, message) : end;
        end = varint_before(begin, (uint64_t)(end - begin));
    } else {
        return tag_before(varint_before(end, varint_of(field, member)), field->id, WIRE_VARINT);
    }
    return tag_before(end, field->id, WIRE_BYTES);
}

static size_t element_bytes(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_BOOL: return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_ENUM:
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_UINT32: return sizeof(uint32_t);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64: return sizeof(uint64_t);
    case PROTOBUF_C_TYPE_STRING: return sizeof(char *);
    case PROTOBUF_C_TYPE_BYTES: return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_MESSAGE: return sizeof(ProtobufCMessage *);
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
    default: assert(!"a type that the contract does not have"); return 1;
    }
}

static uint8_t *repeated_before(uint8_t *end, const ProtobufCFieldDescriptor *field,
                                const ProtobufCMessage *message)
{
    size_t count = *(const size_t *)member_at(message, field->quantifier_offset);
    if (count == 0) return end;
    const uint8_t *elements = *(const uint8_t *const *)member_at(message, field->offset);
    size_t size = element_bytes(field);
    if (!(field->flags & PROTOBUF_C_FIELD_FLAG_PACKED)) {
        for (size_t i = count; i > 0; i--)
            end = value_before(end, field, elements + (i - 1) * size);
        return end;
    }
    uint8_t *begin = end;
    for (size_t i = count; i > 0; i--)
        begin = varint_before(begin, varint_of(field, elements + (i - 1) * size));
    return tag_before(varint_before(begin, (uint64_t)(end - begin)), field->id, WIRE_BYTES);
}

// Whether a field that always has a value has one that is worth saying.
static bool is_zero(const ProtobufCFieldDescriptor *field, const void *member)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING: {
        const char *text = *(const char *const *)member;
        return !text || !*text;
    }
    case PROTOBUF_C_TYPE_BYTES: return ((const ProtobufCBinaryData *)member)->len == 0;
    case PROTOBUF_C_TYPE_MESSAGE: return !*(const ProtobufCMessage *const *)member;
    case PROTOBUF_C_TYPE_BOOL: return !*(const protobuf_c_boolean *)member;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64: return *(const uint64_t *)member == 0;
    case PROTOBUF_C_TYPE_ENUM:
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
    default: return *(const uint32_t *)member == 0;
    }
}

// Whether a field that may have no value has one: a pointer that is its default's has none.
static bool is_said(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *message)
{
    const void *member = member_at(message, field->offset);
    bool is_oneof = field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;
    if (is_oneof) {
        uint32_t chosen = *(const uint32_t *)member_at(message, field->quantifier_offset);
        if (chosen != field->id) return false;
    }
    if (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE) {
        const void *pointer = *(const void *const *)member;
        return pointer && pointer != field->default_value;
    }
    return is_oneof ||
           *(const protobuf_c_boolean *)member_at(message, field->quantifier_offset) != 0;
}

static uint8_t *field_before(uint8_t *end, const ProtobufCFieldDescriptor *field,
                             const ProtobufCMessage *message)
{
    const void *member = member_at(message, field->offset);
    bool has_value = true;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) return repeated_before(end, field, message);
    if (field->label == PROTOBUF_C_LABEL_OPTIONAL || field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        has_value = is_said(field, message);
    } else if (field->label == PROTOBUF_C_LABEL_NONE) {
        has_value = !is_zero(field, member);
    }
    return has_value ? value_before(end, field, member) : end;
}

static uint8_t *unknown_before(uint8_t *end, const ProtobufCMessageUnknownField *field)
{
    end -= field->len;
    if (field->len > 0) memcpy(end, field->data, field->len);
    return tag_before(end, field->tag, (WireType)field->wire_type);
}

uint8_t *encode_before(uint8_t *end, const ProtobufCMessage *message)
{
    for (unsigned i = message->n_unknown_fields; i > 0; i--)
        end = unknown_before(end, &message->unknown_fields[i - 1]);
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;
    for (unsigned i = descriptor->n_fields; i > 0; i--)
        end = field_before(end, &descriptor->fields[i - 1], message);
    return end;
}
