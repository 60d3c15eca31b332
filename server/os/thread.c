// Threads. A new one has its maker's mask, so the maker blocks all signals for that moment.

#include "os/thread.h"

#include <signal.h>

Error thread_start(pthread_t *out, void *(*run)(void *context), void *context)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(out, NULL, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? ERROR_IO : ERROR_NONE;
}
