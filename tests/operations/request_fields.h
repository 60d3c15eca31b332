// Every field of every request, one by one: what a rule that holds for all calls is tested over.

#pragma once

#include "dispatch_table.h"
#include "raw.h"
#include "rpc/field_rules.h"

enum { FIELD_DEPTH_MAX = 8 };

// One field, and the way to it from a method's request.
typedef struct RequestField {
    const Method *method;
    const ProtobufCFieldDescriptor *fields[FIELD_DEPTH_MAX]; // from the request down
    size_t depth;
    const ProtobufCFieldDescriptor *field;     // the last of them
    const ProtobufCMessageDescriptor *message; // that has it
    const FieldRule *rule;
    char name[256]; // as errors name it: "message.parts[0].text.text"
} RequestField;

// Calls `visit` for each field of each request, with a fixture of its own for each method.
void request_fields_visit(void (*visit)(Fixture *f, const RequestField *field));

// Sends a request with nothing in it but this field. Its status is in f->status.
void request_field_send_bytes(Fixture *f, const RequestField *field, const void *bytes,
                              size_t size);
void request_field_send_number(Fixture *f, const RequestField *field, uint64_t value);
void request_field_send_raw(Fixture *f, const RequestField *field, const Raw *encoded);

// The field's name must be in the message of the failure.
void request_field_expect(Fixture *f, const RequestField *field, const char *reason);
