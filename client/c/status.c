// Statuses. A message or reason of the server's that is too long for TineStatus is cut between two
// characters.

#include "status.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "text/utf8.h"
#include "wire/envelope.h"

int status_set(TineStatus *status, int code, const char *reason, const char *message)
{
    if (!status) return code;
    status->code = code;
    if (!*reason && !*message) { // the common case, a call that succeeds
        status->reason[0] = status->message[0] = '\0';
        return code;
    }
    snprintf(status->reason, sizeof(status->reason), "%s", reason);
    snprintf(status->message, sizeof(status->message), "%s", message);
    return code;
}

int status_unavailable(TineStatus *status, const char *format, ...)
{
    char message[sizeof(status->message)];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    return status_set(status, STATUS_UNAVAILABLE, "UNAVAILABLE", message);
}

int status_deadline_exceeded(TineStatus *status, bool was_sent)
{
    return status_set(status, STATUS_DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED",
                      was_sent ? "the time is up and there is no reply yet; whether the call was "
                                 "done is not known"
                               : "the time is up before the call could be sent; nothing was done");
}

int status_out_of_memory(TineStatus *status)
{
    return status_set(status, STATUS_RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED",
                      "the client is out of memory");
}

int status_undecodable(TineStatus *status)
{
    return status_set(status, STATUS_INTERNAL, "INTERNAL", "the reply cannot be decoded");
}

static void copy_text(Slice text, char *out, size_t room)
{
    text = utf8_cut(text, room - 1);
    if (text.size > 0) memcpy(out, text.bytes, text.size);
    out[text.size] = '\0';
}

int status_of_response(Slice response, TineStatus *status, Slice *out_body)
{
    ResponseStatus read;
    Slice body;
    if (!envelope_response_read(response, &read, &body)) return status_undecodable(status);
    if (read.code == STATUS_OK) {
        *out_body = body;
        return status_set(status, STATUS_OK, "", "");
    }
    bool is_known = read.code > 0 && read.code <= STATUS_UNAUTHENTICATED; // gRPC's greatest
    int code = is_known ? read.code : STATUS_UNKNOWN;
    if (!status) return code;
    status->code = code;
    copy_text(read.reason, status->reason, sizeof(status->reason));
    copy_text(read.message, status->message, sizeof(status->message));
    return code;
}
