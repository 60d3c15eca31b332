// What both the reader and the writer of JSON know about fields of a message.

#pragma once

#include <protobuf-c/protobuf-c.h>

// Returns the size of one value of this type in a message: the stride of a repeated field.
size_t json_value_bytes(ProtobufCType type);
