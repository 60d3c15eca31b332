// Invocations: one call above the channel, from a request message to the bytes of the reply.
// tine_call, tine_call_bytes and tine_read_messages differ only in what they do with these bytes.

#pragma once

#include "client.h"

enum { OPERATION_ID_RANDOM_BYTES = 16 };

typedef struct Invocation {
    const TineCallOptions *options; // not NULL
    const char *method;
    const ProtobufCMessage *request;
    const Lender *lender; // NULL: nothing is lent
    bool is_patient;      // waits for the server; without a timeout, for ever
    TineStatus *status;   // may be NULL
    Buffer *received;     // borrowed; receives the encoded Response …
    Slice body;           // … in which this is the encoded response message

    const char *operation_id; // "": none
    char made_id[2 * OPERATION_ID_RANDOM_BYTES + 1];
    bool is_read;
    bool is_repeatable;     // running it twice has the same effect as once
    int64_t deadline_ns;    // from timeout_ms; INT64_MAX: none
    int64_t retry_until_ns; // 0: one attempt
    bool may_retry;         // the last attempt failed in a way that allows another
    unsigned failures;
} Invocation;

// Makes the call and fills `status`. Returns its code; after 0 `body` is set. The caller sets the
// members up to `received`.
int invocation_run(Invocation *invocation, Tine *tine);
