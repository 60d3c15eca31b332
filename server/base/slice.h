// Slices: a pointer to bytes that somebody else owns, with their size.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct Slice {
    const uint8_t *bytes;
    size_t size;
} Slice;

static inline Slice slice(const void *bytes, size_t size)
{
    return (Slice){bytes, size};
}

// Borrows the characters of `text`, without its NUL. NULL is the empty slice.
static inline Slice slice_of(const char *text)
{
    return (Slice){(const uint8_t *)text, text ? strlen(text) : 0};
}

static inline bool slice_equal(Slice a, Slice b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.bytes, b.bytes, a.size) == 0);
}

static inline bool slice_starts_with(Slice whole, Slice prefix)
{
    return whole.size >= prefix.size &&
           (prefix.size == 0 || memcmp(whole.bytes, prefix.bytes, prefix.size) == 0);
}

// Returns the bytes after the first `count`; the empty slice if there are no more.
static inline Slice slice_skip(Slice whole, size_t count)
{
    if (whole.size == 0) return whole; // its bytes may be NULL, and NULL + 0 is undefined in C
    if (count >= whole.size) return (Slice){whole.bytes + whole.size, 0};
    return (Slice){whole.bytes + count, whole.size - count};
}
