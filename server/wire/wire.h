// The protobuf wire format, by hand: reading fields of stored bytes without decoding the record,
// and writing a field in front of bytes that are copied as they are.

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
    uint64_t value; // of a varint or a fixed one
    Slice bytes;    // of WIRE_BYTES: its content
    Slice whole;    // the field with its tag, as it stands
} WireField;

// Reads the field at the front of `rest` and moves `rest` past it. False at the end (then `rest`
// is empty) and on malformed bytes (then it is not). Groups are malformed.
bool wire_next(Slice *rest, WireField *out_field);

// Returns the number of the field at the front of `rest`, whose content need not be there; 0 if
// the tag is cut off or malformed.
uint32_t wire_next_number(Slice rest);

// The last field with this number (the last one wins, as in protobuf). False if there is none or
// the bytes are malformed.
bool wire_find(Slice message, uint32_t number, WireField *out_field);

// Varints and tags into memory that has room; they return the bytes written.
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
size_t wire_put_varint_field(uint8_t *out, uint32_t number, uint64_t value); // also when it is 0
size_t wire_put_bytes_field(uint8_t *out, uint32_t number, Slice bytes);

// Seven bits a byte, one byte at least.
static inline size_t wire_varint_size(uint64_t value)
{
    return (size_t)(70 - __builtin_clzll(value | 1)) / 7;
}

// Size of a bytes field: tag, length and content.
static inline size_t wire_bytes_field_size(uint32_t number, size_t content_size)
{
    return wire_varint_size((uint64_t)number << 3) + wire_varint_size(content_size) + content_size;
}

// Appends tag and length of a bytes field whose content the caller appends next.
MUST_USE Error wire_append_header(Buffer *buffer, uint32_t number, size_t content_size);
MUST_USE Error wire_append_bytes(Buffer *buffer, uint32_t number, Slice content);
MUST_USE Error wire_append_varint(Buffer *buffer, uint32_t number, uint64_t value);
