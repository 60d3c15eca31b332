// A data.mdb that is moved in while a reader of another process has the files open.

#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "kv_fixture.h"

typedef struct Path {
    char text[512];
} Path;

static Path path_in(const char *directory, const char *name)
{
    Path path;
    int size = snprintf(path.text, sizeof(path.text), "%s/%s", directory, name);
    CHECK(size > 0 && (size_t)size < sizeof(path.text));
    return path;
}

static KvOptions owner_options(void)
{
    KvOptions options = fixture_options();
    options.owns_directory = true;
    return options;
}

// A child that has the store open, read-only, until it is killed.
static pid_t reader_start(void)
{
    int ready[2];
    CHECK_EQ(pipe(ready), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        KvOptions options = fixture_options();
        options.read_only = true;
        Kv *kv = open_ok(&options);
        if (!kv || write(ready[1], "", 1) != 1) _exit(1);
        for (;;)
            pause();
    }
    char byte;
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return child;
}

static void reader_end(pid_t child)
{
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
}

static ino_t inode_of(const char *name)
{
    struct stat status;
    CHECK_EQ(stat(path_in(test_dir(), name).text, &status), 0);
    return status.st_ino;
}

// A store with few commits, made elsewhere, in the place of the one that is there.
static void move_in_another(void)
{
    Path directory = path_in(test_dir(), "other");
    CHECK_EQ(mkdir(directory.text, 0700), 0);
    KvOptions options = owner_options();
    options.directory = directory.text;
    Kv *kv = open_ok(&options);
    store_ok(kv, "a", "of the other");
    kv_close(kv);
    CHECK_EQ(rename(path_in(directory.text, "data.mdb").text, path_in(test_dir(), "data.mdb").text),
             0);
}

TEST(a_file_moved_in_under_a_reader_loses_no_commit)
{
    KvOptions options = owner_options();
    Kv *kv = open_ok(&options);
    for (int i = 0; i < 8; i++)
        store_ok(kv, "a", "of the first");
    pid_t reader = reader_start();
    kv_close(kv);
    move_in_another();

    // Both parities: the number that the old lock.mdb has must not be gone by.
    for (int i = 0; i < 3; i++) {
        kv = open_ok(&options);
        char key[24];
        snprintf(key, sizeof(key), "b%d", i);
        store_ok(kv, key, "committed");
        CHECK_STR(stored_at(kv, key), "committed");
        kv_close(kv);
        kv = open_ok(&options);
        CHECK_STR(stored_at(kv, key), "committed");
        CHECK_STR(stored_at(kv, "a"), "of the other");
        kv_close(kv);
    }
    reader_end(reader);
}

TEST(the_lock_s_file_stays_while_its_store_does)
{
    KvOptions options = owner_options();
    Kv *kv = open_ok(&options);
    pid_t reader = reader_start();
    ino_t lock = inode_of("lock.mdb");
    kv_close(kv);
    kv = open_ok(&options);
    CHECK_EQ(inode_of("lock.mdb"), lock); // readers of other processes go on
    kv_close(kv);
    reader_end(reader);
    CHECK_EQ(unlink(path_in(test_dir(), "lock.pair").text), 0);
    kv = open_ok(&options); // nobody can say what it belongs to
    CHECK_STR(stored_at(kv, "a"), "-");
    kv_close(kv);
}
