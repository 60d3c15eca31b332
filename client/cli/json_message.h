// Converts messages to JSON and back, by their protobuf-c descriptors, for `--json`, `tine call`
// and `tine import`.
//
// Names are those of the .proto, enum values by their full name (by number if it is not known),
// 64-bit integers are numbers, bytes are base64. Numbers, bools and enums are always written, even
// zero; sub-messages and oneofs that are not set, empty strings, bytes and lists are left out.
//
// Strings are written by text/json_write.h, so JSON is safe to look at on a terminal.

#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdio.h>

#include "base/error.h"
#include "base/slice.h"
#include "json_reader.h"
#include "report/error_detail.h"

typedef enum JsonLayout {
    JSON_PRETTY, // over many lines, two spaces a level
    JSON_LINE,   // on one line, for streams
} JsonLayout;

// Writes one message, without a line feed. Allocates nothing. A failed write is left to ferror.
void json_message_write(FILE *out, const ProtobufCMessage *message, JsonLayout layout);

// Reads one JSON object as a message of this type. The caller frees it with
// protobuf_c_message_free_unpacked(…, NULL). Beyond what json_message_write writes it accepts
// lowerCamelCase names, integers as decimal strings, enum values by number or without their prefix
// in any case ("user" for ROLE_USER), base64 of the URL alphabet and without padding, and null for
// what is not set.
//
// ERROR_INVALID_ARGUMENT: `detail` says at which line and column, in which field, and what was
// expected there. ERROR_TOO_LONG: more than JSON_TEXT_BYTES_MAX. ERROR_OUT_OF_MEMORY.
MUST_USE Error json_message_read(Slice text, const ProtobufCMessageDescriptor *type,
                                 ErrorDetail *detail, ProtobufCMessage **out_message);

// The same for an object inside a text that the caller reads.
MUST_USE Error json_message_read_from(JsonReader *reader, const ProtobufCMessageDescriptor *type,
                                      ProtobufCMessage **out_message);
