// Base64.

#include "text/base64.h"

static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(Slice bytes, char *out)
{
    for (size_t i = 0; i < bytes.size; i += 3) {
        size_t size = bytes.size - i < 3 ? bytes.size - i : 3;
        uint32_t group = 0;
        for (size_t j = 0; j < 3; j++)
            group = group << 8 | (j < size ? bytes.bytes[i + j] : 0);
        for (size_t j = 0; j < 4; j++)
            *out++ = j <= size ? DIGITS[group >> (18 - 6 * j) & 63] : '=';
    }
}

// Returns the value of a digit, -1 for another byte.
static int digit_value(uint8_t byte, Base64Form form)
{
    if (byte >= 'A' && byte <= 'Z') return byte - 'A';
    if (byte >= 'a' && byte <= 'z') return byte - 'a' + 26;
    if (byte >= '0' && byte <= '9') return byte - '0' + 52;
    if (byte == '+' || (byte == '-' && form == BASE64_LENIENT)) return 62;
    if (byte == '/' || (byte == '_' && form == BASE64_LENIENT)) return 63;
    return -1;
}

size_t base64_decode(Slice text, Base64Form form, void *out)
{
    uint8_t *bytes = out;
    size_t size = text.size, padding = 0, count = 0;
    while (padding < 2 && size > 0 && text.bytes[size - 1] == '=') {
        size--;
        padding++;
    }
    bool is_padded = (size + padding) % 4 == 0;
    if (size % 4 == 1 || (!is_padded && (padding > 0 || form == BASE64_CANONICAL))) return SIZE_MAX;

    uint32_t group = 0; // the last digits; only the low bits are used
    for (size_t i = 0; i < size; i++) {
        int digit = digit_value(text.bytes[i], form);
        if (digit < 0) return SIZE_MAX;
        group = group << 6 | (uint32_t)digit;
        if (i % 4 > 0) bytes[count++] = (uint8_t)(group >> (6 - 2 * (i % 4)));
    }
    uint32_t unused = size % 4 == 2 ? group & 15 : size % 4 == 3 ? group & 3 : 0;
    return unused && form == BASE64_CANONICAL ? SIZE_MAX : count;
}
