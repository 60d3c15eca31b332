// Hashes: XXH3 with 128 and 64 bits. They are stored in keys and checksums, so the algorithm, the
// seed (of keys: 0) and the layout of a pair must not change without a new format version.

#include "base/hash.h"

#include <stdlib.h>

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

void hash_format(Hash hash, char out[HASH_HEX_BYTES + 1])
{
    static const char DIGITS[] = "0123456789abcdef";
    for (size_t i = 0; i < HASH_BYTES; i++) {
        out[2 * i] = DIGITS[hash.bytes[i] >> 4];
        out[2 * i + 1] = DIGITS[hash.bytes[i] & 15];
    }
    out[HASH_HEX_BYTES] = '\0';
}

struct HashStream {
    XXH3_state_t state;
};

HashStream *hash_stream_open(void)
{
    HashStream *stream = aligned_alloc(_Alignof(HashStream), sizeof(HashStream));
    if (stream) XXH3_128bits_reset(&stream->state);
    return stream;
}

void hash_stream_add(HashStream *stream, Slice bytes)
{
    if (bytes.size > 0) XXH3_128bits_update(&stream->state, bytes.bytes, bytes.size);
}

Hash hash_stream_result(const HashStream *stream)
{
    return hash_of(XXH3_128bits_digest(&stream->state));
}

void hash_stream_close(HashStream *stream)
{
    free(stream);
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
