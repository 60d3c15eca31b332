// Statuses: how a call ended, as the client itself says it and as a reply says it.

#pragma once

#include "base/slice.h"
#include "tine.h"

// Each function fills `status`, which may be NULL, and returns its code.

int status_set(TineStatus *status, int code, const char *reason, const char *message);

// UNAVAILABLE with a message that is formatted as printf does.
int status_unavailable(TineStatus *status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// DEADLINE_EXCEEDED; the message says whether the call may have been done.
int status_deadline_exceeded(TineStatus *status, bool was_sent);

// RESOURCE_EXHAUSTED: the client has no memory.
int status_out_of_memory(TineStatus *status);

// INTERNAL: the bytes of a reply are not what they should be.
int status_undecodable(TineStatus *status);

// Reads a Response. After OK `*out_body` borrows from it. A code that gRPC does not have becomes
// UNKNOWN; bytes that are no Response are INTERNAL.
int status_of_response(Slice response, TineStatus *status, Slice *out_body);
