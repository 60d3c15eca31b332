// The handlers of signals write one byte each into a pipe, which the main loop reads.

#include "daemon/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static int wake_ends[2] = {-1, -1};

static void on_signal(int number)
{
    signals_wake(number == SIGHUP ? WAKE_REOPEN : WAKE_STOP);
}

static Error fail(ErrorDetail *detail)
{
    return error_say(detail, ERROR_IO, "cannot wait for signals: %s", strerror(errno));
}

Error signals_start(ErrorDetail *detail)
{
    if (pipe2(wake_ends, O_CLOEXEC | O_NONBLOCK) != 0) return fail(detail);
    struct sigaction action = {.sa_handler = SIG_IGN};
    const int ignored[] = {SIGPIPE, SIGXFSZ};
    for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++) {
        if (sigaction(ignored[i], &action, NULL) != 0) return fail(detail);
    }
    action = (struct sigaction){.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigfillset(&action.sa_mask);
    const int handled[] = {SIGTERM, SIGINT, SIGHUP};
    for (size_t i = 0; i < sizeof(handled) / sizeof(*handled); i++) {
        if (sigaction(handled[i], &action, NULL) != 0) return fail(detail);
    }
    return ERROR_NONE;
}

void signals_wake(Wake wake)
{
    int errno_before = errno;
    char byte = (char)wake;
    ssize_t written = write(wake_ends[1], &byte, 1);
    (void)written; // full: 64 KiB of wakes are waiting
    errno = errno_before;
}

Wake signals_wait(int timeout_ms)
{
    struct pollfd wanted = {.fd = wake_ends[0], .events = POLLIN};
    int ready = poll(&wanted, 1, timeout_ms);
    char byte;
    if (ready <= 0 || read(wake_ends[0], &byte, 1) != 1) return WAKE_TIMEOUT;
    return (Wake)byte;
}
