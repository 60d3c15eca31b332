// Random messages of any type, for round trips.

#pragma once

#include <protobuf-c/protobuf-c.h>

#include "os/random.h"

enum { MESSAGE_TYPES_MAX = 256 };

// A message whose fields are set or not by chance: the caller's, freed with
// protobuf_c_message_free_unpacked.
ProtobufCMessage *message_random(Random *random, const ProtobufCMessageDescriptor *type);

// Every type of message that a call of the service sends or returns, or that one of those holds.
// Returns how many.
size_t message_types(const ProtobufCMessageDescriptor *out_types[MESSAGE_TYPES_MAX]);
