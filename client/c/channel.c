// Statuses that the client itself comes to, and the times that channels share.

#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "channel.h"
#include "os/clock.h"

int status_set(TineStatus *status, int code, const char *reason, const char *message)
{
    if (!status) return code;
    status->code = code;
    if (!*reason && !*message) { // each call that succeeds
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

int64_t channel_backoff_ns(unsigned failures)
{
    if (failures == 0) return 0;
    int64_t ms = CHANNEL_BACKOFF_MS_MIN;
    while (--failures > 0 && ms < CHANNEL_BACKOFF_MS_MAX)
        ms *= 2;
    return (ms < CHANNEL_BACKOFF_MS_MAX ? ms : CHANNEL_BACKOFF_MS_MAX) * 1000000;
}

bool time_is_past(int64_t time_ns)
{
    return time_ns != INT64_MAX && clock_monotonic_ns() >= time_ns;
}

int channel_poll_ms(int64_t until_ns, int max)
{
    if (until_ns == INT64_MAX) return max;
    int64_t left_ns = until_ns - clock_monotonic_ns();
    if (left_ns <= 0) return 0;
    int64_t ms = (left_ns + 999999) / 1000000;
    return ms < max ? (int)ms : max;
}
