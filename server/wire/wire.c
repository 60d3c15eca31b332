// The protobuf wire format: https://protobuf.dev/programming-guides/encoding. It is stricter than
// most decoders: a tag has at most 5 bytes and a varint at most 64 bits.

#include "wire/wire.h"

#include <assert.h>
#include <string.h>

enum { WIRE_NUMBER_MAX = (1 << 29) - 1 };

static bool take_tag(Slice *rest, uint32_t *out_number, uint32_t *out_type);
static bool take_long_varint(Slice *rest, uint64_t *out_value);
static bool take_fixed(Slice *rest, size_t size, uint64_t *out_value);
static bool take_content(Slice *rest, WireField *field);

// Inline for the common case: most tags and lengths have one byte.
static inline bool take_varint(Slice *rest, uint64_t *out_value)
{
    if (rest->size == 0 || rest->bytes[0] >= 0x80) return take_long_varint(rest, out_value);
    *out_value = rest->bytes[0];
    *rest = slice(rest->bytes + 1, rest->size - 1);
    return true;
}

bool wire_next(Slice *rest, WireField *out_field)
{
    if (rest->size == 0) return false;
    Slice left = *rest;
    WireField field = {0};
    uint32_t type;
    if (!take_tag(&left, &field.number, &type)) return false;
    field.type = (WireType)type;

    bool is_good = false;
    switch (type) {
    case WIRE_VARINT: is_good = take_varint(&left, &field.value); break;
    case WIRE_FIXED64: is_good = take_fixed(&left, 8, &field.value); break;
    case WIRE_FIXED32: is_good = take_fixed(&left, 4, &field.value); break;
    case WIRE_BYTES: is_good = take_content(&left, &field); break;
    default: break;
    }
    if (!is_good) return false;

    field.whole = slice(rest->bytes, rest->size - left.size);
    *out_field = field;
    *rest = left;
    return true;
}

static bool take_tag(Slice *rest, uint32_t *out_number, uint32_t *out_type)
{
    size_t size_before = rest->size;
    uint64_t tag;
    if (!take_varint(rest, &tag) || size_before - rest->size > WIRE_TAG_BYTES_MAX) return false;
    uint64_t number = tag >> 3;
    if (number == 0 || number > WIRE_NUMBER_MAX) return false;
    *out_number = (uint32_t)number;
    *out_type = tag & 7;
    return true;
}

static bool take_long_varint(Slice *rest, uint64_t *out_value)
{
    uint64_t value = 0;
    for (size_t i = 0; i < rest->size && i < WIRE_VARINT_BYTES_MAX; i++) {
        uint8_t byte = rest->bytes[i];
        if (i == WIRE_VARINT_BYTES_MAX - 1 && byte > 1) return false; // 9 × 7 bits came before it
        value |= (uint64_t)(byte & 0x7F) << (7 * i);
        if (byte < 0x80) {
            *out_value = value;
            *rest = slice_skip(*rest, i + 1);
            return true;
        }
    }
    return false;
}

// Little-endian.
static bool take_fixed(Slice *rest, size_t size, uint64_t *out_value)
{
    if (rest->size < size) return false;
    uint64_t value = 0;
    for (size_t i = size; i-- > 0;)
        value = value << 8 | rest->bytes[i];
    *out_value = value;
    *rest = slice_skip(*rest, size);
    return true;
}

static bool take_content(Slice *rest, WireField *field)
{
    uint64_t size;
    if (!take_varint(rest, &size) || size > rest->size) return false;
    field->bytes = slice(rest->bytes, (size_t)size);
    *rest = slice_skip(*rest, (size_t)size);
    return true;
}

uint32_t wire_next_number(Slice rest)
{
    uint32_t number, type;
    return take_tag(&rest, &number, &type) ? number : 0;
}

bool wire_find(Slice message, uint32_t number, WireField *out_field)
{
    WireField found;
    bool is_found = false;
    WireField field;
    while (wire_next(&message, &field)) {
        if (field.number != number) continue;
        found = field;
        is_found = true;
    }
    if (message.size > 0 || !is_found) return false;
    *out_field = found;
    return true;
}

size_t wire_put_tag(uint8_t *out, uint32_t number, WireType type)
{
    assert(number > 0 && number <= WIRE_NUMBER_MAX);
    return wire_put_varint(out, number << 3 | (uint32_t)type);
}

size_t wire_put_varint_field(uint8_t *out, uint32_t number, uint64_t value)
{
    size_t size = wire_put_tag(out, number, WIRE_VARINT);
    return size + wire_put_varint(out + size, value);
}

size_t wire_put_bytes_field(uint8_t *out, uint32_t number, Slice bytes)
{
    size_t size = wire_put_tag(out, number, WIRE_BYTES);
    size += wire_put_varint(out + size, bytes.size);
    if (bytes.size > 0) memcpy(out + size, bytes.bytes, bytes.size);
    return size + bytes.size;
}

Error wire_append_header(Buffer *buffer, uint32_t number, size_t content_size)
{
    uint8_t header[WIRE_TAG_BYTES_MAX + WIRE_VARINT_BYTES_MAX];
    size_t size = wire_put_tag(header, number, WIRE_BYTES);
    size += wire_put_varint(header + size, content_size);
    return buffer_append(buffer, slice(header, size));
}

Error wire_append_bytes(Buffer *buffer, uint32_t number, Slice content)
{
    // Reserves room for the whole field first, so that the buffer is unchanged on failure.
    if (content.size > SIZE_MAX - WIRE_TAG_BYTES_MAX - WIRE_VARINT_BYTES_MAX) {
        return ERROR_OUT_OF_MEMORY;
    }
    uint8_t *room;
    Error error = buffer_reserve(buffer, wire_bytes_field_size(number, content.size), &room);
    if (error) return error;

    buffer_grow(buffer, wire_put_bytes_field(room, number, content));
    return ERROR_NONE;
}

Error wire_append_varint(Buffer *buffer, uint32_t number, uint64_t value)
{
    uint8_t field[WIRE_TAG_BYTES_MAX + WIRE_VARINT_BYTES_MAX];
    size_t size = wire_put_varint_field(field, number, value);
    return buffer_append(buffer, slice(field, size));
}
