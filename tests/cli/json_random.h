// Random messages of any type, for round trips.

#pragma once

#include <protobuf-c/protobuf-c.h>

#include "os/random.h"

enum { MESSAGE_TYPES_MAX = 256 };

// Returns a message with random fields. The caller frees it with protobuf_c_message_free_unpacked.
ProtobufCMessage *message_random(Random *random, const ProtobufCMessageDescriptor *type);

// Finds all message types that calls of the service send or return, directly or nested. Returns
// their number.
size_t message_types(const ProtobufCMessageDescriptor *out_types[MESSAGE_TYPES_MAX]);
