// The envelope (rpc.proto): what a Request and a Response say around their body. Both are read and
// written by hand, so that a body is neither copied into its envelope nor out of it.

#pragma once

#include "base/buffer.h"
#include "base/slice.h"

// What a Request says beside its body. The slices are borrowed; an empty one, 0 and false are left
// out of the encoding.
typedef struct RequestEnvelope {
    Slice method;
    Slice operation_id;
    Slice traceparent;
    Slice token;
    int64_t timeout_ms;
    bool sync;
} RequestEnvelope;

// Appends all of a Request but the content of its body: the caller appends these `body_bytes` next.
// A body of no bytes is left out. ERROR_OUT_OF_MEMORY.
MUST_USE Error envelope_request_write(Buffer *out, const RequestEnvelope *envelope,
                                      size_t body_bytes);

// Reads a Request. `out` and `out_body` borrow from it; no text is checked. Of a field that comes
// twice the last one counts, one of another type is ignored. Returns false on malformed bytes.
bool envelope_request_read(Slice request, RequestEnvelope *out, Slice *out_body);

// How a call ended. The slices are borrowed.
typedef struct ResponseStatus {
    int32_t code; // 0: it succeeded
    Slice message;
    Slice reason;
} ResponseStatus;

// Room that envelope_response_begin needs in front of a body.
enum { ENVELOPE_RESPONSE_GAP = 16 };

// Makes a Response of a body of `body_bytes`: writes the envelope in front of it. `reply` holds the
// body or, if other memory holds pieces of it, the rest. The buffer must have been reset with a gap
// of ENVELOPE_RESPONSE_GAP.
void envelope_response_begin(Buffer *reply, size_t body_bytes);

// Appends the Response of a call that failed. Returns ERROR_OUT_OF_MEMORY and appends nothing if
// there is no memory.
MUST_USE Error envelope_response_fail(Buffer *reply, const ResponseStatus *status);

// Reads a Response; `out` and `out_body` borrow from it. Returns false if the bytes are malformed,
// empty, or hold a text in the status that is not UTF-8.
bool envelope_response_read(Slice response, ResponseStatus *out, Slice *out_body);
