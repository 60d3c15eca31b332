// Processes: one handler of fork counts for all.

#include "os/process.h"

#include <assert.h>
#include <pthread.h>

static unsigned generation; // changes only in a child of fork, which has one thread then

static void begin_generation(void)
{
    generation++;
}

static void watch_forks(void)
{
    int code = pthread_atfork(NULL, NULL, begin_generation);
    assert(code == 0);
}

unsigned process_generation(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    return generation;
}
