// The signals of a crash reach their handlers on every thread.

#include "os/thread.h"

#include <signal.h>

#include "harness.h"

static bool is_blocked(int number)
{
    sigset_t blocked;
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &blocked), 0);
    return sigismember(&blocked, number) == 1;
}

static void check_crashes_are_unblocked(void)
{
    static const int CRASHES[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof(CRASHES) / sizeof(*CRASHES); i++)
        CHECK(!is_blocked(CRASHES[i]));
    CHECK(is_blocked(SIGTERM));
}

static void *run_of_ours(void *context)
{
    (void)context;
    check_crashes_are_unblocked();
    return NULL;
}

static void *run_of_library(void *context)
{
    (void)context;
    CHECK(is_blocked(SIGSEGV));
    for (int i = 0; i < 2; i++)
        thread_unblock_crashes();
    check_crashes_are_unblocked();
    return NULL;
}

TEST(a_thread_blocks_all_signals_but_those_of_a_crash)
{
    pthread_t thread;
    CHECK_EQ(thread_start(&thread, run_of_ours, NULL, "test", NULL), ERROR_NONE);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK(!is_blocked(SIGTERM));
}

TEST(a_thread_of_a_library_can_unblock_the_signals_of_a_crash)
{
    sigset_t all;
    pthread_t thread;
    sigfillset(&all);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &all, NULL), 0);
    CHECK_EQ(pthread_create(&thread, NULL, run_of_library, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}
