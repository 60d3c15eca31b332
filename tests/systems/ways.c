// The ways to a store.

#include "ways.h"

#include <pthread.h>
#include <stdlib.h>

enum { THREADS_MAX = 256 };

Fixture *socket_fixture(void)
{
    CHECK_EQ(setenv("TINE_TEST_CHANNEL", "sp", /* replace= */ 1), 0);
    return fixture_open();
}

static void in_memory(void (*run)(Fixture *f))
{
    CHECK_EQ(setenv("TINE_TEST_CHANNEL", "local", /* replace= */ 1), 0);
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    Tine *own = f->tine;
    CHECK_EQ(tine_open("embedded::memory:", &f->status, &f->tine), 0);
    run(f);
    tine_close(f->tine);
    f->tine = own;
}

void on_each_way(void (*run)(Fixture *f))
{
    Fixture *f = socket_fixture();
    run(f);
    fixture_close(&f);
    in_memory(run);
}

typedef struct Start {
    SystemThread thread;
    void (*run)(const SystemThread *thread);
    pthread_barrier_t *barrier;
} Start;

static void *thread_main(void *context)
{
    const Start *start = context;
    pthread_barrier_wait(start->barrier);
    start->run(&start->thread);
    return NULL;
}

void in_threads(Fixture *f, unsigned count, void (*run)(const SystemThread *thread), void *context)
{
    CHECK(count <= THREADS_MAX);
    pthread_t threads[THREADS_MAX];
    Start starts[THREADS_MAX];
    pthread_barrier_t barrier;
    CHECK_EQ(pthread_barrier_init(&barrier, NULL, count), 0);
    for (unsigned i = 0; i < count; i++) {
        starts[i] = (Start){{i, f->tine, context}, run, &barrier};
        CHECK_EQ(pthread_create(&threads[i], NULL, thread_main, &starts[i]), 0);
    }
    for (unsigned i = 0; i < count; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    pthread_barrier_destroy(&barrier);
}
