// The wire format: what was written is read back, and malformed bytes are told from the end.

#include "wire/wire.h"

#include <string.h>

#include "harness.h"
#include "os/random.h"

enum { NUMBER_MAX = (1 << 29) - 1 };

// Whether wire_next refuses these bytes and moves nothing.
static bool is_malformed(const void *bytes, size_t size)
{
    Slice rest = slice(bytes, size);
    WireField field = {.number = 12345};
    bool is_read = wire_next(&rest, &field);
    return !is_read && rest.bytes == bytes && rest.size == size && field.number == 12345;
}

#define CHECK_MALFORMED(literal) CHECK(is_malformed(literal, sizeof literal - 1))

static uint64_t value_of(const void *bytes, size_t size)
{
    Slice rest = slice(bytes, size);
    WireField field;
    CHECK(wire_next(&rest, &field));
    CHECK_EQ(rest.size, 0);
    CHECK_EQ(field.whole.size, size);
    return field.value;
}

TEST(the_number_of_a_field_is_known_before_its_content_is_there)
{
    CHECK_EQ(wire_next_number(slice("\xf2\x01\x05", 3)), 30);
    CHECK_EQ(wire_next_number(slice("\xf2\x01", 2)), 30);
    CHECK_EQ(wire_next_number(slice("\xf2", 1)), 0);
    CHECK_EQ(wire_next_number(slice_of("")), 0);
    CHECK_EQ(wire_next_number(slice("\x02", 1)), 0); // there is no field 0
}

TEST(wire_next_at_the_end_is_false_with_nothing_left)
{
    Slice rest = slice_of("");
    WireField field;
    CHECK(!wire_next(&rest, &field));
    CHECK_EQ(rest.size, 0);
    rest = (Slice){0};
    CHECK(!wire_next(&rest, &field));
}

TEST(wire_next_reads_each_type)
{
    static const char MESSAGE[] = "\x08\x96\x01"
                                  "\x12\x03"
                                  "abc"
                                  "\x1D\x01\x02\x03\x84"
                                  "\x21\x01\x02\x03\x04\x05\x06\x07\x88";
    Slice rest = slice(MESSAGE, sizeof MESSAGE - 1);
    WireField field;

    CHECK(wire_next(&rest, &field));
    CHECK_EQ(field.number, 1);
    CHECK_EQ(field.type, WIRE_VARINT);
    CHECK_EQ(field.value, 150);
    CHECK(slice_equal(field.whole, slice(MESSAGE, 3)));

    CHECK(wire_next(&rest, &field));
    CHECK_EQ(field.number, 2);
    CHECK_EQ(field.type, WIRE_BYTES);
    CHECK(slice_equal(field.bytes, slice_of("abc")));
    CHECK(slice_equal(field.whole, slice_of("\x12\x03"
                                            "abc")));

    CHECK(wire_next(&rest, &field));
    CHECK_EQ(field.number, 3);
    CHECK_EQ(field.type, WIRE_FIXED32);
    CHECK(field.value == 0x84030201);

    CHECK(wire_next(&rest, &field));
    CHECK_EQ(field.number, 4);
    CHECK_EQ(field.type, WIRE_FIXED64);
    CHECK(field.value == UINT64_C(0x8807060504030201));

    CHECK(!wire_next(&rest, &field));
    CHECK_EQ(rest.size, 0);
}

TEST(wire_next_refuses_field_number_zero)
{
    CHECK_MALFORMED("\x00\x01");
    CHECK_MALFORMED("\x02\x00");
    CHECK_MALFORMED("\x80\x00\x01");
}

TEST(wire_next_takes_the_largest_field_number_and_refuses_one_more)
{
    // (2^29 - 1) << 3 is five bytes; 2^29 << 3 needs a 33rd bit.
    static const char LARGEST[] = "\xF8\xFF\xFF\xFF\x0F\x2A";
    Slice rest = slice(LARGEST, sizeof LARGEST - 1);
    WireField field;
    CHECK(wire_next(&rest, &field));
    CHECK_EQ(field.number, NUMBER_MAX);
    CHECK_EQ(field.value, 42);
    CHECK_MALFORMED("\x80\x80\x80\x80\x10\x2A");
    CHECK_MALFORMED("\xF8\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01\x2A");
}

TEST(wire_next_refuses_tags_over_five_bytes)
{
    CHECK_EQ(value_of("\x88\x80\x80\x80\x00\x2A", 6), 42);
    CHECK_MALFORMED("\x88\x80\x80\x80\x80\x00\x2A");
}

TEST(wire_next_refuses_groups_and_unknown_types)
{
    CHECK_MALFORMED("\x0B\x0C");
    CHECK_MALFORMED("\x0C");
    CHECK_MALFORMED("\x0E\x00");
    CHECK_MALFORMED("\x0F\x00");
}

TEST(wire_next_takes_varints_of_ten_bytes_and_no_more)
{
    CHECK(value_of("\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 11) == UINT64_MAX);
    CHECK_EQ(value_of("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 11), 0);
    CHECK_MALFORMED("\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02"); // a 65th bit
    CHECK_MALFORMED("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00");
    CHECK_MALFORMED("\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01");
}

TEST(wire_next_refuses_fields_that_are_cut_off)
{
    static const char FIELDS[][16] = {
        "\x08\x96\x96\x01",           "\x12\x03\x61\x62\x63",
        "\x1D\x01\x02\x03\x04",       "\x21\x01\x02\x03\x04\x05\x06\x07\x08",
        "\xFA\xFF\xFF\xFF\x0F\x02ok",
    };
    for (size_t i = 0; i < sizeof FIELDS / sizeof FIELDS[0]; i++) {
        size_t whole_size = strlen(FIELDS[i]);
        CHECK(!is_malformed(FIELDS[i], whole_size));
        for (size_t size = 1; size < whole_size; size++)
            CHECK(is_malformed(FIELDS[i], size));
    }
}

TEST(wire_next_refuses_lengths_past_the_end)
{
    CHECK_MALFORMED("\x12\x04"
                    "abc");
    CHECK_MALFORMED("\x12\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"
                    "abc");
    CHECK_MALFORMED("\x12\xFF\xFF\xFF\xFF\x0F");
}

TEST(wire_next_reads_an_empty_content)
{
    Slice rest = slice("\x12\x00", 2);
    WireField field;
    CHECK(wire_next(&rest, &field));
    CHECK_EQ(field.bytes.size, 0);
    CHECK_EQ(field.whole.size, 2);
    CHECK_EQ(rest.size, 0);
}

TEST(wire_find_takes_the_last_one)
{
    static const char MESSAGE[] = "\x08\x01\x10\x02\x08\x03";
    Slice message = slice(MESSAGE, sizeof MESSAGE - 1);
    WireField field;
    CHECK(wire_find(message, 1, &field));
    CHECK_EQ(field.value, 3);
    CHECK(wire_find(message, 2, &field));
    CHECK_EQ(field.value, 2);
}

TEST(wire_find_without_a_match_leaves_its_output_alone)
{
    WireField field = {.number = 77};
    CHECK(!wire_find(slice("\x08\x01", 2), 3, &field));
    CHECK(!wire_find((Slice){0}, 3, &field));
    CHECK_EQ(field.number, 77);
}

TEST(wire_find_refuses_malformed_bytes_even_after_a_match)
{
    WireField field = {.number = 77};
    CHECK(!wire_find(slice("\x08\x01\x00", 3), 1, &field));
    CHECK(!wire_find(slice("\x08\x01\x12\x05", 4), 1, &field));
    CHECK_EQ(field.number, 77);
}

TEST(wire_varint_sizes_change_every_seven_bits)
{
    uint8_t out[WIRE_VARINT_BYTES_MAX];
    CHECK_EQ(wire_varint_size(0), 1);
    CHECK_EQ(wire_put_varint(out, 0), 1);
    for (size_t bits = 1; bits <= 64; bits++) {
        uint64_t largest = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
        uint64_t smallest = UINT64_C(1) << (bits - 1);
        CHECK_EQ(wire_varint_size(largest), (bits + 6) / 7);
        CHECK_EQ(wire_varint_size(smallest), (bits + 6) / 7);
        CHECK_EQ(wire_put_varint(out, largest), (bits + 6) / 7);
        CHECK_EQ(wire_put_varint(out, smallest), (bits + 6) / 7);
    }
}

TEST(wire_puts_are_the_documented_bytes)
{
    uint8_t out[32];
    CHECK_EQ(wire_put_varint_field(out, 1, 150), 3);
    CHECK(memcmp(out, "\x08\x96\x01", 3) == 0);
    CHECK_EQ(wire_put_varint_field(out, 1, 0), 2);
    CHECK(memcmp(out, "\x08\x00", 2) == 0);
    CHECK_EQ(wire_put_bytes_field(out, 2, slice_of("testing")), 9);
    CHECK(memcmp(out, "\x12\x07testing", 9) == 0);
    CHECK_EQ(wire_put_bytes_field(out, 2, (Slice){0}), 2);
    CHECK(memcmp(out, "\x12\x00", 2) == 0);
    CHECK_EQ(wire_put_tag(out, NUMBER_MAX, WIRE_FIXED32), WIRE_TAG_BYTES_MAX);
    CHECK(memcmp(out, "\xFD\xFF\xFF\xFF\x0F", 5) == 0);
}

TEST(wire_bytes_field_size_is_what_put_writes)
{
    static const uint32_t NUMBERS[] = {1, 15, 16, 2047, 2048, NUMBER_MAX};
    static const size_t SIZES[] = {0, 1, 127, 128, 16383, 16384};
    static uint8_t content[16384];
    static uint8_t out[16384 + 16];
    for (size_t i = 0; i < sizeof NUMBERS / sizeof NUMBERS[0]; i++) {
        for (size_t k = 0; k < sizeof SIZES / sizeof SIZES[0]; k++) {
            size_t size = wire_put_bytes_field(out, NUMBERS[i], slice(content, SIZES[k]));
            CHECK_EQ(wire_bytes_field_size(NUMBERS[i], SIZES[k]), size);
        }
    }
}

TEST(wire_appends_equal_puts)
{
    CLEANUP(buffer_free) Buffer buffer = {0};
    uint8_t out[64];
    size_t size = wire_put_bytes_field(out, 3, slice_of("content"));
    CHECK_EQ(wire_append_bytes(&buffer, 3, slice_of("content")), ERROR_NONE);
    CHECK(slice_equal(buffer_slice(&buffer), slice(out, size)));

    CHECK_EQ(buffer_reset(&buffer, 0), ERROR_NONE);
    CHECK_EQ(wire_append_header(&buffer, 3, 7), ERROR_NONE);
    CHECK_EQ(buffer_append(&buffer, slice_of("content")), ERROR_NONE);
    CHECK(slice_equal(buffer_slice(&buffer), slice(out, size)));

    CHECK_EQ(buffer_reset(&buffer, 0), ERROR_NONE);
    size = wire_put_varint_field(out, NUMBER_MAX, UINT64_MAX);
    CHECK_EQ(wire_append_varint(&buffer, NUMBER_MAX, UINT64_MAX), ERROR_NONE);
    CHECK(slice_equal(buffer_slice(&buffer), slice(out, size)));
}

TEST(wire_append_of_too_much_changes_nothing)
{
    CLEANUP(buffer_free) Buffer buffer = {0};
    CHECK_EQ(wire_append_varint(&buffer, 1, 1), ERROR_NONE);
    CHECK_EQ(wire_append_bytes(&buffer, 1, slice("", SIZE_MAX)), ERROR_OUT_OF_MEMORY);
    CHECK_EQ(wire_append_bytes(&buffer, 1, slice("", SIZE_MAX - 20)), ERROR_OUT_OF_MEMORY);
    CHECK_EQ(buffer_size(&buffer), 2);
}

TEST(wire_random_messages_round_trip)
{
    enum { FIELD_COUNT = 2000 };
    static WireField written[FIELD_COUNT];
    static uint8_t content[300];
    CLEANUP(buffer_free) Buffer buffer = {0};
    Random random;
    random_seed(&random, test_seed());
    random_fill(&random, content, sizeof content);
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        WireField *field = &written[i];
        field->number = (uint32_t)(1 + random_below(&random, 1u << random_below(&random, 29)));
        field->type = random_below(&random, 2) ? WIRE_BYTES : WIRE_VARINT;
        if (field->type == WIRE_BYTES) {
            field->bytes = slice(content, (size_t)random_below(&random, sizeof content));
            CHECK_EQ(wire_append_bytes(&buffer, field->number, field->bytes), ERROR_NONE);
        } else {
            field->value = random_next(&random) >> random_below(&random, 64);
            CHECK_EQ(wire_append_varint(&buffer, field->number, field->value), ERROR_NONE);
        }
    }

    Slice rest = buffer_slice(&buffer);
    size_t whole_size = 0;
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        WireField field;
        CHECK(wire_next(&rest, &field));
        CHECK_EQ(field.number, written[i].number);
        CHECK_EQ(field.type, written[i].type);
        CHECK(field.value == written[i].value);
        CHECK(slice_equal(field.bytes, written[i].bytes));
        whole_size += field.whole.size;
    }
    CHECK_EQ(rest.size, 0);
    CHECK_EQ(whole_size, buffer_size(&buffer));
}

// Any bytes at all: nothing is read past them (AddressSanitizer looks), and progress is made.
TEST(wire_random_bytes_never_lead_out_of_bounds)
{
    Random random;
    random_seed(&random, test_seed());
    for (size_t i = 0; i < test_scaled(200000); i++) {
        uint8_t bytes[24];
        size_t size = (size_t)random_below(&random, sizeof bytes + 1);
        random_fill(&random, bytes + sizeof bytes - size, size);
        Slice rest = slice(bytes + sizeof bytes - size, size);
        WireField field;
        size_t left = rest.size;
        while (wire_next(&rest, &field)) {
            CHECK(rest.size < left);
            CHECK_EQ(field.whole.size, left - rest.size);
            CHECK(field.bytes.size <= field.whole.size);
            left = rest.size;
        }
        CHECK_EQ(rest.size, left);
    }
}
