// What the reader and the writer of JSON know alike of a message's fields.

#pragma once

#include <protobuf-c/protobuf-c.h>

// The bytes of one value of a type as a message holds it: the stride of a repeated field.
size_t json_value_bytes(ProtobufCType type);
