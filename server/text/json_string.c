// JSON strings. One function, `escape_read`, knows what an escape means.

#include "text/json_string.h"

#include "text/utf8.h"

enum { ESCAPE_BYTES = 6 }; // of \uXXXX

JsonFault json_string_end(Slice text, size_t at, size_t *out_end)
{
    for (size_t i = at + 1; i < text.size; i++) {
        uint8_t byte = text.bytes[i];
        *out_end = i;
        if (byte == '"') {
            *out_end = i + 1;
            return JSON_FAULT_NONE;
        }
        if (byte < 0x20) return byte == '\n' ? JSON_FAULT_LINE_END : JSON_FAULT_CONTROL;
        if (byte == '\\') i++;
    }
    *out_end = at;
    return JSON_FAULT_NO_END;
}

size_t json_string_skip(Slice text, size_t at)
{
    for (size_t from = at + 1; from < text.size;) {
        const uint8_t *quote = memchr(text.bytes + from, '"', text.size - from);
        if (!quote) break;
        size_t end = (size_t)(quote - text.bytes), escapes = 0;
        while (end - escapes > at + 1 && text.bytes[end - escapes - 1] == '\\')
            escapes++;
        if (escapes % 2 == 0) return end + 1;
        from = end + 1;
    }
    return text.size;
}

// Four hexadecimal digits.
static bool hex_read(Slice text, size_t at, uint32_t *out)
{
    if (at > text.size || text.size - at < 4) return false;
    uint32_t value = 0;
    for (size_t i = 0; i < 4; i++) {
        uint8_t byte = text.bytes[at + i];
        uint32_t digit = byte >= '0' && byte <= '9'   ? byte - (uint32_t)'0'
                         : byte >= 'a' && byte <= 'f' ? byte - (uint32_t)'a' + 10
                         : byte >= 'A' && byte <= 'F' ? byte - (uint32_t)'A' + 10
                                                      : 16;
        if (digit == 16) return false;
        value = value << 4 | digit;
    }
    *out = value;
    return true;
}

static bool is_surrogate(uint32_t value)
{
    return value >= 0xD800 && value <= 0xDFFF;
}

// Reads the escape whose backslash is at `at`: its meaning and its size. On a fault the meaning is
// U+FFFD, and the size is what to skip.
static JsonFault escape_read(Slice text, size_t at, uint32_t *out_value, size_t *out_bytes)
{
    static const char LETTERS[] = "\"\\/bfnrt", MEANT[] = "\"\\/\b\f\n\r\t";
    uint8_t letter = at + 1 < text.size ? text.bytes[at + 1] : 0;
    uint32_t value = 0, low = 0;
    *out_value = UTF8_REPLACEMENT;
    *out_bytes = 2;
    if (letter != 'u') {
        const char *found = letter ? strchr(LETTERS, letter) : NULL;
        if (!found) return JSON_FAULT_ESCAPE;
        *out_value = (uint8_t)MEANT[found - LETTERS];
        return JSON_FAULT_NONE;
    }
    if (!hex_read(text, at + 2, &value)) return JSON_FAULT_HEX;

    *out_bytes = ESCAPE_BYTES;
    if (value == 0) return JSON_FAULT_NUL;
    if (is_surrogate(value)) {
        size_t next = at + ESCAPE_BYTES;
        bool is_pair = value < 0xDC00 && text.size - next >= ESCAPE_BYTES &&
                       text.bytes[next] == '\\' && text.bytes[next + 1] == 'u' &&
                       hex_read(text, next + 2, &low) && low >= 0xDC00 && low <= 0xDFFF;
        if (!is_pair) return JSON_FAULT_SURROGATE;
        value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
        *out_bytes = 2 * ESCAPE_BYTES;
    }
    *out_value = value;
    return JSON_FAULT_NONE;
}

// Returns how many bytes precede the first backslash.
static size_t plain_bytes(Slice text)
{
    const uint8_t *backslash = text.size > 0 ? memchr(text.bytes, '\\', text.size) : NULL;
    return backslash ? (size_t)(backslash - text.bytes) : text.size;
}

JsonFault json_string_decode(Slice inside, char *out, size_t *out_bytes)
{
    size_t size = 0;
    for (size_t at = 0; at < inside.size;) {
        Slice rest = slice_skip(inside, at);
        size_t plain = plain_bytes(rest), taken;
        memcpy(out + size, rest.bytes, plain);
        size += plain;
        at += plain;
        if (at == inside.size) break;
        uint32_t value;
        JsonFault fault = escape_read(inside, at, &value, &taken);
        if (fault) {
            *out_bytes = at;
            return fault;
        }
        size += utf8_encode(value, out + size);
        at += taken;
    }
    *out_bytes = size;
    return JSON_FAULT_NONE;
}

size_t json_string_mend(Slice inside, char *out)
{
    size_t size = 0;
    for (size_t at = 0; at < inside.size;) {
        Slice rest = slice_skip(inside, at);
        size_t plain = plain_bytes(rest), taken;
        size += utf8_mend(slice(rest.bytes, plain), out + size);
        at += plain;
        if (at == inside.size) break;
        uint32_t value;
        (void)escape_read(inside, at, &value, &taken);
        size += utf8_encode(value, out + size);
        at += taken;
    }
    return size;
}
