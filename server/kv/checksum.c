// Checksums: XXH3 with 64 bits. The algorithm must not change without a new format version.

#include "kv/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

// The value's hash is the seed of the key's: XXH3 is fastest over long input without a seed.
uint64_t checksum_of_row(Slice key, Slice value)
{
    return XXH3_64bits_withSeed(key.bytes, key.size, XXH3_64bits(value.bytes, value.size));
}
