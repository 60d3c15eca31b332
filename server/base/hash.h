// Hashes: a string in a key is its 16-byte hash (LMDB's keys end at 511 bytes); the record is
// compared on read, so a collision is never taken for a match.

#pragma once

#include "base/slice.h"

enum { HASH_BYTES = 16 };

typedef struct Hash {
    uint8_t bytes[HASH_BYTES];
} Hash;

static const Hash HASH_ZERO = {{0}};

Hash hash_bytes(Slice bytes); // XXH3, 128 bits, canonical byte order

// Of two slices with their lengths, so that ("ab", "c") and ("a", "bc") differ.
Hash hash_pair(Slice first, Slice second);
