// A full store, in the three ways a store can be full: nothing is lost, and it recovers.

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "harness.h"
#include "kv_fixture.h"

enum { BATCH_ROWS = 24, BATCHES_MAX = 1000 };

// One transaction of values of a page each, or the first error.
static Error write_batch(Kv *kv, int batch)
{
    static const uint8_t PAGE[VALUE_BYTES_MAX];
    CLEANUP(kv_abortp) KvTxn *txn = NULL;
    ErrorDetail detail = {""};
    Error error = kv_begin(kv, /* is_write= */ true, &detail, &txn);
    if (error) return error;
    for (int i = 0; i < BATCH_ROWS; i++) {
        char key[32];
        snprintf(key, sizeof key, "%06d-%02d", batch, i);
        error = kv_put(txn, NUMBERS, slice_of(key), slice(PAGE, sizeof PAGE));
        if (error) return error;
    }
    error = kv_commit(&txn);
    if (error) printf("batch %d: %s\n", batch, detail.text);
    return error;
}

// Full is what refuses a batch twice: the flush between may free pages, and records of the log.
static int fill_up(Kv *kv)
{
    for (int batch = 0; batch < BATCHES_MAX; batch++) {
        Error error = write_batch(kv, batch);
        if (error) error = write_batch(kv, batch);
        if (!error) continue;
        CHECK_EQ(error, ERROR_STORE_FULL);
        return batch;
    }
    CHECK_STR("the store never became full", NULL);
    return 0;
}

static uint64_t number_rows(Kv *kv)
{
    KvStats stats;
    CHECK_EQ(kv_stats(kv, NULL, &stats), ERROR_NONE);
    return stats.rows[NUMBERS];
}

static void delete_batch(Kv *kv, int batch)
{
    KvTxn *txn = begin_ok(kv, /* is_write= */ true);
    for (int i = 0; i < BATCH_ROWS; i++) {
        char key[32];
        bool found;
        snprintf(key, sizeof key, "%06d-%02d", batch, i);
        CHECK_EQ(kv_delete(txn, NUMBERS, slice_of(key), &found), ERROR_NONE);
        CHECK(found);
    }
    CHECK_EQ(kv_commit(&txn), ERROR_NONE);
}

// The flusher may still need the free pages. A write that is refused for that asks for a flush.
static void write_batch_soon(Kv *kv, int batch)
{
    Error error = write_batch(kv, batch);
    if (error == ERROR_STORE_FULL) error = write_batch(kv, batch);
    CHECK_EQ(error, ERROR_NONE);
}

static void fill_map(bool is_ephemeral)
{
    KvOptions options = fixture_options();
    options.file.map_bytes = 1 << 20;
    options.file.no_sync = is_ephemeral;
    Kv *kv = open_ok(&options);
    store_ok(kv, "a", "1");
    int batch = fill_up(kv);
    CHECK(batch > 0);
    CHECK_EQ(number_rows(kv), batch * BATCH_ROWS);
    CHECK_STR(stored_at(kv, "a"), "1");
    store_ok(kv, "a", "small writes go on");

    delete_batch(kv, 0);
    store_ok(kv, "a", "pages are free two transactions later");
    if (is_ephemeral) CHECK_EQ(write_batch(kv, batch), ERROR_NONE);
    if (!is_ephemeral) write_batch_soon(kv, batch);
    kv_close(kv);
}

TEST(full_map_refuses_the_batch_and_takes_it_after_deletes)
{
    fill_map(/* is_ephemeral= */ true);
}

// The log has nothing of what is refused, and pages that are free in the file need no room.
TEST(full_map_of_a_store_with_a_log_takes_the_batch_after_deletes)
{
    fill_map(/* is_ephemeral= */ false);
}

TEST(failure_is_remembered_until_the_transaction_ends)
{
    KvOptions options = fixture_options();
    options.file.map_bytes = 256 << 10;
    Kv *kv = open_ok(&options);
    static const uint8_t LARGE[512 << 10];
    KvTxn *txn = begin_ok(kv, /* is_write= */ true);
    bool found;
    Slice value;
    put_ok(txn, "a", "1");
    CHECK_EQ(kv_put(txn, LETTERS, slice_of("b"), slice(LARGE, sizeof LARGE)), ERROR_STORE_FULL);
    CHECK_EQ(kv_put(txn, LETTERS, slice_of("c"), slice_of("3")), ERROR_STORE_FULL);
    CHECK_EQ(kv_get(txn, LETTERS, slice_of("a"), &found, &value), ERROR_STORE_FULL);
    CHECK_EQ(kv_write_count(txn), 2);
    CHECK_EQ(kv_commit(&txn), ERROR_STORE_FULL);
    store_ok(kv, "a", "2");
    kv_close(kv);
}

// The same on a real full disk. LMDB is told ENOSPC, or sees a short write and says EIO.
TEST(full_disk_loses_nothing_and_recovers)
{
    if (geteuid() != 0 || unshare(CLONE_NEWNS)) SKIP("needs root to mount a tmpfs");
    char directory[512];
    snprintf(directory, sizeof directory, "%s/disk", test_dir());
    CHECK_EQ(mkdir(directory, 0700), 0);
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("tmpfs", directory, "tmpfs", 0, "size=3m"))
        SKIP("cannot mount a tmpfs");

    KvOptions options = fixture_options();
    options.file.directory = directory;
    options.file.no_sync = false;
    Kv *kv = open_ok(&options);
    store_ok(kv, "a", "1");
    int batch = fill_up(kv);
    CHECK_EQ(number_rows(kv), batch * BATCH_ROWS);
    CHECK_EQ(write_batch(kv, batch), ERROR_STORE_FULL);
    CHECK_STR(stored_at(kv, "a"), "1");
    delete_batch(kv, 0);
    delete_batch(kv, 1);
    store_ok(kv, "a", "pages are free two transactions later");
    write_batch_soon(kv, 0);
    write_batch_soon(kv, 1);
    store_ok(kv, "a", "1");

    CHECK_EQ(mount(NULL, directory, NULL, MS_REMOUNT, "size=8m"), 0);
    CHECK_EQ(write_batch(kv, batch), ERROR_NONE);
    kv_close(kv);
    kv = open_ok(&options);
    CHECK_EQ(number_rows(kv), (batch + 1) * BATCH_ROWS);
    kv_close(kv);
    CHECK_EQ(umount2(directory, MNT_DETACH), 0);
}

TEST(file_size_limit_is_a_full_disk)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    store_ok(f.kv, "a", "1");
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
    struct rlimit small = {.rlim_cur = 500000, .rlim_max = limit.rlim_max}; // inside a page
    signal(SIGXFSZ, SIG_IGN);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    int batch = fill_up(f.kv);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    CHECK(batch > 0);
    CHECK_EQ(number_rows(f.kv), batch * BATCH_ROWS);
    CHECK_EQ(write_batch(f.kv, batch), ERROR_NONE);
    CHECK_STR(stored_at(f.kv, "a"), "1");
}
