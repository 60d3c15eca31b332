// The SP wire format. The bytes are written out here, so that both ends cannot change together.

#include "wire/sp.h"

#include "harness.h"

TEST(a_hello_names_its_protocol)
{
    static const struct {
        SpProtocol protocol;
        const char *bytes;
    } HELLOS[] = {
        {SP_PROTOCOL_PUB, "\0SP\0\0\x20\0\0"},
        {SP_PROTOCOL_SUB, "\0SP\0\0\x21\0\0"},
        {SP_PROTOCOL_REQ, "\0SP\0\0\x30\0\0"},
        {SP_PROTOCOL_REP, "\0SP\0\0\x31\0\0"},
    };
    for (size_t i = 0; i < sizeof(HELLOS) / sizeof(HELLOS[0]); i++) {
        uint8_t hello[SP_HELLO_BYTES];
        sp_hello_write(HELLOS[i].protocol, hello);
        CHECK_BYTES(slice(hello, sizeof(hello)), slice(HELLOS[i].bytes, 8));
        for (size_t k = 0; k < sizeof(HELLOS) / sizeof(HELLOS[0]); k++)
            CHECK_EQ(sp_hello_is(hello, HELLOS[k].protocol), i == k);
        hello[7] = 1;
        CHECK(!sp_hello_is(hello, HELLOS[i].protocol));
    }
}

TEST(a_frame_begins_with_its_type_and_a_big_endian_size)
{
    uint8_t header[SP_FRAME_HEADER_BYTES];
    sp_frame_write(UINT64_C(0x0102030405060708), header);
    CHECK_BYTES(slice(header, sizeof(header)), slice("\x01\x01\x02\x03\x04\x05\x06\x07\x08", 9));
    uint64_t size = 0;
    CHECK(sp_frame_read(header, &size));
    CHECK_EQ(size, UINT64_C(0x0102030405060708));
    header[0] = 2;
    size = 7;
    CHECK(!sp_frame_read(header, &size));
    CHECK_EQ(size, 7);
}

TEST(an_id_is_big_endian)
{
    uint8_t bytes[SP_ID_BYTES];
    sp_id_write(SP_ID_LAST | 0x010203, bytes);
    CHECK_BYTES(slice(bytes, sizeof(bytes)), slice("\x80\x01\x02\x03", 4));
    CHECK_EQ(sp_id_read(bytes), 0x80010203);
}

TEST(a_route_ends_with_the_first_id_whose_top_bit_is_set)
{
    CHECK_EQ(sp_route_bytes(slice("\x80\0\0\1", 4)), 4);
    CHECK_EQ(sp_route_bytes(slice("\0\0\0\1\x80\0\0\1\x80\0\0\1", 12)), 8);
}

TEST(a_payload_that_ends_before_its_last_id_has_no_route)
{
    CHECK_EQ(sp_route_bytes(slice_of("")), 0);
    CHECK_EQ(sp_route_bytes(slice("\x80\0\0", 3)), 0);
    CHECK_EQ(sp_route_bytes(slice("\0\0\0\1", 4)), 0);
    CHECK_EQ(sp_route_bytes(slice("\0\0\0\1\x80\0\0", 7)), 0);
}

TEST(a_route_has_at_most_eight_ids)
{
    uint8_t payload[9 * SP_ID_BYTES] = {0};
    CHECK_EQ(sp_route_bytes(slice(payload, sizeof(payload))), SIZE_MAX);
    payload[8 * SP_ID_BYTES] = 0x80;
    CHECK_EQ(sp_route_bytes(slice(payload, sizeof(payload))), SIZE_MAX);
    payload[7 * SP_ID_BYTES] = 0x80;
    CHECK_EQ(sp_route_bytes(slice(payload, sizeof(payload))), 8 * SP_ID_BYTES);
}
