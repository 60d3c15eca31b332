// ULIDs: 128 bits as 26 digits of 5 bits. The first digit holds only the top 3 bits.

#include "text/ulid.h"

#include "base/bytes.h"

static const char DIGITS[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

// The value of a digit plus one; 0 for a byte that is not a digit.
static const uint8_t VALUES_PLUS_ONE[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
    ['G'] = 17, ['H'] = 18, ['J'] = 19, ['K'] = 20, ['M'] = 21, ['N'] = 22, ['P'] = 23, ['Q'] = 24,
    ['R'] = 25, ['S'] = 26, ['T'] = 27, ['V'] = 28, ['W'] = 29, ['X'] = 30, ['Y'] = 31, ['Z'] = 32,
};

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
    bytes_put_u64(out->bytes, high);
    bytes_put_u64(out->bytes + 8, low);
    return true;
}

// Writes the lowest `count` digits of a number.
static inline void put_digits(uint64_t number, unsigned count, char *out)
{
    for (; count > 0; count--, number >>= 5)
        out[count - 1] = DIGITS[number & 31];
}

void ulid_format(Ulid id, char out_text[ULID_TEXT_BYTES + 1])
{
    uint64_t high = bytes_get_u64(id.bytes);
    uint64_t low = bytes_get_u64(id.bytes + 8);
    // Twelve digits are 60 bits; the remaining bits of the high half are the first two digits.
    put_digits(high >> 56, 2, out_text);
    put_digits(high << 4 | low >> 60, 12, out_text + 2);
    put_digits(low, 12, out_text + 14);
    out_text[ULID_TEXT_BYTES] = '\0';
}

int64_t ulid_time_ms(Ulid id)
{
    return (int64_t)(bytes_get_u64(id.bytes) >> 16);
}

Ulid ulid_make(int64_t time_ms, const uint8_t low_bytes[10])
{
    uint8_t time_bytes[8];
    bytes_put_u64(time_bytes, (uint64_t)time_ms);
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
