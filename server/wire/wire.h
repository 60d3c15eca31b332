// The protobuf wire format: reads single fields of encoded bytes without decoding the message, and
// writes fields around bytes that are copied as they are. Field numbers come from fields.h.

#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"

typedef enum WireType {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_FIXED32 = 5,
} WireType;

enum { WIRE_VARINT_BYTES_MAX = 10, WIRE_TAG_BYTES_MAX = 5 };

typedef struct WireField {
    uint32_t number;
    WireType type;
    uint64_t value; // of a varint or a fixed-size field
    Slice bytes;    // of WIRE_BYTES: the content
    Slice whole;    // the field with its tag
} WireField;

// Reads the field at the front of `rest` and moves `rest` past it. Returns false at the end, where
// `rest` is empty, and on malformed bytes, where it is not. Groups count as malformed.
bool wire_next(Slice *rest, WireField *out_field);

// Returns the number of the field at the front of `rest`, whose content need not be there; 0 if
// the tag is cut off or malformed.
uint32_t wire_next_number(Slice rest);

// Finds the last field with this number, which is the one that counts in protobuf. Returns false
// if there is none or the bytes are malformed.
bool wire_find(Slice message, uint32_t number, WireField *out_field);

// The wire_put_ functions write into memory that has room, and return the number of bytes written.
static inline size_t wire_put_varint(uint8_t *out, uint64_t value)
{
    size_t size = 0;
    while (value >= 0x80) {
        out[size++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    out[size++] = (uint8_t)value;
    return size;
}

size_t wire_put_tag(uint8_t *out, uint32_t number, WireType type);
size_t wire_put_varint_field(uint8_t *out, uint32_t number, uint64_t value); // writes 0 too
size_t wire_put_bytes_field(uint8_t *out, uint32_t number, Slice bytes);

// Returns the size of a varint: one byte for each 7 bits, at least one.
static inline size_t wire_varint_size(uint64_t value)
{
    return (size_t)(70 - __builtin_clzll(value | 1)) / 7;
}

// Returns the size of a bytes field with its tag and length.
static inline size_t wire_bytes_field_size(uint32_t number, size_t content_size)
{
    return wire_varint_size((uint64_t)number << 3) + wire_varint_size(content_size) + content_size;
}

// The wire_append_ functions return ERROR_OUT_OF_MEMORY.

// Appends the tag and length of a bytes field. The caller appends the content next.
MUST_USE Error wire_append_header(Buffer *buffer, uint32_t number, size_t content_size);
MUST_USE Error wire_append_bytes(Buffer *buffer, uint32_t number, Slice content);
MUST_USE Error wire_append_varint(Buffer *buffer, uint32_t number, uint64_t value);
