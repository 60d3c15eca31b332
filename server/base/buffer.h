// Buffers: bytes that grow at the end, with a gap in front.
//
// A reply is built front to back in one buffer, which its caller owns and reuses. The envelope is
// written into the gap once the body's length is known, so the body need not be moved.

#pragma once

#include "base/error.h"
#include "base/slice.h"

typedef struct Buffer {
    uint8_t *bytes; // owned
    size_t start;   // of the used bytes; the bytes before it are the gap
    size_t end;     // of the used bytes
    size_t capacity;
} Buffer;

void buffer_free(Buffer *buffer);

// Empties the buffer and leaves a gap of `gap` bytes. Keeps up to BUFFER_KEEP_BYTES_MAX of memory.
// ERROR_OUT_OF_MEMORY.
MUST_USE Error buffer_reset(Buffer *buffer, size_t gap);

// The same, but keeps all memory, for an owner who frees the buffer himself.
MUST_USE Error buffer_empty(Buffer *buffer, size_t gap);

// Empties the buffer and makes room for `size` bytes, without a gap. Up to BUFFER_KEEP_BYTES_MAX it
// keeps and doubles its memory as usual; above, it gets exactly `size` bytes if it has fewer, and
// nothing is copied. ERROR_OUT_OF_MEMORY.
MUST_USE Error buffer_reset_for(Buffer *buffer, size_t size);

// Makes room for `size` more bytes at `*out_bytes`. The caller writes them, and buffer_grow appends
// as many as were written. Pointers into the buffer become invalid. ERROR_OUT_OF_MEMORY.
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

// Appends a copy of `bytes`. ERROR_OUT_OF_MEMORY.
MUST_USE Error buffer_append(Buffer *buffer, Slice bytes);

// Writes into the gap, right before the used bytes. The gap must be large enough.
void buffer_prepend(Buffer *buffer, Slice bytes);

// Cuts the used bytes to the first `size`.
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
