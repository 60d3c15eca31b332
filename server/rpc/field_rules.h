// Field rules: what every field of every request must satisfy, by its type and its name.
//
// The rules that can be told from the contract are checked here for all calls at once, so that no
// handler can forget one: lengths, counts, UTF-8, JSON, times, known enum values.

#pragma once

#include <protobuf-c/protobuf-c.h>

#include "base/error.h"
#include "base/slice.h"
#include "report/error_detail.h"

typedef struct FieldRule {
    uint32_t bytes_max; // of a string; 0: bounded by the request alone
    uint32_t count_max; // of a repeated field; 0: likewise
    bool is_json;
    bool is_time;     // 0 … TIME_MS_MAX
    bool is_duration; // not negative
} FieldRule;

// The rules of a message's fields, parallel to descriptor->fields. The descriptor is that of a
// request or of a message that a request can hold. Safe from any thread.
const FieldRule *field_rules_of(const ProtobufCMessageDescriptor *descriptor);

// The limits that Describe names, in a fixed order: "NewSession.slug", … `out_max` is 0 past the
// end.
const char *field_rules_limit(size_t index, uint64_t *out_max);

// Checks the encoded message against the rules of its fields, and of the messages in it. Unknown
// fields are passed over. ERROR_INVALID_UTF8, ERROR_INVALID_JSON, ERROR_TOO_LONG,
// ERROR_INVALID_ARGUMENT; `detail` names the field by its path. `out_has_unknown`: whether there is
// an unknown field, at any level.
MUST_USE Error field_rules_check(const ProtobufCMessageDescriptor *descriptor, Slice bytes,
                                 ErrorDetail *detail, bool *out_has_unknown);

// Makes the decoded message forget the unknown fields it came with, at every level.
void field_rules_drop_unknown(ProtobufCMessage *message);

// Whether this message (not those in it) came with unknown fields that were dropped.
bool field_rules_had_unknown(const ProtobufCMessage *message);
