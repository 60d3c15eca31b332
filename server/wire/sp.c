// The parts of the SP wire format that are not on the path of every message's bytes.

#include "wire/sp.h"

void sp_hello_write(SpProtocol protocol, uint8_t out[SP_HELLO_BYTES])
{
    const uint8_t hello[SP_HELLO_BYTES] = {0, 'S', 'P', 0, 0, (uint8_t)protocol, 0, 0};
    memcpy(out, hello, SP_HELLO_BYTES);
}

bool sp_hello_is(const uint8_t hello[SP_HELLO_BYTES], SpProtocol protocol)
{
    uint8_t wanted[SP_HELLO_BYTES];
    sp_hello_write(protocol, wanted);
    return memcmp(hello, wanted, SP_HELLO_BYTES) == 0;
}

size_t sp_route_bytes(Slice payload)
{
    for (size_t size = SP_ID_BYTES; size <= SP_ROUTE_IDS_MAX * SP_ID_BYTES; size += SP_ID_BYTES) {
        if (payload.size < size) return 0;
        if (sp_id_read(payload.bytes + size - SP_ID_BYTES) & SP_ID_LAST) return size;
    }
    return SIZE_MAX;
}
