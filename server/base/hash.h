// Hashes: a string in a key is stored as its hash of 16 bytes, because LMDB's keys have at most
// 511. The record is compared on read, so a collision never counts as a match.

#pragma once

#include "base/slice.h"

enum { HASH_BYTES = 16 };

typedef struct Hash {
    uint8_t bytes[HASH_BYTES];
} Hash;

static const Hash HASH_ZERO = {{0}};

// Returns the XXH3 hash in canonical byte order.
Hash hash_bytes(Slice bytes);

// Returns the XXH3 hash with 64 bits. The same bytes have another hash with another seed.
uint64_t hash_64(Slice bytes, uint64_t seed);

// Hashes two slices with their lengths, so that ("ab", "c") and ("a", "bc") differ.
Hash hash_pair(Slice first, Slice second);
