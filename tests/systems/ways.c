// The ways to a store.

#include "ways.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS_MAX = 256, PATH_BYTES = 256 };

Fixture *socket_fixture(void)
{
    CHECK_EQ(setenv("TINE_TEST_CHANNEL", "sp", /* replace= */ 1), 0);
    return fixture_open();
}

// Runs it with a client of another store than the fixture's own.
static void elsewhere(const char *url, void (*run)(Fixture *f))
{
    CHECK_EQ(setenv("TINE_TEST_CHANNEL", "local", /* replace= */ 1), 0);
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    Tine *own = f->tine;
    TineOpenOptions options = {.wait_for_server = true}; // of a daemon that has only just begun
    CHECK_EQ(tine_open_with(url, &options, &f->status, &f->tine), 0);
    run(f);
    tine_close(f->tine);
    f->tine = own;
}

void in_ephemeral_daemon(void (*run)(Fixture *f))
{
    char socket[PATH_BYTES], url[PATH_BYTES + 8];
    snprintf(socket, sizeof(socket), "%s/tined.sock", test_dir());
    snprintf(url, sizeof(url), "ipc://%s", socket);
    fflush(NULL);
    pid_t daemon = fork();
    CHECK(daemon >= 0);
    if (daemon == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl(TINED, "tined", "--ephemeral", "--socket", socket, "--log-level", "warning",
              (char *)NULL);
        _exit(127);
    }
    elsewhere(url, run);
    int status;
    CHECK_EQ(kill(daemon, SIGTERM), 0);
    CHECK_EQ(waitpid(daemon, &status, 0), daemon);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

void on_each_way(void (*run)(Fixture *f))
{
    Fixture *f = socket_fixture();
    run(f);
    fixture_close(&f);
    elsewhere("embedded::memory:", run);
    in_ephemeral_daemon(run);
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
