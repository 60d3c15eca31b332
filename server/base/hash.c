// Hashes: XXH3 with 128 and 64 bits. They are stored in keys and checksums, so the algorithm, the
// seed (of keys: 0) and the layout of a pair must not change without a new format version.

#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

static Hash hash_of(XXH128_hash_t value)
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, value);
    Hash hash;
    _Static_assert(sizeof canonical.digest == sizeof hash.bytes, "128 bits");
    memcpy(hash.bytes, canonical.digest, sizeof hash.bytes);
    return hash;
}

Hash hash_bytes(Slice bytes)
{
    return hash_of(XXH3_128bits(bytes.bytes, bytes.size));
}

uint64_t hash_64(Slice bytes, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes.bytes, bytes.size, seed);
}

// Hashes both lengths (8 bytes each, big-endian), then both contents.
Hash hash_pair(Slice first, Slice second)
{
    uint8_t lengths[16];
    for (size_t i = 0; i < 8; i++) {
        lengths[i] = (uint8_t)((uint64_t)first.size >> (56 - 8 * i));
        lengths[8 + i] = (uint8_t)((uint64_t)second.size >> (56 - 8 * i));
    }
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    XXH3_128bits_update(&state, lengths, sizeof lengths);
    if (first.size > 0) XXH3_128bits_update(&state, first.bytes, first.size);
    if (second.size > 0) XXH3_128bits_update(&state, second.bytes, second.size);
    return hash_of(XXH3_128bits_digest(&state));
}
