// Buffers: growing bytes, with room left in front.
//
// A reply is built front to back into one buffer that its caller owns and uses again. The gap in
// front lets the envelope be written once the body's length is known, without moving the body.

#pragma once

#include "base/error.h"
#include "base/slice.h"

typedef struct Buffer {
    uint8_t *bytes; // owned
    size_t start;   // first used byte: what lies before it is the gap
    size_t end;     // past the last used byte
    size_t capacity;
} Buffer;

void buffer_free(Buffer *buffer);

// Empties the buffer and leaves `gap` bytes free in front. Keeps its memory up to
// BUFFER_KEEP_BYTES_MAX. ERROR_OUT_OF_MEMORY.
MUST_USE Error buffer_reset(Buffer *buffer, size_t gap);

// The same, but keeps all of its memory: for one whose owner frees it himself.
MUST_USE Error buffer_empty(Buffer *buffer, size_t gap);

// Empties the buffer and makes room for `size` bytes, without a gap. Up to BUFFER_KEEP_BYTES_MAX it
// keeps and doubles its memory as usual; above, it gets exactly `size` bytes if it has fewer, and
// nothing is copied. ERROR_OUT_OF_MEMORY.
MUST_USE Error buffer_reset_for(Buffer *buffer, size_t size);

// Makes room for `size` more bytes. `out_bytes` may be written up to there; buffer_grow takes them
// into the buffer. Pointers into the buffer are gone after it.
MUST_USE Error buffer_reserve_more(Buffer *buffer, size_t size, uint8_t **out_bytes);
MUST_USE static inline Error buffer_reserve(Buffer *buffer, size_t size, uint8_t **out_bytes)
{
    if (!buffer->bytes || size > buffer->capacity - buffer->end) {
        return buffer_reserve_more(buffer, size, out_bytes);
    }
    *out_bytes = buffer->bytes + buffer->end;
    return ERROR_NONE;
}

static inline void buffer_grow(Buffer *buffer, size_t size)
{
    buffer->end += size;
}

MUST_USE Error buffer_append(Buffer *buffer, Slice bytes);

// Writes before the used bytes, into the gap. The gap must have been left by buffer_reset.
void buffer_prepend(Buffer *buffer, Slice bytes);

// Cuts the buffer back to `size` used bytes.
static inline void buffer_truncate(Buffer *buffer, size_t size)
{
    if (buffer->start + size < buffer->end) buffer->end = buffer->start + size;
}

static inline size_t buffer_size(const Buffer *buffer)
{
    return buffer->end - buffer->start;
}

static inline Slice buffer_slice(const Buffer *buffer)
{
    if (!buffer->bytes) return (Slice){0}; // NULL + 0 is undefined in C
    return (Slice){buffer->bytes + buffer->start, buffer->end - buffer->start};
}
