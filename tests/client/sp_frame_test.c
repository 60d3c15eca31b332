// Frames as a client receives them.

#include "sp_frame.h"

#include <string.h>

#include "base/error.h"
#include "harness.h"

enum { BODY_BYTES = 5 * 1024 * 1024 + 7, PIECE_BYTES = 100 * 1024 };

static void feed(SpReader *reader, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        size_t room;
        uint8_t *place = sp_reader_room(reader, &room);
        if (room > size) room = size;
        memcpy(place, bytes, room);
        sp_reader_took(reader, room);
        bytes += room;
        size -= room;
        uint32_t id;
        Buffer body;
        const char *why;
        if (size > 0) CHECK_EQ((int)sp_reader_next(reader, &id, &body, &why), (int)SP_AGAIN);
    }
}

TEST(a_large_body_gets_memory_of_its_length_once)
{
    static SpReader reader;
    static uint8_t piece[PIECE_BYTES];
    uint8_t header[SP_HEADER_BYTES];
    sp_frame_write(SP_ID_BYTES + BODY_BYTES, header);
    sp_id_write(SP_ID_LAST | 1, header + SP_FRAME_HEADER_BYTES);
    reader.body = (Buffer){.bytes = NULL};
    CHECK_EQ(buffer_append(&reader.body, slice(piece, sizeof(piece))), ERROR_NONE); // kept memory
    feed(&reader, header, sizeof(header));
    uint32_t id;
    Buffer body;
    const char *why;
    CHECK_EQ((int)sp_reader_next(&reader, &id, &body, &why), (int)SP_AGAIN);
    const uint8_t *memory = reader.body.bytes;
    CHECK_EQ(reader.body.capacity, BODY_BYTES);
    for (size_t left = BODY_BYTES; left > 0;) {
        size_t size = left < PIECE_BYTES ? left : PIECE_BYTES;
        memset(piece, (int)(left & 0xFF), size);
        feed(&reader, piece, size);
        left -= size;
    }
    CHECK_EQ((int)sp_reader_next(&reader, &id, &body, &why), (int)SP_DONE);
    CHECK(body.bytes == memory);
    CHECK_EQ(buffer_size(&body), BODY_BYTES);
    CHECK_EQ(id, 0x80000001);
    buffer_free(&body);
    sp_reader_free(&reader);
}
