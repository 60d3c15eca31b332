// Checksums.

#include "kv/checksum.h"

#include "base/hash.h"

// The value's hash is the seed of the key's, because XXH3 is fastest over long input without a
// seed.
uint64_t checksum_of_row(Slice key, Slice value)
{
    return hash_64(key, hash_64(value, 0));
}
