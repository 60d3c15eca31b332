// Readers of other processes that have the files open: while a data.mdb is moved in, and while the
// owner would have a new lock.mdb, by which nobody knew of them.

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
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
    options.file.owns_directory = true;
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
        options.file.read_only = true;
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
    options.file.directory = directory.text;
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

// A child in a read transaction: it reads "a" once more when it is told to, and says what it was.
typedef struct Reader {
    pid_t child;
    int tell, hear;
} Reader;

static void read_twice(int hear, int tell)
{
    KvOptions options = fixture_options();
    options.file.read_only = true;
    Kv *kv = open_ok(&options);
    KvTxn *txn = begin_ok(kv, /* is_write= */ false);
    const char *text = text_at(txn, "a"); // copied from the page
    char byte = text[0];
    CHECK_EQ(write(tell, &byte, 1), 1);
    CHECK_EQ(read(hear, &byte, 1), 1);
    byte = text_at(txn, "a")[0];
    kv_abort(&txn);
    CHECK_EQ(write(tell, &byte, 1), 1);
    for (;;)
        pause(); // with the files open
}

static Reader reader_in_a_read(char expected)
{
    int to[2], from[2];
    char byte;
    CHECK_EQ(pipe(to), 0);
    CHECK_EQ(pipe(from), 0);
    Reader reader = {.child = fork(), .tell = to[1], .hear = from[0]};
    CHECK(reader.child >= 0);
    if (reader.child == 0) {
        read_twice(to[0], from[1]);
        _exit(1);
    }
    close(to[0]);
    close(from[1]);
    CHECK_EQ(read(reader.hear, &byte, 1), 1);
    CHECK_EQ(byte, expected);
    return reader;
}

static void reader_finish(Reader *reader, char expected)
{
    char byte = 0;
    CHECK_EQ(write(reader->tell, "", 1), 1);
    CHECK_EQ(read(reader->hear, &byte, 1), 1);
    CHECK_EQ(byte, expected);
    close(reader->tell);
    close(reader->hear);
}

TEST(the_lock_s_file_is_not_taken_from_who_reads_by_it)
{
    KvOptions options = owner_options();
    Kv *kv = open_ok(&options);
    store_ok(kv, "a", "first");
    Reader reader = reader_in_a_read('f');
    kv_close(kv);
    CHECK_EQ(unlink(path_in(test_dir(), "lock.pair").text), 0);
    // By a new lock.mdb nobody would know of the reader, and its pages would be used again.
    ErrorDetail detail = {""};
    CHECK_EQ(open_error(&options, &detail), ERROR_UNAVAILABLE);
    char pid[32];
    snprintf(pid, sizeof(pid), "pid %d ", (int)reader.child);
    CHECK(strstr(detail.text, pid) != NULL);
    reader_finish(&reader, 'f');
    kv = open_ok(&options);
    CHECK_STR(stored_at(kv, "a"), "first");
    kv_close(kv);
    reader_end(reader.child);
}

TEST(a_dead_reader_keeps_no_lock_s_file)
{
    KvOptions options = owner_options();
    Kv *kv = open_ok(&options);
    store_ok(kv, "a", "first");
    Reader reader = reader_in_a_read('f');
    kv_close(kv);
    pid_t other = reader_start(); // so that the file is in use
    reader_end(reader.child);
    CHECK_EQ(unlink(path_in(test_dir(), "lock.pair").text), 0);
    kv = open_ok(&options);
    CHECK_STR(stored_at(kv, "a"), "first");
    kv_close(kv);
    reader_end(other);
}

TEST(a_file_that_was_moved_away_keeps_its_reader)
{
    KvOptions options = owner_options();
    Kv *kv = open_ok(&options);
    store_ok(kv, "a", "first");
    Reader reader = reader_in_a_read('f');
    kv_close(kv);
    CHECK_EQ(rename(path_in(test_dir(), "data.mdb").text, path_in(test_dir(), "away").text), 0);
    kv = open_ok(&options);
    store_ok(kv, "a", "second");
    reader_finish(&reader, 'f');
    kv_close(kv);
    reader_end(reader.child);
}

static void write_until_killed(void)
{
    KvOptions options = owner_options();
    options.file.no_sync = false;
    options.file.flush_ms = FLUSH_MS_MAX;
    options.file.boot_id = "one";
    Kv *kv = open_ok(&options);
    store_ok(kv, "a", "flushed");
    CHECK_EQ(flush_commits(kv_file(kv), NULL), ERROR_NONE);
    store_ok(kv, "a", "not flushed");
    child_is_ready();
}

TEST(a_store_is_not_set_back_under_who_reads_it)
{
    kill_when_ready(write_until_killed);
    Reader reader = reader_in_a_read('n');
    KvOptions options = owner_options();
    options.file.no_sync = false;
    options.file.boot_id = "another, as after a flush that failed";
    ErrorDetail detail = {""};
    CHECK_EQ(open_error(&options, &detail), ERROR_UNAVAILABLE);
    reader_finish(&reader, 'n');
    Kv *kv = open_ok(&options);
    CHECK_STR(stored_at(kv, "a"), "not flushed"); // the log has it
    kv_close(kv);
    reader_end(reader.child);
}
