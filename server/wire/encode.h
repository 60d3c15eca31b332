// Encodes protobuf messages into the same bytes as protobuf_c_message_pack, but faster.
//
// protobuf-c writes a nested message before it knows its length, so it moves the content once for
// each level of nesting and measures each string again. Here a message is written from its end:
// when the length is written, the content is already there.

#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdint.h>

// Writes `message` so that it ends at `end`. Returns where it begins, or NULL if it does not fit
// after `begin`; protobuf_c_message_get_packed_size returns the size that it needs. Supports only
// the types that the contract has: strings, bytes, messages, enums, bools, and integers as plain
// varints.
uint8_t *encode_before(uint8_t *begin, uint8_t *end, const ProtobufCMessage *message);
