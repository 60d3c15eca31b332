// libtine: the C client of tine.
//
//     Tine *tine;
//     TineStatus status;
//     if (tine_open("embedded:/var/lib/agent/tine", &status, &tine)) …
//     tine_append_message(tine, &(TineCallOptions){.operation_id = "…"}, &request, &response);
//
// The typed calls, one per RPC, are in tine_calls.h. All functions are safe from any thread.

#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Tine Tine;

// How a call ended, in words. `code` is gRPC's number, 0 is OK.
typedef struct TineStatus {
    int code;
    char reason[64];   // an UPPER_SNAKE name of enum Reason
    char message[512]; // which field, and what to do about it
} TineStatus;

typedef struct TineCallOptions {
    const char *operation_id; // of a write: makes it safe to send again. NULL: none
    int64_t timeout_ms;       // 0: none
    const char *traceparent;  // NULL: none
    TineStatus *out_status;   // NULL: not wanted
} TineCallOptions;

// Opens what the URL names: embedded:PATH is a private store in this process. Returns 0, or the
// code that `out_status` (may be NULL) explains. `*out_tine` is the caller's, closed with
// tine_close.
int tine_open(const char *url, TineStatus *out_status, Tine **out_tine);

// Waits for no call: there must be none. NULL is allowed.
void tine_close(Tine *tine);

// One call by its method's path. On success (0) `*out_response` is the caller's, freed with
// protobuf_c_message_free_unpacked; otherwise it is left as it was. `options` may be NULL.
int tine_call(Tine *tine, const TineCallOptions *options, const char *method,
              const ProtobufCMessage *request, const ProtobufCMessageDescriptor *response_type,
              ProtobufCMessage **out_response);

#ifdef __cplusplus
}
#endif
