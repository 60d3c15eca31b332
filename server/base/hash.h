// Hashes: a string in a key is stored as its hash of 16 bytes, because LMDB's keys have at most
// 511. The record is compared on read, so a collision never counts as a match.

#pragma once

#include "base/slice.h"

enum { HASH_BYTES = 16 };

typedef struct Hash {
    uint8_t bytes[HASH_BYTES];
} Hash;

static const Hash HASH_ZERO = {{0}};

// The hash in hex, as xxh128sum prints it.
enum { HASH_HEX_BYTES = 2 * HASH_BYTES };
void hash_format(Hash hash, char out[HASH_HEX_BYTES + 1]);

// Returns the XXH3 hash in canonical byte order.
Hash hash_bytes(Slice bytes);

// Returns the XXH3 hash with 64 bits. The same bytes have another hash with another seed.
uint64_t hash_64(Slice bytes, uint64_t seed);

// Hashes bytes that come in pieces, such as those of a file. The result is that of hash_bytes over
// all of them.
typedef struct HashStream HashStream;

// The caller ends it with hash_stream_close. NULL: out of memory.
HashStream *hash_stream_open(void);
void hash_stream_add(HashStream *stream, Slice bytes);
Hash hash_stream_result(const HashStream *stream);
void hash_stream_close(HashStream *stream); // NULL is allowed

// Hashes two slices with their lengths, so that ("ab", "c") and ("a", "bc") differ.
Hash hash_pair(Slice first, Slice second);
