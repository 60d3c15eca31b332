// Encoding from the end. It leaves out the same fields as protobuf-c and treats NULL in the same
// way: a test compares the two for every message of the contract.

#include "wire/encode.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "wire/wire.h"

// The room that is left: the next byte is written before `at`.
typedef struct Room {
    const uint8_t *begin;
    uint8_t *at;
} Room;

static bool put_message(Room *room, const ProtobufCMessage *message);

// Returns the address of a member of a message.
static const void *member_at(const ProtobufCMessage *message, unsigned offset)
{
    return (const uint8_t *)message + offset;
}

static bool take(Room *room, size_t size)
{
    if ((size_t)(room->at - room->begin) < size) return false;
    room->at -= size;
    return true;
}

static bool put_varint(Room *room, uint64_t value)
{
    if (!take(room, value < 0x80 ? 1 : wire_varint_size(value))) return false;
    (void)wire_put_varint(room->at, value);
    return true;
}

static bool put_tag(Room *room, uint32_t number, WireType type)
{
    return put_varint(room, (uint64_t)number << 3 | (uint64_t)type);
}

static bool put_bytes(Room *room, const void *bytes, size_t size)
{
    if (!take(room, size)) return false;
    if (size > 0) memcpy(room->at, bytes, size);
    return true;
}

// Returns the value of a scalar as its varint. A negative number has ten bytes.
static uint64_t varint_of(const ProtobufCFieldDescriptor *field, const void *member)
{
    switch ((unsigned)field->type) {
    case PROTOBUF_C_TYPE_BOOL: return *(const protobuf_c_boolean *)member != 0;
    case PROTOBUF_C_TYPE_ENUM:
    case PROTOBUF_C_TYPE_INT32: return (uint64_t)(int64_t) * (const int32_t *)member;
    case PROTOBUF_C_TYPE_UINT32: return *(const uint32_t *)member;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64: return *(const uint64_t *)member;
    default: break;
    }
    assert(false); // the contract has no field of another type
    return 0;
}

// Writes the content of a length-delimited field, without its length.
static bool put_content(Room *room, const ProtobufCFieldDescriptor *field, const void *member)
{
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        const char *text = *(const char *const *)member;
        return put_bytes(room, text, text ? strlen(text) : 0);
    }
    if (field->type == PROTOBUF_C_TYPE_BYTES) {
        const ProtobufCBinaryData *data = member;
        return put_bytes(room, data->data, data->len);
    }
    const ProtobufCMessage *message = *(const ProtobufCMessage *const *)member;
    return !message || put_message(room, message);
}

static bool put_header(Room *room, const ProtobufCFieldDescriptor *field, const uint8_t *end)
{
    return put_varint(room, (uint64_t)(end - room->at)) && put_tag(room, field->id, WIRE_BYTES);
}

// Writes one value with its tag.
static bool put_value(Room *room, const ProtobufCFieldDescriptor *field, const void *member)
{
    const uint8_t *end = room->at;
    bool is_bytes = field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_BYTES ||
                    field->type == PROTOBUF_C_TYPE_MESSAGE;
    if (is_bytes) return put_content(room, field, member) && put_header(room, field, end);
    return put_varint(room, varint_of(field, member)) && put_tag(room, field->id, WIRE_VARINT);
}

static size_t element_bytes(const ProtobufCFieldDescriptor *field)
{
    switch ((unsigned)field->type) {
    case PROTOBUF_C_TYPE_BOOL: return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_ENUM:
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_UINT32: return sizeof(uint32_t);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64: return sizeof(uint64_t);
    case PROTOBUF_C_TYPE_STRING: return sizeof(char *);
    case PROTOBUF_C_TYPE_BYTES: return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_MESSAGE: return sizeof(ProtobufCMessage *);
    default: break;
    }
    assert(false);
    return 0;
}

static bool put_repeated(Room *room, const ProtobufCFieldDescriptor *field,
                         const ProtobufCMessage *message)
{
    size_t count = *(const size_t *)member_at(message, field->quantifier_offset);
    if (count == 0) return true;
    const uint8_t *elements = *(const uint8_t *const *)member_at(message, field->offset);
    size_t size = element_bytes(field);
    bool is_packed = field->flags & PROTOBUF_C_FIELD_FLAG_PACKED, has_room = true;
    const uint8_t *end = room->at;
    for (size_t i = count; i > 0 && has_room; i--) {
        const uint8_t *element = elements + (i - 1) * size;
        has_room = is_packed ? put_varint(room, varint_of(field, element))
                             : put_value(room, field, element);
    }
    return has_room && (!is_packed || put_header(room, field, end));
}

// Returns whether a field without presence has its default value, which is not encoded.
static bool is_zero(const ProtobufCFieldDescriptor *field, const void *member)
{
    switch ((unsigned)field->type) {
    case PROTOBUF_C_TYPE_STRING: {
        const char *text = *(const char *const *)member;
        return !text || !*text;
    }
    case PROTOBUF_C_TYPE_BYTES: return ((const ProtobufCBinaryData *)member)->len == 0;
    case PROTOBUF_C_TYPE_MESSAGE: return !*(const ProtobufCMessage *const *)member;
    case PROTOBUF_C_TYPE_BOOL: return !*(const protobuf_c_boolean *)member;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64: return *(const uint64_t *)member == 0;
    default: return *(const uint32_t *)member == 0;
    }
}

// Returns whether a field with presence is set. A pointer to its default value counts as not set.
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

static bool put_field(Room *room, const ProtobufCFieldDescriptor *field,
                      const ProtobufCMessage *message)
{
    const void *member = member_at(message, field->offset);
    bool has_value = true;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) return put_repeated(room, field, message);
    if (field->label == PROTOBUF_C_LABEL_OPTIONAL || field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        has_value = is_said(field, message);
    } else if (field->label == PROTOBUF_C_LABEL_NONE) {
        has_value = !is_zero(field, member);
    }
    return !has_value || put_value(room, field, member);
}

static bool put_unknown(Room *room, const ProtobufCMessageUnknownField *field)
{
    return put_bytes(room, field->data, field->len) &&
           put_tag(room, field->tag, (WireType)field->wire_type);
}

static bool put_message(Room *room, const ProtobufCMessage *message)
{
    bool has_room = true;
    for (unsigned i = message->n_unknown_fields; i > 0 && has_room; i--)
        has_room = put_unknown(room, &message->unknown_fields[i - 1]);
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;
    for (unsigned i = descriptor->n_fields; i > 0 && has_room; i--)
        has_room = put_field(room, &descriptor->fields[i - 1], message);
    return has_room;
}

uint8_t *encode_before(uint8_t *begin, uint8_t *end, const ProtobufCMessage *message)
{
    Room room = {begin, end};
    return put_message(&room, message) ? room.at : NULL;
}
