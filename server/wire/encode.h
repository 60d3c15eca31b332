// Encoding protobuf messages: the same bytes as protobuf_c_message_pack, for less.
//
// protobuf-c writes a message inside another one first and its length after it, so the content is
// moved once for each level that it lies deep, and the length of each string is counted anew. Here
// a message is written from its end: what is inside is written before its length is.

#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdint.h>

// Writes `message` so that it ends before `end`, and returns where it begins; NULL if that would be
// before `begin`. protobuf_c_message_get_packed_size says how much room it takes. Of the types of
// protobuf it knows those that the contract has: strings, bytes, messages, enums, bools, and
// integers as plain varints.
uint8_t *encode_before(uint8_t *begin, uint8_t *end, const ProtobufCMessage *message);
