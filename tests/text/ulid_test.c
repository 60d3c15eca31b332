// ULIDs: text, order, neighbours.

#include "text/ulid.h"

#include <string.h>

#include "harness.h"
#include "os/random.h"

static const char *text_of(Ulid id)
{
    static char text[ULID_TEXT_BYTES + 1];
    ulid_format(id, text);
    return text;
}

static Ulid id_random(Random *random)
{
    Ulid id;
    random_fill(random, id.bytes, sizeof id.bytes);
    return id;
}

// Divides by 32, digit by digit: independent of the real one.
static void naive_format(Ulid id, char out_text[ULID_TEXT_BYTES + 1])
{
    for (size_t i = ULID_TEXT_BYTES; i-- > 0;) {
        unsigned rest = 0;
        for (size_t k = 0; k < ULID_BYTES; k++) {
            unsigned digit = rest * 256 + id.bytes[k];
            id.bytes[k] = (uint8_t)(digit / 32);
            rest = digit % 32;
        }
        out_text[i] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[rest];
    }
    out_text[ULID_TEXT_BYTES] = '\0';
}

TEST(ulid_text_of_the_ends)
{
    CHECK_STR(text_of(ULID_ZERO), "00000000000000000000000000");
    CHECK_STR(text_of(ULID_MAX), "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
}

// The example of the specification, https://github.com/ulid/spec.
TEST(ulid_text_of_the_specification)
{
    Ulid id;
    CHECK(ulid_parse(slice_of("01ARZ3NDEKTSV4RRFFQ69G5FAV"), &id));
    CHECK_EQ(ulid_time_ms(id), INT64_C(1469922850259));
    CHECK_STR(text_of(id), "01ARZ3NDEKTSV4RRFFQ69G5FAV");
}

TEST(ulid_text_round_trips_and_equals_the_naive_one)
{
    Random random;
    random_seed(&random, test_seed());
    for (int i = 0; i < 20000; i++) {
        Ulid id = id_random(&random);
        char naive[ULID_TEXT_BYTES + 1];
        naive_format(id, naive);
        CHECK_STR(text_of(id), naive);
        Ulid again;
        CHECK(ulid_parse(slice_of(naive), &again));
        CHECK(ulid_equal(id, again));
    }
}

TEST(ulid_order_of_bytes_is_order_of_text)
{
    Random random;
    random_seed(&random, test_seed());
    for (int i = 0; i < 20000; i++) {
        Ulid a = id_random(&random);
        Ulid b = id_random(&random);
        if (i % 2) memcpy(b.bytes, a.bytes, 15);
        char a_text[ULID_TEXT_BYTES + 1];
        char b_text[ULID_TEXT_BYTES + 1];
        ulid_format(a, a_text);
        ulid_format(b, b_text);
        int bytes_order = ulid_compare(a, b);
        int text_order = strcmp(a_text, b_text);
        CHECK_EQ(bytes_order > 0, text_order > 0);
        CHECK_EQ(bytes_order < 0, text_order < 0);
    }
}

TEST(ulid_order_is_that_of_the_first_byte_that_differs)
{
    for (size_t i = 0; i < ULID_BYTES; i++) {
        Ulid less = {{0}}, more = {{0}};
        memset(less.bytes + i, 0xFF, ULID_BYTES - i);
        less.bytes[i] = 0x7F;
        more.bytes[i] = 0x80;
        CHECK(ulid_compare(less, more) < 0);
        CHECK(ulid_compare(more, less) > 0);
        CHECK(!ulid_equal(less, more));
        CHECK_EQ(ulid_compare(less, less), 0);
        CHECK(ulid_equal(more, more));
    }
}

TEST(ulid_parse_takes_exactly_the_32_digits_at_every_place)
{
    for (size_t place = 0; place < ULID_TEXT_BYTES; place++) {
        for (int byte = 0; byte < 256; byte++) {
            char text[] = "00000000000000000000000000";
            text[place] = (char)byte;
            bool is_digit = byte != 0 && strchr("0123456789ABCDEFGHJKMNPQRSTVWXYZ", byte) != NULL;
            bool is_allowed = is_digit && (place > 0 || byte <= '7');
            Ulid id;
            CHECK_EQ(ulid_parse(slice(text, ULID_TEXT_BYTES), &id), is_allowed);
        }
    }
}

TEST(ulid_parse_takes_exactly_26_bytes_and_leaves_its_output_alone)
{
    Ulid id = ULID_MAX;
    CHECK(!ulid_parse(slice_of(NULL), &id));
    CHECK(!ulid_parse(slice_of("0000000000000000000000000"), &id));
    CHECK(!ulid_parse(slice_of("000000000000000000000000000"), &id));
    CHECK(!ulid_parse(slice_of("8ZZZZZZZZZZZZZZZZZZZZZZZZZ"), &id));
    CHECK(!ulid_parse(slice_of("0000000000000000000000000l"), &id));
    CHECK(ulid_equal(id, ULID_MAX));
}

TEST(ulid_make_puts_the_time_first)
{
    uint8_t low[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    Ulid id = ulid_make(0x0102030405FF, low);
    static const uint8_t EXPECTED[] = {1, 2, 3, 4, 5, 0xFF, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    CHECK(memcmp(id.bytes, EXPECTED, sizeof EXPECTED) == 0);
    CHECK_EQ(ulid_time_ms(id), 0x0102030405FF);
}

TEST(ulid_make_cuts_the_time_to_48_bits)
{
    uint8_t low[10] = {0};
    int64_t time_max = (INT64_C(1) << 48) - 1;
    CHECK_EQ(ulid_time_ms(ulid_make(time_max, low)), time_max);
    CHECK_EQ(ulid_time_ms(ulid_make(time_max + 1, low)), 0);
    CHECK_EQ(ulid_time_ms(ulid_make(-1, low)), time_max);
}

TEST(ulid_next_carries)
{
    Ulid id = ULID_ZERO;
    id.bytes[15] = 254;
    id = ulid_next(id);
    CHECK_EQ(id.bytes[15], 255);
    id = ulid_next(id);
    CHECK_EQ(id.bytes[15], 0);
    CHECK_EQ(id.bytes[14], 1);

    // Out of one millisecond into the next.
    uint8_t low[10];
    memset(low, 255, sizeof low);
    id = ulid_next(ulid_make(1000, low));
    memset(low, 0, sizeof low);
    CHECK(ulid_equal(id, ulid_make(1001, low)));
}

TEST(ulid_ends_have_no_neighbour)
{
    CHECK(ulid_equal(ulid_next(ULID_MAX), ULID_MAX));
    CHECK(ulid_equal(ulid_previous(ULID_ZERO), ULID_ZERO));
    CHECK(ulid_compare(ulid_previous(ULID_MAX), ULID_MAX) < 0);
    CHECK(ulid_compare(ulid_next(ULID_ZERO), ULID_ZERO) > 0);
}

TEST(ulid_next_and_previous_are_inverse_and_adjacent)
{
    Random random;
    random_seed(&random, test_seed());
    for (int i = 0; i < 20000; i++) {
        Ulid id = id_random(&random);
        size_t carried = (size_t)random_below(&random, ULID_BYTES);
        memset(id.bytes + ULID_BYTES - carried, i % 2 ? 255 : 0, carried);
        if (ulid_equal(id, ULID_MAX) || ulid_is_zero(id)) continue;
        CHECK(ulid_compare(ulid_next(id), id) > 0);
        CHECK(ulid_compare(ulid_previous(id), id) < 0);
        CHECK(ulid_equal(ulid_previous(ulid_next(id)), id));
        CHECK(ulid_equal(ulid_next(ulid_previous(id)), id));
    }
}
