// The envelope: what is around a request's body on its way out, and around a reply's on its way in.

#pragma once

#include "base/buffer.h"
#include "base/slice.h"
#include "tine.h"

// What a Request says beside its body. Texts are borrowed; an empty one, NULL and 0 are not said.
typedef struct Envelope {
    const char *method;
    const char *operation_id;
    int64_t timeout_ms;
    const char *traceparent;
    const char *token;
    bool sync;
} Envelope;

// Appends all of a Request up to the content of its body, of which the caller appends
// `body_bytes`. A body of no bytes is not said.
MUST_USE Error envelope_write(Buffer *out, const Envelope *envelope, size_t body_bytes);

// Reads a Response. Returns the code that it says and fills `status` (may be NULL); after OK
// `*out_body` borrows from `reply`. A code that gRPC does not know is UNKNOWN; bytes that are no
// Response are INTERNAL.
int envelope_read(Slice reply, TineStatus *status, Slice *out_body);
