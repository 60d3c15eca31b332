// Condition variables on the monotonic clock.

#include "os/condition.h"

#include <time.h>

void condition_init(pthread_cond_t *out)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(out, &attributes);
    pthread_condattr_destroy(&attributes);
}

bool condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t until_ns)
{
    if (until_ns == INT64_MAX) return pthread_cond_wait(condition, mutex) == 0;
    struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
    return pthread_cond_timedwait(condition, mutex, &until) == 0;
}
