// Fuzzes the unpacking of replies into an arena: a byte for the type, then the message. What
// protobuf-c accepts must be accepted, as the same message, and what it refuses must be refused.

#include "unpack.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "rpc/dispatch.h"

enum { IS_REQUEST = 0x80 }; // the type is a request's; the other bits are a method's number

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition, const char *what)
{
    if (condition) return;
    fprintf(stderr, "unpack_fuzz: %s\n", what);
    abort();
}

static void require_same(const ProtobufCMessage *ours, const ProtobufCMessage *theirs)
{
    size_t size = protobuf_c_message_get_packed_size(theirs);
    require(protobuf_c_message_get_packed_size(ours) == size, "it is packed to another size");
    uint8_t *bytes = malloc(2 * size + 1);
    require(bytes != NULL, "out of memory");
    protobuf_c_message_pack(ours, bytes);
    protobuf_c_message_pack(theirs, bytes + size);
    require(memcmp(bytes, bytes + size, size) == 0, "it is packed to other bytes");
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    const Method *method = &METHODS[data[0] % IS_REQUEST % METHOD_COUNT];
    const ProtobufCMessageDescriptor *type =
        data[0] & IS_REQUEST ? method->request : method->response;
    Arena arena;
    arena_init(&arena, SIZE_MAX);
    ProtobufCMessage *ours = unpack(type, &arena.allocator, slice(data + 1, size - 1));
    ProtobufCMessage *theirs = protobuf_c_message_unpack(type, NULL, size - 1, data + 1);
    require((ours != NULL) == (theirs != NULL), "it is accepted by one of the two only");
    if (ours) require_same(ours, theirs);
    if (theirs) protobuf_c_message_free_unpacked(theirs, NULL);
    arena_free(&arena);
    return 0;
}
