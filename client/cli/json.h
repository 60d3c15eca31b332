// Messages as JSON and back, by protobuf-c's descriptors: what `--json` prints and what `tine call`
// and `tine import` read.
//
// Names are those of the .proto, enum values by their full name (by number if it is not known),
// 64-bit integers are numbers, bytes are base64. Numbers, bools and enums are always written, even
// zero; sub-messages and oneofs that are not set, empty strings, bytes and lists are left out.
//
// Text that would move a terminal's cursor or turn its direction (controls, direction marks) is
// written as \u escapes, so JSON is safe to look at as it is.

#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdio.h>

#include "base/error.h"
#include "base/slice.h"
#include "report/error_detail.h"

enum { JSON_TEXT_BYTES_MAX = 128 * 1024 * 1024 };

typedef enum JsonLayout {
    JSON_PRETTY, // over many lines, two spaces a level
    JSON_LINE,   // on one line, for streams
} JsonLayout;

// Writes one message, without a line's end. Needs no memory. What the file could not take is for
// ferror to say.
void json_write(FILE *out, const ProtobufCMessage *message, JsonLayout layout);

// Writes a text as a JSON string with its quotes. Bytes that are no UTF-8 become U+FFFD.
void json_write_text(FILE *out, Slice text);

// Writes bytes in base64 with quotes.
void json_write_bytes(FILE *out, Slice bytes);

// Reads one JSON object as a message of this type: the caller's, freed with
// protobuf_c_message_free_unpacked(…, NULL). Beyond what json_write writes it takes lowerCamelCase
// names, integers as decimal strings, enum values by number or without their prefix in any case
// ("user" for ROLE_USER), base64 of the URL alphabet and without padding, and null for what is not
// set.
//
// ERROR_INVALID_ARGUMENT: `detail` says at which line and column, in which field, and what was
// expected there. ERROR_TOO_LONG: more than JSON_TEXT_BYTES_MAX. ERROR_OUT_OF_MEMORY.
MUST_USE Error json_read(Slice text, const ProtobufCMessageDescriptor *type, ErrorDetail *detail,
                         ProtobufCMessage **out_message);
