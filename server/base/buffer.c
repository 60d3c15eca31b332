// Buffers: one allocation that doubles, with a gap that buffer_prepend fills backwards.

#include "base/buffer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

enum { BUFFER_BYTES_MIN = 4096 };

static Error buffer_fit(Buffer *buffer, size_t needed);

void buffer_free(Buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (Buffer){0};
}

Error buffer_reset(Buffer *buffer, size_t gap)
{
    if (buffer->capacity > BUFFER_KEEP_BYTES_MAX) buffer_free(buffer);
    return buffer_empty(buffer, gap);
}

Error buffer_empty(Buffer *buffer, size_t gap)
{
    buffer->start = 0;
    buffer->end = 0;

    Error error = buffer_fit(buffer, gap);
    if (error) return error;

    buffer->start = gap;
    buffer->end = gap;
    return ERROR_NONE;
}

Error buffer_reset_for(Buffer *buffer, size_t size)
{
    if (size <= BUFFER_KEEP_BYTES_MAX) {
        Error error = buffer_reset(buffer, 0);
        return error ? error : buffer_fit(buffer, size);
    }
    if (buffer->capacity < size) {
        buffer_free(buffer);
        buffer->bytes = size <= PTRDIFF_MAX ? malloc(size) : NULL;
        if (!buffer->bytes) return ERROR_OUT_OF_MEMORY;
        buffer->capacity = size;
    }
    buffer->start = buffer->end = 0;
    return ERROR_NONE;
}

Error buffer_reserve_more(Buffer *buffer, size_t size, uint8_t **out_bytes)
{
    if (size > PTRDIFF_MAX - buffer->end) return ERROR_OUT_OF_MEMORY;
    Error error = buffer_fit(buffer, buffer->end + size);
    if (error) return error;

    *out_bytes = buffer->bytes + buffer->end;
    return ERROR_NONE;
}

// Makes `bytes` not NULL even if `needed` is 0, so that nobody computes with NULL.
static Error buffer_fit(Buffer *buffer, size_t needed)
{
    if (buffer->bytes && needed <= buffer->capacity) return ERROR_NONE;
    if (needed > PTRDIFF_MAX) return ERROR_OUT_OF_MEMORY;

    size_t capacity = buffer->capacity > BUFFER_BYTES_MIN ? buffer->capacity : BUFFER_BYTES_MIN;
    while (capacity < needed) {
        capacity = capacity <= PTRDIFF_MAX / 2 ? capacity * 2 : needed;
    }
    uint8_t *bytes = realloc(buffer->bytes, capacity);
    if (!bytes) return ERROR_OUT_OF_MEMORY;
    buffer->bytes = bytes;
    buffer->capacity = capacity;
    return ERROR_NONE;
}

Error buffer_append(Buffer *buffer, Slice bytes)
{
    uint8_t *room;
    Error error = buffer_reserve(buffer, bytes.size, &room);
    if (error) return error;

    if (bytes.size > 0) memcpy(room, bytes.bytes, bytes.size);
    buffer_grow(buffer, bytes.size);
    return ERROR_NONE;
}

void buffer_prepend(Buffer *buffer, Slice bytes)
{
    assert(bytes.size <= buffer->start);
    if (bytes.size == 0) return;
    buffer->start -= bytes.size;
    memcpy(buffer->bytes + buffer->start, bytes.bytes, bytes.size);
}
