// A small reader by recursion: what is inside brackets is put together first, then its length.

#include "notation.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "wire/wire.h"

static void append(Buffer *out, const void *bytes, size_t size)
{
    Error error = buffer_append(out, slice(bytes, size));
    assert(!error);
}

static uint8_t digit(char letter)
{
    static const char DIGITS[] = "0123456789abcdef";
    const char *found = strchr(DIGITS, tolower((unsigned char)letter));
    assert(letter && found);
    return (uint8_t)(found - DIGITS);
}

static void append_inside(Buffer *out, Slice inside, char bracket)
{
    uint8_t length[WIRE_VARINT_BYTES_MAX];
    size_t size = sizeof(uint64_t);
    if (bracket == '(') {
        size = wire_put_varint(length, inside.size);
    } else {
        for (size_t i = 0; i < size; i++)
            length[i] = (uint8_t)((uint64_t)inside.size >> (56 - 8 * i));
    }
    append(out, length, size);
    append(out, inside.bytes, inside.size);
}

// Reads up to the end or a closing bracket, and returns where it stopped.
static const char *read_some(Buffer *out, const char *at)
{
    while (*at && *at != ')' && *at != ']') {
        if (*at == ' ') {
            at++;
        } else if (*at == '\'') {
            const char *end = strchr(at + 1, '\'');
            assert(end);
            append(out, at + 1, (size_t)(end - at - 1));
            at = end + 1;
        } else if (*at == '(' || *at == '[') {
            Buffer inside = {.bytes = NULL};
            const char *end = read_some(&inside, at + 1);
            assert(*end == (*at == '(' ? ')' : ']'));
            append_inside(out, buffer_slice(&inside), *at);
            buffer_free(&inside);
            at = end + 1;
        } else if (*at == '*') {
            char *end;
            unsigned long count = strtoul(at + 1, &end, 10);
            assert(count > 0 && buffer_size(out) > 0);
            uint8_t byte = out->bytes[out->end - 1];
            while (--count > 0)
                append(out, &byte, 1);
            at = end;
        } else {
            uint8_t byte = (uint8_t)(digit(at[0]) << 4 | digit(at[1]));
            append(out, &byte, 1);
            at += 2;
        }
    }
    return at;
}

void notation_read(Buffer *out, const char *notation)
{
    const char *end = read_some(out, notation);
    assert(*end == '\0');
}
