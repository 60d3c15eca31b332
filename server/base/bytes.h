// Bytes: integers as big-endian bytes, whose order is that of the integers.

#pragma once

#include <stdint.h>
#include <string.h>

static inline uint64_t bytes_get_u64(const uint8_t bytes[8])
{
    uint64_t value;
    memcpy(&value, bytes, sizeof(value));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

static inline void bytes_put_u64(uint8_t out[8], uint64_t value)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    memcpy(out, &value, sizeof(value));
}

// Compares 16 bytes like memcmp, as two integers, because scans do it for each row.
static inline int bytes_compare_16(const uint8_t a[16], const uint8_t b[16])
{
    uint64_t x = bytes_get_u64(a), y = bytes_get_u64(b);
    if (x == y) {
        x = bytes_get_u64(a + 8);
        y = bytes_get_u64(b + 8);
    }
    return (x > y) - (x < y);
}
