// The recorder is tested: it ends whoever changes a recorded file in a way that it does not record.

#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "record.h"

typedef struct Recorded {
    char root[512], path[600];
    int file, other; // of which one is recorded
} Recorded;

static Recorded begin(void)
{
    Recorded recorded;
    snprintf(recorded.root, sizeof(recorded.root), "%s/root", test_dir());
    snprintf(recorded.path, sizeof(recorded.path), "%s/file", recorded.root);
    CHECK(mkdir(recorded.root, 0700) == 0 || access(recorded.root, F_OK) == 0);
    record_begin(recorded.root);
    recorded.file = open(recorded.path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    recorded.other = open("/dev/null", O_RDWR | O_CLOEXEC);
    CHECK(recorded.file >= 0 && recorded.other >= 0);
    return recorded;
}

static void make_call(const Recorded *recorded, int number)
{
    struct iovec part = {(void *)(uintptr_t) "x", 1};
    switch (number) {
    case 0: (void)!truncate(recorded->path, 1); break;
    case 1: (void)!fallocate(recorded->file, 0, 0, 1); break;
    case 2: (void)!pwritev2(recorded->file, &part, 1, 0, 0); break;
    case 3: (void)!copy_file_range(recorded->other, NULL, recorded->file, NULL, 1, 0); break;
    case 4: (void)!sendfile(recorded->file, recorded->other, NULL, 1); break;
    case 5: (void)!dup(recorded->file); break;
    case 6: (void)!dup2(recorded->other, recorded->file); break;
    case 7: (void)!creat(recorded->path, 0600); break;
    case 8: (void)!openat(AT_FDCWD, recorded->path, O_WRONLY); break;
    case 9: (void)!unlinkat(AT_FDCWD, recorded->path, 0); break;
    case 10: (void)!renameat(AT_FDCWD, recorded->path, AT_FDCWD, "none"); break;
    case 11: (void)!fopen(recorded->path, "w"); break;
    default: _exit(EXIT_SUCCESS);
    }
}

TEST(a_call_that_is_not_recorded_ends_the_recorder)
{
    bool was_last = false;
    for (int i = 0; !was_last; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            Recorded recorded = begin();
            if (!freopen("/dev/null", "w", stderr)) _exit(EXIT_FAILURE);
            make_call(&recorded, i);
            _exit(EXIT_FAILURE);
        }
        int status;
        CHECK_EQ(waitpid(child, &status, 0), child);
        was_last = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
        if (!was_last) {
            CHECK(WIFSIGNALED(status));
            CHECK_EQ(WTERMSIG(status), SIGABRT);
        }
        CHECK(!was_last || i == 12);
    }
}

TEST(calls_about_other_files_are_made_while_one_is_recorded)
{
    Recorded recorded = begin();
    char path[600];
    snprintf(path, sizeof(path), "%s/beside", test_dir());
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    CHECK_EQ(fclose(file), 0);
    CHECK_EQ(truncate(path, 100), 0);
    int copy = dup(recorded.other);
    CHECK(copy >= 0);
    close(copy);
    CHECK_EQ(unlinkat(AT_FDCWD, path, 0), 0);
    (void)fallocate(recorded.file, FALLOC_FL_KEEP_SIZE, 0, 4096); // the file stays as it was
    struct stat status;
    CHECK_EQ(fstat(recorded.file, &status), 0);
    CHECK_EQ(status.st_size, 0);
    Recording recording;
    record_end(&recording);
    record_free(&recording);
    close(recorded.file);
    close(recorded.other);
}

// What a process does after its death has not happened, and is not recorded.
TEST(a_dead_process_changes_nothing)
{
    Recorded recorded = begin();
    CHECK_EQ(pwrite(recorded.file, "before", 6, 0), 6);
    record_kill_in(1);
    CHECK_EQ(pwrite(recorded.file, "as it dies", 10, 0), 10);
    CHECK(record_is_dead());
    size_t count = record_count();
    CHECK_EQ(pwrite(recorded.file, "after its death", 15, 0), 15);
    CHECK_EQ(fsync(recorded.file), 0);
    close(recorded.file);
    record_revive();
    CHECK_EQ(record_count(), count);
    char text[32] = "";
    int file = open(recorded.path, O_RDONLY | O_CLOEXEC);
    CHECK_EQ(read(file, text, sizeof(text) - 1), 10);
    CHECK_STR(text, "as it dies");
    close(file);
    close(recorded.other);
    Recording recording;
    record_end(&recording);
    record_free(&recording);
}
