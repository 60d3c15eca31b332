// ULIDs: 128 bits as 26 digits of 5 bits, the first digit holding only the top 3.

#include "base/ulid.h"

static const char DIGITS[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

// A digit's value plus one; 0 for a byte that is no digit.
static const uint8_t VALUES_PLUS_ONE[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
    ['G'] = 17, ['H'] = 18, ['J'] = 19, ['K'] = 20, ['M'] = 21, ['N'] = 22, ['P'] = 23, ['Q'] = 24,
    ['R'] = 25, ['S'] = 26, ['T'] = 27, ['V'] = 28, ['W'] = 29, ['X'] = 30, ['Y'] = 31, ['Z'] = 32,
};

static uint64_t big_endian_read(const uint8_t bytes[8])
{
    uint64_t value = 0;
    for (size_t i = 0; i < 8; i++)
        value = value << 8 | bytes[i];
    return value;
}

static void big_endian_write(uint64_t value, uint8_t out_bytes[8])
{
    for (size_t i = 0; i < 8; i++)
        out_bytes[i] = (uint8_t)(value >> (56 - 8 * i));
}

bool ulid_parse(Slice text, Ulid *out)
{
    if (text.size != ULID_TEXT_BYTES || text.bytes[0] > '7') return false;

    uint64_t high = 0;
    uint64_t low = 0;
    for (size_t i = 0; i < ULID_TEXT_BYTES; i++) {
        uint64_t value = VALUES_PLUS_ONE[text.bytes[i]];
        if (value == 0) return false;
        high = high << 5 | low >> 59;
        low = low << 5 | (value - 1);
    }
    big_endian_write(high, out->bytes);
    big_endian_write(low, out->bytes + 8);
    return true;
}

void ulid_format(Ulid id, char out_text[ULID_TEXT_BYTES + 1])
{
    uint64_t high = big_endian_read(id.bytes);
    uint64_t low = big_endian_read(id.bytes + 8);
    for (size_t i = ULID_TEXT_BYTES; i-- > 0;) {
        out_text[i] = DIGITS[low & 31];
        low = low >> 5 | high << 59;
        high >>= 5;
    }
    out_text[ULID_TEXT_BYTES] = '\0';
}

int64_t ulid_time_ms(Ulid id)
{
    return (int64_t)(big_endian_read(id.bytes) >> 16);
}

Ulid ulid_make(int64_t time_ms, const uint8_t low_bytes[10])
{
    uint8_t time_bytes[8];
    big_endian_write((uint64_t)time_ms, time_bytes);
    Ulid id;
    memcpy(id.bytes, time_bytes + 2, 6);
    memcpy(id.bytes + 6, low_bytes, 10);
    return id;
}

Ulid ulid_next(Ulid id)
{
    if (ulid_equal(id, ULID_MAX)) return id;
    for (size_t i = ULID_BYTES; i-- > 0;) {
        id.bytes[i]++;
        if (id.bytes[i] != 0) break;
    }
    return id;
}

Ulid ulid_previous(Ulid id)
{
    if (ulid_is_zero(id)) return id;
    for (size_t i = ULID_BYTES; i-- > 0;) {
        id.bytes[i]--;
        if (id.bytes[i] != 255) break;
    }
    return id;
}
