// Condition variables with waits that end at a time of the monotonic clock (clock_monotonic_ns).

#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

// Makes a condition variable. The caller ends it with pthread_cond_destroy.
void condition_init(pthread_cond_t *out);

// Waits for a signal, with the mutex held, as pthread_cond_wait does. Returns false if `until_ns`
// came first. INT64_MAX: waits without an end.
bool condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t until_ns);
