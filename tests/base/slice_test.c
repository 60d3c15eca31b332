// Slices: the ends, and the NULL slice.

#include "base/slice.h"

#include "harness.h"

TEST(slice_of_null_is_empty)
{
    CHECK_EQ(slice_of(NULL).size, 0);
    CHECK(slice_equal(slice_of(NULL), slice_of("")));
}

TEST(slice_equal_compares_size_and_bytes)
{
    CHECK(slice_equal(slice_of("abc"), slice("abcd", 3)));
    CHECK(!slice_equal(slice_of("abc"), slice_of("abcd")));
    CHECK(!slice_equal(slice_of("abc"), slice_of("abd")));
    CHECK(!slice_equal(slice("a\0b", 3), slice("a\0c", 3)));
}

TEST(slice_starts_with_its_prefixes_only)
{
    CHECK(slice_starts_with(slice_of("abc"), slice_of("")));
    CHECK(slice_starts_with(slice_of("abc"), slice_of(NULL)));
    CHECK(slice_starts_with(slice_of("abc"), slice_of("abc")));
    CHECK(!slice_starts_with(slice_of("abc"), slice_of("abcd")));
    CHECK(!slice_starts_with(slice_of("abc"), slice_of("b")));
    CHECK(!slice_starts_with(slice_of(NULL), slice_of("a")));
}

TEST(slice_skip_stops_at_the_end)
{
    CHECK(slice_equal(slice_skip(slice_of("abc"), 0), slice_of("abc")));
    CHECK(slice_equal(slice_skip(slice_of("abc"), 1), slice_of("bc")));
    CHECK_EQ(slice_skip(slice_of("abc"), 3).size, 0);
    CHECK_EQ(slice_skip(slice_of("abc"), SIZE_MAX).size, 0);
    CHECK_EQ(slice_skip(slice_of(NULL), 0).size, 0);
    CHECK_EQ(slice_skip(slice_of(NULL), 5).size, 0);
}
