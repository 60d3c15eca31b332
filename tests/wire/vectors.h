// The conformance vectors: bytes of the wire with their meaning, good and bad. What the program
// wire_vectors prints of them is tests/wire/vectors.json, against which each client is checked.
// Bytes are in the notation of notation.h.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buffer.h"

// The eight bytes that a client receives first. A REQ ("req") takes those of a REP alone, a SUB
// ("sub") those of a PUB.
typedef struct HelloVector {
    const char *name, *client, *bytes, *why;
    int protocol; // negative: it names none
    bool is_ok;
} HelloVector;

enum { FRAME_PAYLOADS_MAX = 4 };

// What comes after the hellos: the frames that it holds, and then? "more": another frame has begun,
// or nothing is there yet. "end": the last byte is a frame's last. "error": the connection must be
// closed. Payloads are whole, with the request's id in front where there is one.
typedef struct FrameVector {
    const char *name, *transport, *bytes;
    const char *payloads[FRAME_PAYLOADS_MAX];
    const char *then, *why;
} FrameVector;

// What a client must make of a call. Fields are in the order of their numbers, the body is last.
typedef struct RequestVector {
    const char *name, *method, *operation_id;
    int64_t timeout_ms;
    const char *traceparent, *token, *body;
} RequestVector;

// What a client makes of a reply. Not OK: the bytes are no Response, and the call is INTERNAL.
typedef struct ResponseVector {
    const char *name, *bytes;
    bool is_ok;
    int code;
    const char *message, *reason, *body, *why;
} ResponseVector;

// A message of the bus: topic, a zero byte, an Event.
typedef struct EventVector {
    const char *name, *bytes;
    bool is_ok;
    const char *topic;
    uint64_t sequence;
    const char *type, *session_id, *why;
} EventVector;

extern const HelloVector HELLO_VECTORS[];
extern const size_t HELLO_VECTOR_COUNT;
extern const FrameVector FRAME_VECTORS[];
extern const size_t FRAME_VECTOR_COUNT;
extern const RequestVector REQUEST_VECTORS[];
extern const size_t REQUEST_VECTOR_COUNT;
extern const ResponseVector RESPONSE_VECTORS[];
extern const size_t RESPONSE_VECTOR_COUNT;
extern const EventVector EVENT_VECTORS[];
extern const size_t EVENT_VECTOR_COUNT;

// The bytes of a request vector, put together without anything of libtine.
void request_vector_encode(const RequestVector *vector, Buffer *out);

// Prints all of them as the file has them.
void vectors_print(FILE *out);
