// Buffers: appending, the gap in front, and what is kept.

#include "base/buffer.h"

#include <string.h>

#include "base/limits.h"
#include "harness.h"
#include "os/random.h"

static bool buffer_is(const Buffer *buffer, const char *text)
{
    return slice_equal(buffer_slice(buffer), slice_of(text));
}

TEST(buffer_that_was_never_used_is_empty)
{
    CLEANUP(buffer_free) Buffer buffer = {0};
    CHECK_EQ(buffer_size(&buffer), 0);
    CHECK_EQ(buffer_slice(&buffer).size, 0);
}

TEST(buffer_appends_in_order)
{
    CLEANUP(buffer_free) Buffer buffer = {0};
    CHECK_EQ(buffer_append(&buffer, slice_of("one ")), ERROR_NONE);
    CHECK_EQ(buffer_append(&buffer, (Slice){0}), ERROR_NONE);
    CHECK_EQ(buffer_append(&buffer, slice_of("two")), ERROR_NONE);
    CHECK(buffer_is(&buffer, "one two"));
}

TEST(buffer_prepend_fills_the_gap_without_moving_the_body)
{
    CLEANUP(buffer_free) Buffer buffer = {0};
    CHECK_EQ(buffer_reset(&buffer, 4), ERROR_NONE);
    CHECK_EQ(buffer_append(&buffer, slice_of("body")), ERROR_NONE);
    const uint8_t *body = buffer_slice(&buffer).bytes;
    buffer_prepend(&buffer, slice_of("b-"));
    buffer_prepend(&buffer, slice_of("a-"));
    buffer_prepend(&buffer, (Slice){0});
    CHECK(buffer_is(&buffer, "a-b-body"));
    CHECK(buffer_slice(&buffer).bytes + 4 == body);
    CHECK_EQ(buffer.start, 0);
}

TEST(buffer_reset_empties_and_keeps_the_memory)
{
    CLEANUP(buffer_free) Buffer buffer = {0};
    CHECK_EQ(buffer_append(&buffer, slice_of("old")), ERROR_NONE);
    uint8_t *bytes = buffer.bytes;
    CHECK_EQ(buffer_reset(&buffer, 100), ERROR_NONE);
    CHECK(buffer.bytes == bytes);
    CHECK_EQ(buffer_size(&buffer), 0);
    CHECK_EQ(buffer.start, 100);
}

TEST(buffer_reset_for_much_gets_exactly_that)
{
    enum { MUCH = BUFFER_KEEP_BYTES_MAX + 1 };
    CLEANUP(buffer_free) Buffer buffer = {.bytes = NULL};
    CHECK_EQ(buffer_append(&buffer, slice_of("abc")), ERROR_NONE);
    CHECK_EQ(buffer_reset_for(&buffer, MUCH + 100), ERROR_NONE);
    CHECK_EQ(buffer.capacity, MUCH + 100);
    CHECK_EQ(buffer_size(&buffer), 0);
    const uint8_t *memory = buffer.bytes;
    CHECK_EQ(buffer_reset_for(&buffer, MUCH), ERROR_NONE); // there is room already
    CHECK(buffer.bytes == memory);
    CHECK_EQ(buffer_reset_for(&buffer, 10), ERROR_NONE);
    CHECK(buffer.capacity >= 10 && buffer.capacity <= BUFFER_KEEP_BYTES_MAX);
    CHECK_EQ(buffer_reset_for(&buffer, SIZE_MAX), ERROR_OUT_OF_MEMORY);
    CHECK_EQ(buffer_reset_for(&buffer, 0), ERROR_NONE);
    CHECK(buffer.bytes != NULL);
}

TEST(buffer_reset_leaves_a_gap_larger_than_the_memory)
{
    CLEANUP(buffer_free) Buffer buffer = {0};
    CHECK_EQ(buffer_reset(&buffer, 100000), ERROR_NONE);
    CHECK_EQ(buffer.start, 100000);
    CHECK(buffer.capacity >= 100000);
    buffer_prepend(&buffer, slice_of("x"));
    CHECK(buffer_is(&buffer, "x"));
}

TEST(buffer_reset_keeps_memory_at_the_limit_and_frees_it_past_it)
{
    CLEANUP(buffer_free) Buffer buffer = {0};
    uint8_t *room;
    CHECK_EQ(buffer_reserve(&buffer, BUFFER_KEEP_BYTES_MAX, &room), ERROR_NONE);
    CHECK_EQ(buffer.capacity, BUFFER_KEEP_BYTES_MAX);
    CHECK_EQ(buffer_reset(&buffer, 0), ERROR_NONE);
    CHECK_EQ(buffer.capacity, BUFFER_KEEP_BYTES_MAX);

    CHECK_EQ(buffer_reserve(&buffer, BUFFER_KEEP_BYTES_MAX + 1, &room), ERROR_NONE);
    CHECK(buffer.capacity > BUFFER_KEEP_BYTES_MAX);
    CHECK_EQ(buffer_reset(&buffer, 16), ERROR_NONE);
    CHECK(buffer.capacity <= 4096);
}

TEST(buffer_empty_keeps_memory_past_the_limit)
{
    CLEANUP(buffer_free) Buffer buffer = {0};
    uint8_t *room;
    CHECK_EQ(buffer_reserve(&buffer, BUFFER_KEEP_BYTES_MAX + 1, &room), ERROR_NONE);
    buffer_grow(&buffer, BUFFER_KEEP_BYTES_MAX + 1);
    uint8_t *before = buffer.bytes;
    CHECK_EQ(buffer_empty(&buffer, 64), ERROR_NONE);
    CHECK(buffer.bytes == before);
    CHECK(buffer.capacity > BUFFER_KEEP_BYTES_MAX);
    CHECK_EQ(buffer_size(&buffer), 0);
    CHECK_EQ(buffer.start, 64);
}

TEST(buffer_grows_by_doubling_from_4096)
{
    CLEANUP(buffer_free) Buffer buffer = {0};
    uint8_t *room;
    CHECK_EQ(buffer_reserve(&buffer, 1, &room), ERROR_NONE);
    CHECK_EQ(buffer.capacity, 4096);
    CHECK_EQ(buffer_reserve(&buffer, 4096, &room), ERROR_NONE);
    CHECK_EQ(buffer.capacity, 4096);
    CHECK_EQ(buffer_reserve(&buffer, 4097, &room), ERROR_NONE);
    CHECK_EQ(buffer.capacity, 8192);
    CHECK_EQ(buffer_reserve(&buffer, 40000, &room), ERROR_NONE);
    CHECK_EQ(buffer.capacity, 65536);
}

TEST(buffer_reserve_takes_nothing_until_grow)
{
    CLEANUP(buffer_free) Buffer buffer = {0};
    uint8_t *room;
    CHECK_EQ(buffer_reserve(&buffer, 3, &room), ERROR_NONE);
    memcpy(room, "abc", 3);
    CHECK_EQ(buffer_size(&buffer), 0);
    buffer_grow(&buffer, 2);
    CHECK(buffer_is(&buffer, "ab"));
}

TEST(buffer_reserve_of_nothing_gives_a_pointer)
{
    CLEANUP(buffer_free) Buffer buffer = {0};
    uint8_t *room = NULL;
    CHECK_EQ(buffer_reserve(&buffer, 0, &room), ERROR_NONE);
    CHECK(room != NULL);
}

TEST(buffer_sizes_that_overflow_are_refused_and_change_nothing)
{
    CLEANUP(buffer_free) Buffer buffer = {0};
    CHECK_EQ(buffer_append(&buffer, slice_of("kept")), ERROR_NONE);
    uint8_t *room = NULL;
    CHECK_EQ(buffer_reserve(&buffer, SIZE_MAX, &room), ERROR_OUT_OF_MEMORY);
    CHECK_EQ(buffer_reserve(&buffer, SIZE_MAX - 3, &room), ERROR_OUT_OF_MEMORY);
    CHECK_EQ(buffer_reserve(&buffer, PTRDIFF_MAX - 3, &room), ERROR_OUT_OF_MEMORY);
    CHECK(room == NULL);
    CHECK(buffer_is(&buffer, "kept"));
    CHECK_EQ(buffer_reset(&buffer, SIZE_MAX), ERROR_OUT_OF_MEMORY);
    CHECK_EQ(buffer_size(&buffer), 0);
}

TEST(buffer_truncate_cuts_and_never_grows)
{
    CLEANUP(buffer_free) Buffer buffer = {0};
    CHECK_EQ(buffer_reset(&buffer, 8), ERROR_NONE);
    CHECK_EQ(buffer_append(&buffer, slice_of("abcdef")), ERROR_NONE);
    buffer_truncate(&buffer, 7);
    CHECK(buffer_is(&buffer, "abcdef"));
    buffer_truncate(&buffer, 2);
    CHECK(buffer_is(&buffer, "ab"));
    buffer_truncate(&buffer, 0);
    CHECK_EQ(buffer_size(&buffer), 0);
}

TEST(buffer_is_empty_and_usable_after_free)
{
    CLEANUP(buffer_free) Buffer buffer = {0};
    CHECK_EQ(buffer_append(&buffer, slice_of("x")), ERROR_NONE);
    buffer_free(&buffer);
    CHECK_EQ(buffer_size(&buffer), 0);
    CHECK_EQ(buffer_append(&buffer, slice_of("y")), ERROR_NONE);
    CHECK(buffer_is(&buffer, "y"));
}

TEST(buffer_random_appends_equal_one_flat_copy)
{
    enum { MODEL_BYTES = 200000 };
    static uint8_t source[MODEL_BYTES];
    Random random;
    random_seed(&random, test_seed());
    random_fill(&random, source, sizeof source);

    CLEANUP(buffer_free) Buffer buffer = {0};
    CHECK_EQ(buffer_reset(&buffer, 64), ERROR_NONE);
    for (size_t at = 0; at < MODEL_BYTES;) {
        size_t size = (size_t)random_below(&random, 3000);
        if (size > MODEL_BYTES - at) size = MODEL_BYTES - at;
        CHECK_EQ(buffer_append(&buffer, slice(source + at, size)), ERROR_NONE);
        at += size;
    }
    CHECK(slice_equal(buffer_slice(&buffer), slice(source, MODEL_BYTES)));
}
