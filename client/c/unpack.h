// Unpacks replies into an arena, faster than protobuf-c does.

#pragma once

#include <protobuf-c/protobuf-c.h>

#include "base/slice.h"

enum { UNPACK_DEPTH_MAX = 32 }; // of nested messages; protobuf-c unpacks deeper ones

// Returns the same message as protobuf_c_message_unpack, faster if `allocator` belongs to an arena.
// Returns NULL if the bytes are malformed or there is no memory.
ProtobufCMessage *unpack(const ProtobufCMessageDescriptor *type, ProtobufCAllocator *allocator,
                         Slice bytes);
