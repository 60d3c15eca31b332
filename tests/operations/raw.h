// Raw requests: bytes that no client would send.
//
//     Raw *body = raw_begin(f);
//     raw_text(body, 1, "…");              field 1 of the request
//     raw_fails(f, "GetSession", body, "INVALID_UTF8", "session_id");

#pragma once

#include "base/slice.h"
#include "fixture.h"

// Bytes that grow. They live until the fixture is closed.
typedef struct Raw {
    Fixture *fixture;
    uint8_t *bytes;
    size_t size, capacity;
} Raw;

Raw *raw_begin(Fixture *f);
void raw_text(Raw *raw, uint32_t field, const char *text);
void raw_bytes(Raw *raw, uint32_t field, const void *bytes, size_t size);
void raw_number(Raw *raw, uint32_t field, uint64_t value);
void raw_message(Raw *raw, uint32_t field, const Raw *message);
void raw_append(Raw *raw, const void *bytes, size_t size); // as they are

// The bytes of a message; its strings are filled in as by fixture_fill.
Raw *raw_of(Fixture *f, const ProtobufCMessageDescriptor *descriptor, ProtobufCMessage *message);

// The envelope of a call of this method. operation_id NULL: none.
Raw *raw_request(Fixture *f, const char *method, const char *operation_id, const Raw *body);

// Sends what is to be a Request.
Slice raw_send(Fixture *f, const Raw *request);

// Makes a call whose outcome must be success …
Slice raw_ok(Fixture *f, const char *method, const Raw *body);
// … or a failure with this reason, and a message that holds `word`.
void raw_fails(Fixture *f, const char *method, const Raw *body, const char *reason,
               const char *word);

// Checks what the last call ended with: the reason, its code, and a message that holds `word`.
void raw_expect(Fixture *f, const char *reason, const char *word);
