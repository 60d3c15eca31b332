// Field rules: check what every field of every request must satisfy, by its type and its name:
// lengths, counts, UTF-8, JSON, times, known enum values.
//
// They are checked here for all requests, so that no handler can forget one.

#pragma once

#include <protobuf-c/protobuf-c.h>

#include "base/error.h"
#include "base/slice.h"
#include "report/error_detail.h"

typedef struct FieldRule {
    uint32_t bytes_max; // of a string; 0: bounded only by the request
    uint32_t count_max; // of a repeated field; 0: the same
    bool is_json;
    bool is_time;     // 0 … TIME_MS_MAX
    bool is_duration; // not negative
} FieldRule;

// Returns the rules of a message's fields, parallel to descriptor->fields. The descriptor must be
// that of a request or of a message that a request can contain. May be called on any thread.
const FieldRule *field_rules_of(const ProtobufCMessageDescriptor *descriptor);

// Returns the name of a limit, for example "NewSession.slug", of those that Describe lists, in a
// fixed order. After the last, `*out_max` is 0.
const char *field_rules_limit(size_t index, uint64_t *out_max);

// Checks an encoded message, and the messages in it, against the rules of their fields. Ignores
// unknown fields, and sets `out_has_unknown` if there is one at any level. Returns
// ERROR_INVALID_UTF8, ERROR_INVALID_JSON, ERROR_TOO_LONG, ERROR_INVALID_ARGUMENT; `detail` names
// the field by its path.
MUST_USE Error field_rules_check(const ProtobufCMessageDescriptor *descriptor, Slice bytes,
                                 ErrorDetail *detail, bool *out_has_unknown);

// Drops the unknown fields of a decoded message, at every level.
void field_rules_drop_unknown(ProtobufCMessage *message);

// Returns whether this message itself, not those in it, had unknown fields that were dropped.
bool field_rules_had_unknown(const ProtobufCMessage *message);
