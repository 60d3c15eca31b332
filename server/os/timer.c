// Timers by timerfd.

#include "os/timer.h"

#include <errno.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

Error timer_open(const char *purpose, ErrorDetail *detail, int *out)
{
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (timer < 0) {
        return error_say(detail, ERROR_IO, "cannot open a timer to %s: %s", purpose,
                         strerror(errno));
    }
    *out = timer;
    return ERROR_NONE;
}

void timer_start(int timer, int64_t milliseconds)
{
    struct itimerspec time = {
        .it_value = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000}};
    (void)timerfd_settime(timer, 0, &time, NULL);
}

bool timer_has_ended(int timer)
{
    uint64_t times;
    return read(timer, &times, sizeof(times)) > 0;
}
