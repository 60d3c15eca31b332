// One call above the channel, from a message to the bytes of the reply's. What becomes of these is
// where tine_call, tine_call_bytes and tine_read_messages differ.

#pragma once

#include "client.h"

enum { OPERATION_ID_RANDOM_BYTES = 16 };

typedef struct Invocation {
    const TineCallOptions *options; // not NULL
    const char *method;
    const ProtobufCMessage *request;
    const Lender *lender; // NULL: nothing is lent
    bool is_patient;      // waits for the server, without a timeout as long as it takes
    TineStatus *status;   // may be NULL
    Buffer *received;     // the caller's; the encoded Response, and room that is used again …
    Slice body;           // … and in it the encoded response message

    const char *operation_id; // "": none
    char made_id[2 * OPERATION_ID_RANDOM_BYTES + 1];
    bool is_read;
    bool is_repeatable;     // running it twice is running it once
    int64_t deadline_ns;    // of timeout_ms; INT64_MAX: none
    int64_t retry_until_ns; // 0: it is tried once
    bool may_retry;         // the last attempt failed in such a way
    unsigned failures;
} Invocation;

// Makes the call. On success `body` is set. The members up to `received` are the caller's to set.
int invocation_run(Invocation *invocation, Tine *tine);
