// Copies of a file that is in use.

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "kv_fixture.h"

static char copy_directory[512];

// A new directory for a copy, and its data file, open.
static int copy_target(int number)
{
    char path[600];
    snprintf(copy_directory, sizeof(copy_directory), "%s/copy-%d", test_dir(), number);
    CHECK_EQ(mkdir(copy_directory, 0700), 0);
    snprintf(path, sizeof(path), "%s/data.mdb", copy_directory);
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(file >= 0);
    return file;
}

static Kv *open_copy(void)
{
    KvOptions options = fixture_options();
    options.file.directory = copy_directory;
    return open_ok(&options);
}

static off_t copy_ok(Kv *kv, int number, bool is_compact)
{
    ErrorDetail detail = {""};
    int file = copy_target(number);
    Error error = data_file_copy(kv_file(kv), file, is_compact, &detail);
    CHECK_STR(detail.text, "");
    CHECK_EQ(error, ERROR_NONE);
    struct stat status;
    CHECK_EQ(fstat(file, &status), 0);
    close(file);
    return status.st_size;
}

TEST(a_copy_holds_what_was_committed_and_not_what_came_after)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    store_ok(f.kv, "a", "1");
    KvTxn *txn = begin_ok(f.kv, /* is_write= */ false);
    copy_ok(f.kv, 1, /* is_compact= */ false);
    kv_abort(&txn);
    store_ok(f.kv, "a", "2");
    Kv *copy = open_copy();
    CHECK_STR(stored_at(copy, "a"), "1");
    kv_close(copy);
}

TEST(a_compact_copy_leaves_free_pages_out)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    char key[16], value[2000];
    memset(value, 'x', sizeof(value));
    value[sizeof(value) - 1] = '\0';
    for (int i = 0; i < 500; i++) {
        snprintf(key, sizeof(key), "key-%d", i);
        store_ok(f.kv, key, value);
    }
    for (int i = 1; i < 500; i++) {
        bool found;
        snprintf(key, sizeof(key), "key-%d", i);
        KvTxn *txn = begin_ok(f.kv, /* is_write= */ true);
        CHECK_EQ(kv_delete(txn, LETTERS, slice_of(key), &found), ERROR_NONE);
        CHECK(found);
        CHECK_EQ(kv_commit(&txn), ERROR_NONE);
    }
    off_t whole = copy_ok(f.kv, 1, /* is_compact= */ false);
    off_t compact = copy_ok(f.kv, 2, /* is_compact= */ true);
    CHECK(compact * 4 < whole);
    Kv *copy = open_copy();
    CHECK(stored_at(copy, "key-0")[0] == 'x');
    CHECK_STR(stored_at(copy, "key-1"), "-");
    kv_close(copy);
}

// A copy pins what it reads: on a slow disk a writer without a limit fills the map meanwhile.
enum { PAIRS_PER_COPY = 200 };

// Two rows that are always written together: a torn copy would hold two numbers.
typedef struct Load {
    Kv *kv;
    atomic_bool is_over;
    atomic_int written, allowed;
} Load;

static void *write_pairs(void *context)
{
    Load *load = context;
    char value[1040];
    for (int i = 1; !atomic_load(&load->is_over); i++) {
        while (i > atomic_load(&load->allowed) && !atomic_load(&load->is_over))
            sched_yield();
        snprintf(value, sizeof(value), "%d %01000d", i, 0);
        KvTxn *txn = begin_ok(load->kv, /* is_write= */ true);
        put_ok(txn, "first", value);
        put_ok(txn, "last", value);
        CHECK_EQ(kv_commit(&txn), ERROR_NONE);
        atomic_store(&load->written, i);
    }
    return NULL;
}

static void check_pair(int least)
{
    Kv *copy = open_copy();
    KvTxn *txn = begin_ok(copy, /* is_write= */ false);
    int first = 0, last = 0;
    CHECK_EQ(sscanf(text_at(txn, "first"), "%d", &first), 1);
    CHECK_EQ(sscanf(text_at(txn, "last"), "%d", &last), 1);
    CHECK_EQ(first, last);
    CHECK(first >= least);
    kv_abort(&txn);
    kv_close(copy);
}

TEST(a_copy_during_writes_is_whole_and_has_all_that_was_committed_before_it)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    Load load = {.kv = f.kv, .allowed = PAIRS_PER_COPY};
    pthread_t writer;
    CHECK_EQ(pthread_create(&writer, NULL, write_pairs, &load), 0);
    while (atomic_load(&load.written) == 0)
        sched_yield();
    for (int i = 0; i < (int)test_scaled(40); i++) {
        atomic_fetch_add(&load.allowed, PAIRS_PER_COPY);
        int before = atomic_load(&load.written);
        copy_ok(f.kv, i, /* is_compact= */ i % 2 == 1);
        check_pair(before);
    }
    atomic_store(&load.is_over, true);
    pthread_join(writer, NULL);
}

TEST(a_copy_that_does_not_fit_says_so)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    store_ok(f.kv, "a", "1");
    struct rlimit limit, small = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
    int file = copy_target(1);
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
    signal(SIGXFSZ, SIG_IGN);
    small.rlim_max = limit.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    ErrorDetail detail = {""};
    Error error = data_file_copy(kv_file(f.kv), file, /* is_compact= */ false, &detail);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    CHECK_EQ(error, ERROR_STORE_FULL);
    CHECK(detail.text[0] != '\0');
    close(file);
}
