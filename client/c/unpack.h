// Unpacking replies into an arena.

#pragma once

#include <protobuf-c/protobuf-c.h>

#include "base/slice.h"

enum { UNPACK_DEPTH_MAX = 32 }; // of messages within messages; what is deeper is protobuf-c's

// What protobuf_c_message_unpack does, and the same message, only faster if `allocator` is an
// arena's. NULL: it is malformed, or there is no memory.
ProtobufCMessage *unpack(const ProtobufCMessageDescriptor *type, ProtobufCAllocator *allocator,
                         Slice bytes);
