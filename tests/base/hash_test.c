// Hashes: XXH3's own vectors, pinned because they are stored in keys.

#include "base/hash.h"

#include <stdio.h>
#include <string.h>

#include "harness.h"

static const char *hex_of(Hash hash)
{
    static char text[2 * HASH_BYTES + 1];
    for (size_t i = 0; i < HASH_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", hash.bytes[i]);
    return text;
}

static bool hash_equal(Hash a, Hash b)
{
    return memcmp(a.bytes, b.bytes, HASH_BYTES) == 0;
}

TEST(hash_bytes_are_those_of_xxh128sum)
{
    CHECK_STR(hex_of(hash_bytes((Slice){0})), "99aa06d3014798d86001c324468d497f");
    CHECK_STR(hex_of(hash_bytes(slice_of("a"))), "a96faf705af16834e6c632b61e964e1f");
    CHECK_STR(hex_of(hash_bytes(slice_of("/home/user/project"))),
              "c0aa9ae4344ee6014976d35a443dc1ba");

    char long_text[1000];
    memset(long_text, 'x', sizeof long_text);
    CHECK_STR(hex_of(hash_bytes(slice(long_text, sizeof long_text))),
              "50a1af5a5f2dcf01c0a4877b962cba82");
}

// printf '\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\1abc' | xxh128sum
TEST(hash_pair_is_the_hash_of_both_lengths_and_both_contents)
{
    CHECK_STR(hex_of(hash_pair(slice_of("ab"), slice_of("c"))), "8315fd9b3aa104a01888114b1ab68d33");
    static const char FRAMED[] = "\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\1abc";
    Hash flat = hash_bytes(slice(FRAMED, sizeof FRAMED - 1));
    CHECK(hash_equal(hash_pair(slice_of("ab"), slice_of("c")), flat));
}

TEST(hash_pair_tells_where_the_first_ends)
{
    Hash split = hash_pair(slice_of("ab"), slice_of("c"));
    CHECK(!hash_equal(split, hash_pair(slice_of("a"), slice_of("bc"))));
    CHECK(!hash_equal(split, hash_pair(slice_of("abc"), slice_of(""))));
    CHECK(!hash_equal(split, hash_pair(slice_of(""), slice_of("abc"))));
    CHECK(!hash_equal(split, hash_pair(slice_of("c"), slice_of("ab"))));
    CHECK(!hash_equal(split, hash_bytes(slice_of("abc"))));
}

TEST(hash_pair_takes_empty_slices_and_long_ones)
{
    CHECK(hash_equal(hash_pair((Slice){0}, (Slice){0}), hash_pair(slice_of(""), slice_of(""))));
    static uint8_t bytes[100000];
    memset(bytes, 'y', sizeof bytes);
    Hash one = hash_pair(slice(bytes, 50000), slice(bytes, 50000));
    CHECK(hash_equal(one, hash_pair(slice(bytes, 50000), slice(bytes + 1, 50000))));
    CHECK(!hash_equal(one, hash_pair(slice(bytes, 50001), slice(bytes, 49999))));
}

TEST(a_hash_of_pieces_is_that_of_the_whole)
{
    static uint8_t bytes[5000];
    char expected[HASH_HEX_BYTES + 1], got[HASH_HEX_BYTES + 1];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7);
    for (size_t piece = 1; piece <= sizeof bytes; piece = piece * 3 + 1) {
        HashStream *stream = hash_stream_open();
        CHECK(stream != NULL);
        hash_stream_add(stream, (Slice){NULL, 0});
        for (size_t at = 0; at < sizeof bytes; at += piece) {
            size_t size = sizeof bytes - at < piece ? sizeof bytes - at : piece;
            hash_stream_add(stream, slice(bytes + at, size));
        }
        hash_format(hash_stream_result(stream), got);
        hash_format(hash_bytes(slice(bytes, sizeof bytes)), expected);
        CHECK_STR(got, expected);
        CHECK_STR(got, hex_of(hash_bytes(slice(bytes, sizeof bytes))));
        hash_stream_close(stream);
    }
}
