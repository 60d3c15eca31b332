// ULIDs: 16 bytes in keys, 26 characters of Crockford's base 32 in text. store/ids issues them.

#pragma once

#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/slice.h"

enum { ULID_BYTES = 16, ULID_TEXT_BYTES = 26 };

typedef struct Ulid {
    uint8_t
        bytes[ULID_BYTES]; // 48 bits of milliseconds, then 80 others; big-endian, so sorted by time
} Ulid;

static const Ulid ULID_ZERO = {{0}};
static const Ulid ULID_MAX = {
    {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}};

static inline int ulid_compare(Ulid a, Ulid b)
{
    return bytes_compare_16(a.bytes, b.bytes);
}

static inline bool ulid_equal(Ulid a, Ulid b)
{
    return memcmp(a.bytes, b.bytes, ULID_BYTES) == 0;
}

static inline bool ulid_is_zero(Ulid id)
{
    return ulid_equal(id, ULID_ZERO);
}

static inline Slice ulid_slice(const Ulid *id)
{
    return (Slice){id->bytes, ULID_BYTES};
}

// Reads canonical text: exactly 26 upper-case characters without I, L, O and U, the first at most
// '7'. Returns false for anything else, and leaves `out` as it was.
bool ulid_parse(Slice text, Ulid *out);

// Writes 26 characters and a NUL.
void ulid_format(Ulid id, char out_text[ULID_TEXT_BYTES + 1]);

int64_t ulid_time_ms(Ulid id);

// Returns the ID with this time and these low bits (10 bytes). `time_ms` is cut to 48 bits.
Ulid ulid_make(int64_t time_ms, const uint8_t low_bytes[10]);

// Returns the next ID in order; ULID_MAX for ULID_MAX.
Ulid ulid_next(Ulid id);
// Returns the previous ID in order; ULID_ZERO for ULID_ZERO.
Ulid ulid_previous(Ulid id);
