// The SP wire format of a stream: the hello, the header of a frame, and the IDs before a message.
//
//     hello    00 'S' 'P' 00 | u16 protocol | 00 00        each side sends one first
//     frame    01 | u64 payload size | payload             on a Unix socket; TCP leaves out the 01
//     payload  u32 ID … | message                          of REQ and REP
//     payload  message                                     of PUB and SUB
//
// All integers are big-endian. A payload of REQ or REP has the ID of each hop that a reply takes
// back; only the last ID, which the requester chose, has its top bit set.

#pragma once

#include <endian.h>

#include "base/slice.h"

typedef enum SpProtocol {
    SP_PROTOCOL_PUB = 0x20,
    SP_PROTOCOL_SUB = 0x21,
    SP_PROTOCOL_REQ = 0x30,
    SP_PROTOCOL_REP = 0x31,
} SpProtocol;

enum {
    SP_HELLO_BYTES = 8,
    SP_FRAME_HEADER_BYTES = 9,
    SP_ID_BYTES = 4,
    SP_ROUTE_IDS_MAX = 8, // more IDs before a request than this are refused
    SP_FRAME_TYPE = 1,
};

#define SP_ID_LAST UINT32_C(0x80000000) // the bit that marks the last ID

// Writes the hello of a socket of `protocol`.
void sp_hello_write(SpProtocol protocol, uint8_t out[SP_HELLO_BYTES]);

// Returns whether `hello` is exactly the hello of a socket of `protocol`.
bool sp_hello_is(const uint8_t hello[SP_HELLO_BYTES], SpProtocol protocol);

// Returns the size of the IDs before the message in the payload of a request. 0: the payload ends
// before the last ID, so it is no request. SIZE_MAX: there are more than SP_ROUTE_IDS_MAX.
size_t sp_route_bytes(Slice payload);

static inline void sp_frame_write(uint64_t payload_bytes, uint8_t out[SP_FRAME_HEADER_BYTES])
{
    uint64_t size = htobe64(payload_bytes);
    out[0] = SP_FRAME_TYPE;
    memcpy(out + 1, &size, sizeof(size));
}

// Returns false if the bytes are not the header of a frame. Does not limit the payload's size.
static inline bool sp_frame_read(const uint8_t header[SP_FRAME_HEADER_BYTES],
                                 uint64_t *out_payload_bytes)
{
    uint64_t size;
    if (header[0] != SP_FRAME_TYPE) return false;
    memcpy(&size, header + 1, sizeof(size));
    *out_payload_bytes = be64toh(size);
    return true;
}

static inline void sp_id_write(uint32_t id, uint8_t out[SP_ID_BYTES])
{
    id = htobe32(id);
    memcpy(out, &id, sizeof(id));
}

static inline uint32_t sp_id_read(const uint8_t bytes[SP_ID_BYTES])
{
    uint32_t id;
    memcpy(&id, bytes, sizeof(id));
    return be32toh(id);
}
