// Raw requests.

#include "raw.h"

#include <stdio.h>

#include "base/limits.h"
#include "text/utf8.h"
#include "wire/wire.h"

Raw *raw_begin(Fixture *f)
{
    Raw *raw = fixture_alloc(f, sizeof(Raw));
    raw->fixture = f;
    return raw;
}

void raw_append(Raw *raw, const void *bytes, size_t size)
{
    if (raw->size + size > raw->capacity) {
        raw->capacity = 2 * (raw->size + size) + 64;
        uint8_t *larger = fixture_alloc(raw->fixture, raw->capacity);
        if (raw->size > 0) memcpy(larger, raw->bytes, raw->size);
        raw->bytes = larger;
    }
    if (size > 0) memcpy(raw->bytes + raw->size, bytes, size);
    raw->size += size;
}

void raw_bytes(Raw *raw, uint32_t field, const void *bytes, size_t size)
{
    uint8_t header[WIRE_TAG_BYTES_MAX + WIRE_VARINT_BYTES_MAX];
    size_t header_size = wire_put_tag(header, field, WIRE_BYTES);
    header_size += wire_put_varint(header + header_size, size);
    raw_append(raw, header, header_size);
    raw_append(raw, bytes, size);
}

void raw_text(Raw *raw, uint32_t field, const char *text)
{
    raw_bytes(raw, field, text, strlen(text));
}

void raw_number(Raw *raw, uint32_t field, uint64_t value)
{
    uint8_t bytes[WIRE_TAG_BYTES_MAX + WIRE_VARINT_BYTES_MAX];
    raw_append(raw, bytes, wire_put_varint_field(bytes, field, value));
}

void raw_message(Raw *raw, uint32_t field, const Raw *message)
{
    raw_bytes(raw, field, message->bytes, message->size);
}

Raw *raw_of(Fixture *f, const ProtobufCMessageDescriptor *descriptor, ProtobufCMessage *message)
{
    message->descriptor = descriptor;
    fixture_fill(message);
    Raw *raw = raw_begin(f);
    raw->capacity = protobuf_c_message_get_packed_size(message) + 1;
    raw->bytes = fixture_alloc(f, raw->capacity);
    raw->size = protobuf_c_message_pack(message, raw->bytes);
    return raw;
}

Raw *raw_request(Fixture *f, const char *method, const char *operation_id, const Raw *body)
{
    char path[METHOD_BYTES_MAX];
    snprintf(path, sizeof(path), "/tine.v1.StoreService/%s", method);
    Raw *request = raw_begin(f);
    raw_text(request, 1, path);
    if (operation_id) raw_text(request, 2, operation_id);
    raw_message(request, 15, body);
    return request;
}

Slice raw_send(Fixture *f, const Raw *request)
{
    return fixture_send(f, slice(request->bytes, request->size));
}

Slice raw_ok(Fixture *f, const char *method, const Raw *body)
{
    Slice reply = raw_send(f, raw_request(f, method, NULL, body));
    raw_expect(f, "", "");
    return reply;
}

void raw_fails(Fixture *f, const char *method, const Raw *body, const char *reason,
               const char *word)
{
    raw_send(f, raw_request(f, method, NULL, body));
    raw_expect(f, reason, word);
}

void raw_expect(Fixture *f, const char *reason, const char *word)
{
    if (strcmp(f->status.reason, reason) != 0 || !strstr(f->status.message, word)) {
        printf("the call ended with reason '%s': %s\n", f->status.reason, f->status.message);
    }
    CHECK_STR(f->status.reason, reason);
    CHECK((f->status.code == 0) == (*reason == '\0'));
    CHECK(strstr(f->status.message, word));
    CHECK(utf8_is_valid(slice_of(f->status.message)));
    CHECK((*f->status.message == '\0') == (*reason == '\0'));
}
