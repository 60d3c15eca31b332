// Every field of every request.

#include "request_fields.h"

#include <stdio.h>

typedef void Visit(Fixture *f, const RequestField *field);

static void visit_message(Fixture *f, const RequestField *parent,
                          const ProtobufCMessageDescriptor *descriptor, Visit *visit)
{
    CHECK(parent->depth < FIELD_DEPTH_MAX);
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        RequestField child = *parent;
        child.field = &descriptor->fields[i];
        child.fields[child.depth++] = child.field;
        child.message = descriptor;
        child.rule = &field_rules_of(descriptor)[i];
        size_t size = strlen(child.name);
        bool is_repeated = child.field->label == PROTOBUF_C_LABEL_REPEATED;
        snprintf(child.name + size, sizeof(child.name) - size, "%s%s%s", size ? "." : "",
                 child.field->name, is_repeated ? "[0]" : "");
        visit(f, &child);
        if (child.field->type == PROTOBUF_C_TYPE_MESSAGE) {
            visit_message(f, &child, child.field->descriptor, visit);
        }
    }
}

void request_fields_visit(Visit *visit)
{
    for (size_t i = 0; i < METHOD_COUNT; i++) {
        if (METHODS[i].is_stream) continue; // nothing reads its request here
        CLEANUP(fixture_close) Fixture *f = fixture_open();
        RequestField root = {.method = &METHODS[i]};
        visit_message(f, &root, METHODS[i].request, visit);
        fixture_close(&f);
    }
}

void request_field_send_raw(Fixture *f, const RequestField *field, const Raw *encoded)
{
    const Raw *body = encoded;
    for (size_t depth = field->depth - 1; depth > 0; depth--) {
        Raw *outer = raw_begin(f);
        raw_message(outer, field->fields[depth - 1]->id, body);
        body = outer;
    }
    raw_send(f, raw_request(f, field->method->name, NULL, body));
}

void request_field_send_bytes(Fixture *f, const RequestField *field, const void *bytes, size_t size)
{
    Raw *encoded = raw_begin(f);
    raw_bytes(encoded, field->field->id, bytes, size);
    request_field_send_raw(f, field, encoded);
}

void request_field_send_number(Fixture *f, const RequestField *field, uint64_t value)
{
    Raw *encoded = raw_begin(f);
    raw_number(encoded, field->field->id, value);
    request_field_send_raw(f, field, encoded);
}

void request_field_expect(Fixture *f, const RequestField *field, const char *reason)
{
    if (strcmp(f->status.reason, reason) != 0 || !strstr(f->status.message, field->name)) {
        printf("%s, %s:\n", field->method->name, field->name);
    }
    raw_expect(f, reason, field->name);
}
