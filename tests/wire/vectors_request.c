// Vectors of requests.

#include "vectors.h"

#include <assert.h>

#include "notation.h"
#include "wire/wire.h"

#define CALL "/tine.v1.StoreService/"
#define ID "01ARZ3NDEKTSV4RRFFQ69G5FAV"
#define TRACE "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

const RequestVector REQUEST_VECTORS[] = {
    {"method-alone", CALL "Health", "", 0, "", "", ""},
    {"with-body", CALL "GetSession", "", 0, "", "", "0a('" ID "')"},
    {"body-of-one-byte", CALL "GetSession", "", 0, "", "", "00"},
    {"operation-id", CALL "SoftDeleteSession", "op-1", 0, "", "", "0a('" ID "')"},
    {"operation-id-of-64", CALL "SoftDeleteSession",
     "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 0, "", "", "0a('" ID "')"},
    {"operation-id-not-ascii", CALL "SoftDeleteSession", "op-é", 0, "", "", "0a('" ID "')"},
    {"timeout-1", CALL "Health", "", 1, "", "", ""},
    {"timeout-127", CALL "Health", "", 127, "", "", ""},
    {"timeout-128", CALL "Health", "", 128, "", "", ""},
    {"timeout-a-minute", CALL "ListEvents", "", 60000, "", "", "28e807"},
    {"timeout-a-month", CALL "Health", "", 2592000000, "", "", ""},
    {"traceparent", CALL "Stats", "", 0, TRACE, "", ""},
    {"token", CALL "Stats", "", 0, "", "0123456789abcdef", ""},
    {"operation-id-and-timeout", CALL "RestoreSession", "op-2", 5000, "", "", "0a('" ID "')"},
    {"operation-id-and-trace", CALL "RestoreSession", "op-3", 0, TRACE, "", "0a('" ID "')"},
    {"timeout-and-token", CALL "GetSession", "", 250, "", "0123456789abcdef", "0a('" ID "')"},
    {"trace-and-token", CALL "GetSession", "", 0, TRACE, "0123456789abcdef", "0a('" ID "')"},
    {"everything", CALL "AppendMessage", "op-4", 1000, TRACE, "0123456789abcdef",
     "0a('" ID "') 12(30 01 9202(52(0a('Hello.'))))"},
    {"body-of-127", CALL "RenameSession", "op-5", 0, "", "", "12(61*125)"},
    {"body-of-128", CALL "RenameSession", "op-6", 0, "", "", "12(61*126)"},
    {"body-with-zeros", CALL "PutOriginal", "op-7", 0, "", "", "0a('" ID "') 12(00*40)"},
};

const size_t REQUEST_VECTOR_COUNT = sizeof(REQUEST_VECTORS) / sizeof(*REQUEST_VECTORS);

static Error encode(const RequestVector *vector, Slice body, Buffer *out)
{
    const char *const texts[] = {vector->method, vector->operation_id, NULL, vector->traceparent,
                                 vector->token};
    Error error = ERROR_NONE;
    for (uint32_t i = 0; i < sizeof(texts) / sizeof(*texts) && !error; i++) {
        if (!texts[i] && vector->timeout_ms > 0) {
            error = wire_append_varint(out, i + 1, (uint64_t)vector->timeout_ms);
        } else if (texts[i] && *texts[i]) {
            error = wire_append_bytes(out, i + 1, slice_of(texts[i]));
        }
    }
    if (!error && body.size > 0) error = wire_append_bytes(out, 15, body);
    return error;
}

void request_vector_encode(const RequestVector *vector, Buffer *out)
{
    Buffer body = {.bytes = NULL};
    notation_read(&body, vector->body);
    Error error = encode(vector, buffer_slice(&body), out);
    assert(!error);
    buffer_free(&body);
}
