// Threads. A new thread inherits the signal mask of its creator, so the creator blocks all signals
// while it starts one.

#include "os/thread.h"

#include <errno.h>
#include <signal.h>

Error thread_start(pthread_t *out, void *(*run)(void *context), void *context, const char *purpose,
                   ErrorDetail *detail)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(out, NULL, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed) return ERROR_NONE;
    Error error = error_say_errno(detail, failed, "cannot start a thread to %s", purpose);
    return failed == EAGAIN ? ERROR_OUT_OF_MEMORY : error;
}
