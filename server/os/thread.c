// Threads. A new thread inherits the signal mask of its creator, so the creator blocks all signals
// while it starts one, except those of a crash: a thread that blocks these dies without a handler.

#include "os/thread.h"

#include <errno.h>
#include <signal.h>

static const int CRASHES[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};

Error thread_start(pthread_t *out, void *(*run)(void *context), void *context, const char *purpose,
                   ErrorDetail *detail)
{
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof(CRASHES) / sizeof(*CRASHES); i++)
        sigdelset(&all, CRASHES[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(out, NULL, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed) return ERROR_NONE;
    Error error = error_say_errno(detail, failed, "cannot start a thread to %s", purpose);
    return failed == EAGAIN ? ERROR_OUT_OF_MEMORY : error;
}

void thread_unblock_crashes(void)
{
    static _Thread_local bool is_done;
    if (is_done) return;
    is_done = true;
    sigset_t crashes;
    sigemptyset(&crashes);
    for (size_t i = 0; i < sizeof(CRASHES) / sizeof(*CRASHES); i++)
        sigaddset(&crashes, CRASHES[i]);
    pthread_sigmask(SIG_UNBLOCK, &crashes, NULL);
}
