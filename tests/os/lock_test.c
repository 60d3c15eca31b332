// Locks between processes.

#include "os/lock.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

static void lock_path(char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "%s/lock", test_dir());
}

TEST(who_holds_a_lock_is_named)
{
    char path[256], wanted[64];
    lock_path(path, sizeof(path));
    int ready[2];
    CHECK_EQ(pipe(ready), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        ErrorDetail detail;
        int descriptor;
        CHECK_EQ(lock_take(path, "it", "wait", &detail, &descriptor), ERROR_NONE);
        CHECK_EQ(write(ready[1], "x", 1), 1);
        pause();
    }
    char byte;
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    ErrorDetail detail;
    int descriptor;
    CHECK_EQ(lock_take(path, "it", "wait", &detail, &descriptor), ERROR_UNAVAILABLE);
    snprintf(wanted, sizeof(wanted), "it is in use by the process with pid %d; wait", child);
    CHECK_STR(detail.text, wanted);

    // A killed one leaves its file, and no lock.
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    CHECK_EQ(lock_take(path, "it", "wait", &detail, &descriptor), ERROR_NONE);
    lock_remove(path, descriptor);
    CHECK_EQ(access(path, F_OK), -1);
}

TEST(a_lock_that_is_removed_again_and_again_has_one_holder_at_a_time)
{
    enum { PROCESSES = 6 };
    char path[256];
    lock_path(path, sizeof(path));
    atomic_int *holders =
        mmap(NULL, sizeof(atomic_int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(holders != MAP_FAILED);
    for (int i = 0; i < PROCESSES; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child > 0) continue;
        for (size_t taken = 0; taken < test_scaled(500);) {
            ErrorDetail detail;
            int descriptor;
            Error error = lock_take(path, "it", "wait", &detail, &descriptor);
            CHECK(error == ERROR_NONE || error == ERROR_UNAVAILABLE);
            if (error) continue;
            CHECK_EQ(atomic_fetch_add(holders, 1), 0);
            atomic_fetch_sub(holders, 1);
            lock_remove(path, descriptor);
            taken++;
        }
        exit(0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        CHECK(wait(&status) > 0);
        CHECK_EQ(status, 0);
    }
    munmap(holders, sizeof(atomic_int));
}

TEST(what_cannot_be_opened_cannot_be_locked)
{
    ErrorDetail detail;
    int descriptor = -1;
    CHECK_EQ(lock_take("/nowhere/lock", "it", "wait", &detail, &descriptor), ERROR_IO);
    CHECK_STR(detail.text, "cannot open /nowhere/lock: No such file or directory (errno 2)");
    lock_remove("/nowhere/lock", descriptor);
}
