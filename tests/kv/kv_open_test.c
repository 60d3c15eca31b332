// Opening, closing and sharing: other opens, other processes, other file systems, broken files.

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "harness.h"
#include "kv_fixture.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED true
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED false
#endif

static const char *file_path(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", test_dir(), name);
    return path;
}

static void write_file(const char *name, const char *bytes, size_t size)
{
    int file = open(file_path(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0);
    CHECK_EQ(write(file, bytes, size), (ssize_t)size);
    CHECK_EQ(close(file), 0);
}

TEST(reopened_store_has_what_was_committed)
{
    Fixture f = fixture_open();
    store_ok(f.kv, "a", "1");
    fixture_close(&f);
    CLEANUP(fixture_close) Fixture again = fixture_open();
    CHECK_STR(stored_at(again.kv, "a"), "1");
}

TEST(close_of_nothing_is_allowed)
{
    kv_close(NULL);
}

TEST(files_are_private_and_closed_on_exec)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    CHECK(f.kv != NULL);
    struct stat status;
    CHECK_EQ(stat(file_path("data.mdb"), &status), 0);
    CHECK_EQ(status.st_mode & 0777, 0600);
    CHECK_EQ(stat(file_path("lock.mdb"), &status), 0);
    CHECK_EQ(status.st_mode & 0777, 0600);

    int count = 0;
    for (int file = 3; file < 100; file++) {
        char link[64], path[512];
        snprintf(link, sizeof link, "/proc/self/fd/%d", file);
        ssize_t size = readlink(link, path, sizeof path - 1);
        if (size < 4 || memcmp(path + size - 4, ".mdb", 4) != 0) continue;
        count++;
        CHECK_EQ(fcntl(file, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    }
    CHECK(count >= 2);
}

TEST(second_open_in_the_process_is_refused)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    KvOptions options = fixture_options();
    ErrorDetail detail = {""};
    CHECK_EQ(open_error(&options, &detail), ERROR_UNAVAILABLE);
    CHECK(strstr(detail.text, "already open in this process") != NULL);

    // Under another name, too, and when only the lock file is the same.
    char alias[600];
    snprintf(alias, sizeof alias, "%s/../%s", test_dir(), strrchr(test_dir(), '/') + 1);
    options.file.directory = alias;
    CHECK_EQ(open_error(&options, &detail), ERROR_UNAVAILABLE);
    CHECK_EQ(unlink(file_path("data.mdb")), 0);
    CHECK_EQ(open_error(&options, &detail), ERROR_UNAVAILABLE);
    store_ok(f.kv, "a", "still works");
}

TEST(missing_directory_is_an_io_error_with_a_text)
{
    KvOptions options = fixture_options();
    options.file.directory = "/nonexistent/store";
    ErrorDetail detail = {""};
    CHECK_EQ(open_error(&options, &detail), ERROR_IO);
    CHECK(strstr(detail.text, "/nonexistent/store: No such file or directory") != NULL);
    CHECK_EQ(open_error(&options, NULL), ERROR_IO);
}

TEST(read_only_open_of_nothing_creates_nothing)
{
    KvOptions options = fixture_options();
    options.file.read_only = true;
    ErrorDetail detail = {""};
    CHECK_EQ(open_error(&options, &detail), ERROR_IO);
    CHECK_EQ(access(file_path("data.mdb"), F_OK), -1);
    CHECK_EQ(access(file_path("lock.mdb"), F_OK), -1);
}

TEST(read_only_store_reads)
{
    Fixture f = fixture_open();
    store_ok(f.kv, "a", "1");
    fixture_close(&f);
    KvOptions options = fixture_options();
    options.file.read_only = true;
    Kv *kv = open_ok(&options);
    CHECK_STR(stored_at(kv, "a"), "1");
    kv_close(kv);
}

TEST(rows_without_a_commit_row_are_corrupt)
{
    Fixture f = fixture_open();
    store_ok(f.kv, "a", "1");
    fixture_close(&f);
    CHECK_EQ(flip_bit("\x80"
                      "commit",
                      7, 3),
             1);
    KvOptions options = fixture_options();
    ErrorDetail detail = {""};
    CHECK_EQ(open_error(&options, &detail), ERROR_CORRUPT);
    CHECK(strstr(detail.text, "its commit row is missing") != NULL);
}

static int open_as_nobody(void *context)
{
    const KvOptions *options = context;
    if (chown(options->file.directory, 65534, 65534) || chmod(options->file.directory, 0500))
        return 10;
    if (setgid(65534) || setuid(65534)) return 11;
    ErrorDetail detail = {""};
    Kv *kv;
    Error error = kv_open(options, &detail, &kv);
    return error == ERROR_IO && strstr(detail.text, "Permission denied") ? 0 : 1;
}

TEST(read_only_directory_is_an_io_error_with_a_text)
{
    if (geteuid() != 0) SKIP("needs root to become somebody else");
    KvOptions options = fixture_options();
    CHECK_EQ(in_child(open_as_nobody, &options), 0);
}

TEST(garbage_is_corrupt)
{
    char garbage[10000];
    memset(garbage, 'x', sizeof garbage);
    write_file("data.mdb", garbage, sizeof garbage);
    KvOptions options = fixture_options();
    ErrorDetail detail = {""};
    CHECK_EQ(open_error(&options, &detail), ERROR_CORRUPT);
    CHECK(strstr(detail.text, "data.mdb") != NULL);

    write_file("data.mdb", garbage, 10);
    CHECK_EQ(open_error(&options, &detail), ERROR_CORRUPT);

    // The failed opens left nothing registered.
    CHECK_EQ(unlink(file_path("data.mdb")), 0);
    kv_close(open_ok(&options));
}

TEST(file_cut_short_is_corrupt_and_no_crash)
{
    Fixture f = fixture_open();
    fill_pages(f.kv);
    fixture_close(&f);
    CHECK_EQ(truncate(file_path("data.mdb"), 2 * 4096), 0);
    KvOptions options = fixture_options();
    ErrorDetail detail = {""};
    CHECK_EQ(open_error(&options, &detail), ERROR_CORRUPT);
}

// Makes the store's directory read-only for this process alone.
static bool freeze_directory(void)
{
    return geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
           mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount(test_dir(), test_dir(), NULL, MS_BIND, NULL) == 0 &&
           mount(NULL, test_dir(), NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) == 0;
}

enum { CANNOT_FREEZE = 99 };

static int read_frozen_in_use(void *context)
{
    (void)context;
    if (!freeze_directory()) return CANNOT_FREEZE;
    KvOptions options = fixture_options();
    options.file.read_only = true;
    ErrorDetail detail = {""};
    Kv *kv;
    if (kv_open(&options, &detail, &kv) != ERROR_IO) return 1;
    return strstr(detail.text, "in use by another process") ? 0 : 2;
}

TEST(store_in_use_is_not_read_without_its_locks)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    store_ok(f.kv, "a", "1");
    int code = in_child(read_frozen_in_use, NULL);
    if (code == CANNOT_FREEZE) SKIP("needs root to mount");
    CHECK_EQ(code, 0);
}

static int read_frozen(void *context)
{
    (void)context;
    if (!freeze_directory()) return CANNOT_FREEZE;
    KvOptions options = fixture_options();
    options.file.read_only = true;
    Kv *kv = open_ok(&options);
    bool is_read = strcmp(stored_at(kv, "a"), "1") == 0;
    kv_close(kv);
    options.file.is_beside = true; // whoever writes may come
    ErrorDetail detail = {""};
    return is_read && open_error(&options, &detail) == ERROR_IO ? 0 : 1;
}

TEST(store_on_a_read_only_medium_is_read)
{
    Fixture f = fixture_open();
    store_ok(f.kv, "a", "1");
    fixture_close(&f);
    int code = in_child(read_frozen, NULL);
    if (code == CANNOT_FREEZE) SKIP("needs root to mount");
    CHECK_EQ(code, 0);
    CHECK_EQ(unlink(file_path("lock.mdb")), 0); // as a copy has it
    CHECK_EQ(in_child(read_frozen, NULL), 0);
}

static int use_inherited(void *context)
{
    Kv *kv = context;
    KvTxn *txn = NULL;
    KvStats stats;
    if (kv_begin(kv, /* is_write= */ false, NULL, &txn) != ERROR_UNAVAILABLE) return 1;
    if (kv_begin(kv, /* is_write= */ true, NULL, &txn) != ERROR_UNAVAILABLE) return 2;
    if (kv_stats(kv, NULL, &stats) != ERROR_UNAVAILABLE) return 3;
    if (reader_slots_clear_dead(kv_file(kv)) != 0) return 4;
    kv_close(kv);
    return 0;
}

TEST(child_of_fork_is_refused_and_harms_nobody)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    store_ok(f.kv, "a", "old");
    CLEANUP(kv_abortp) KvTxn *reader = begin_ok(f.kv, /* is_write= */ false);
    CHECK_EQ(in_child(use_inherited, f.kv), 0);

    // Closing in the child must not have freed our reader's slot, or its pages would be reused.
    KvStats stats;
    CHECK_EQ(kv_stats(f.kv, NULL, &stats), ERROR_NONE);
    CHECK_EQ(stats.readers, 1);
    for (int i = 0; i < 20; i++)
        store_ok(f.kv, "a", "new");
    CHECK_STR(text_at(reader, "a"), "old");
}

static int end_inherited(void *context)
{
    KvTxn **txns = context;
    kv_abort(&txns[0]);
    return kv_commit(&txns[1]) == ERROR_UNAVAILABLE ? 0 : 1;
}

TEST(transactions_end_in_the_process_that_began_them)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    KvTxn *txns[2] = {begin_ok(f.kv, /* is_write= */ false), begin_ok(f.kv, /* is_write= */ true)};
    put_ok(txns[1], "a", "1");
    CHECK_EQ(in_child(end_inherited, txns), 0);

    // The child did not free the reader's slot.
    KvStats stats;
    CHECK_EQ(kv_stats(f.kv, NULL, &stats), ERROR_NONE);
    CHECK_EQ(stats.readers, 1);
    CHECK_EQ(kv_commit(&txns[1]), ERROR_NONE);
    CHECK_STR(text_at(txns[0], "a"), "-");
    kv_abort(&txns[0]);
    CHECK_STR(stored_at(f.kv, "a"), "1");
}

static int open_anew(void *context)
{
    (void)context;
    KvOptions options = fixture_options();
    Kv *kv;
    if (kv_open(&options, NULL, &kv)) return 1;
    store_ok(kv, "a", "from the child");
    kv_close(kv);
    return 0;
}

TEST(child_of_fork_may_open_the_file_anew)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    CHECK_EQ(in_child(open_anew, NULL), 0);
    CHECK_STR(stored_at(f.kv, "a"), "from the child");
}

static void read_until_killed(void)
{
    KvOptions options = fixture_options();
    Kv *kv;
    KvTxn *txn;
    if (kv_open(&options, NULL, &kv) || kv_begin(kv, /* is_write= */ false, NULL, &txn)) return;
    child_is_ready();
}

TEST(reader_that_was_killed_is_cleared)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    store_ok(f.kv, "a", "1");
    kill_when_ready(read_until_killed);
    KvStats stats;
    CHECK_EQ(kv_stats(f.kv, NULL, &stats), ERROR_NONE);
    CHECK_EQ(stats.readers, 1);
    CHECK_EQ(reader_slots_clear_dead(kv_file(f.kv)), 1);
    CHECK_EQ(reader_slots_clear_dead(kv_file(f.kv)), 0);
    CHECK_EQ(kv_stats(f.kv, NULL, &stats), ERROR_NONE);
    CHECK_EQ(stats.readers, 0);
}

static void write_until_killed(void)
{
    KvOptions options = fixture_options();
    Kv *kv;
    KvTxn *txn;
    if (kv_open(&options, NULL, &kv) || kv_begin(kv, /* is_write= */ true, NULL, &txn)) return;
    put_ok(txn, "a", "lost");
    child_is_ready();
}

TEST(writer_that_was_killed_leaves_nothing_and_no_lock)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    store_ok(f.kv, "a", "1");
    kill_when_ready(write_until_killed);
    CHECK_STR(stored_at(f.kv, "a"), "1");
    store_ok(f.kv, "a", "2");
    CHECK_STR(stored_at(f.kv, "a"), "2");
}

TEST(readers_past_the_limit_are_refused)
{
    enum { COUNT = 8 };
    KvOptions options = fixture_options();
    options.file.readers_max = COUNT;
    Kv *kv = open_ok(&options);
    KvStats stats;
    CHECK_EQ(kv_stats(kv, NULL, &stats), ERROR_NONE);
    CHECK_EQ(stats.readers_max, COUNT);
    KvTxn *readers[COUNT];
    for (int i = 0; i < COUNT; i++)
        readers[i] = begin_ok(kv, /* is_write= */ false);
    KvTxn *extra = NULL;
    CHECK_EQ(kv_begin(kv, /* is_write= */ false, NULL, &extra), ERROR_UNAVAILABLE);
    CHECK(extra == NULL);
    kv_abort(&readers[3]);
    extra = begin_ok(kv, /* is_write= */ false);
    kv_abort(&extra);
    for (int i = 0; i < COUNT; i++)
        kv_abort(&readers[i]);
    kv_close(kv);
}

// A flush reads, too. It has slots of its own, so readers up to the limit do not stop it, and none
// of its slots is lost.
TEST(readers_up_to_the_limit_leave_the_flusher_its_slots)
{
    enum { COUNT = 8, FLUSHES = 5 };
    KvOptions options = fixture_options();
    options.file.readers_max = COUNT;
    options.file.no_sync = false;
    options.file.flush_data_ms = FLUSH_MS_MAX; // only when it is asked to
    Kv *kv = open_ok(&options);
    KvStats stats;
    CHECK_EQ(kv_stats(kv, NULL, &stats), ERROR_NONE);
    CHECK_EQ(stats.readers_max, COUNT);
    KvTxn *readers[COUNT], *extra = NULL;
    for (int i = 0; i < COUNT; i++)
        readers[i] = begin_ok(kv, /* is_write= */ false);
    CHECK_EQ(kv_begin(kv, /* is_write= */ false, NULL, &extra), ERROR_UNAVAILABLE);
    for (int i = 0; i < FLUSHES; i++) {
        store_ok(kv, "a", "with all readers");
        CHECK_EQ(flush_commits(kv_file(kv), NULL), ERROR_NONE);
    }
    CHECK_EQ(kv_begin(kv, /* is_write= */ false, NULL, &extra), ERROR_UNAVAILABLE);
    ReaderSlots slots;
    reader_slots_survey(kv_file(kv), &slots);
    CHECK_EQ(slots.count, COUNT);
    for (int i = 0; i < COUNT; i++)
        kv_abort(&readers[i]);
    kv_close(kv);
}

TEST(dead_reader_makes_room_when_all_slots_are_taken)
{
    enum { COUNT = 4 };
    KvOptions options = fixture_options();
    options.file.readers_max = COUNT;
    Kv *kv = open_ok(&options);
    kill_when_ready(read_until_killed);
    KvTxn *readers[COUNT];
    for (int i = 0; i < COUNT; i++)
        readers[i] = begin_ok(kv, /* is_write= */ false);
    for (int i = 0; i < COUNT; i++)
        kv_abort(&readers[i]);
    kv_close(kv);
}

TEST(map_is_sized_from_the_disk)
{
    KvOptions options = fixture_options();
    options.file.map_bytes = 0;
    Kv *kv = open_ok(&options);
    KvStats stats;
    CHECK_EQ(kv_stats(kv, NULL, &stats), ERROR_NONE);
    CHECK(stats.map_bytes >= UINT64_C(64) << 30);
    CHECK_EQ(stats.map_bytes % 4096, 0);
    kv_close(kv);
}

static int open_in_little_space(void *context)
{
    struct rlimit limit = {.rlim_cur = (rlim_t)3 << 30, .rlim_max = (rlim_t)3 << 30};
    if (setrlimit(RLIMIT_AS, &limit)) return 1;
    const KvOptions *options = context;
    Kv *kv;
    KvStats stats;
    if (kv_open(options, NULL, &kv)) return 2;
    store_ok(kv, "a", "1");
    if (kv_stats(kv, NULL, &stats)) return 3;
    kv_close(kv);
    return stats.map_bytes >= UINT64_C(1) << 30 && stats.map_bytes < UINT64_C(3) << 30 ? 0 : 4;
}

TEST(map_shrinks_where_address_space_is_scarce)
{
    if (IS_SANITIZED) SKIP("a sanitizer needs the address space itself");
    KvOptions options = fixture_options();
    options.file.map_bytes = 0;
    CHECK_EQ(in_child(open_in_little_space, &options), 0);
}

TEST(network_file_systems_are_not_local)
{
    static const struct {
        unsigned long f_type;
        const char *name; // NULL: local
    } ROWS[] = {
        {NFS_SUPER_MAGIC, "NFS"},
        {SMB_SUPER_MAGIC, "SMB"},
        {SMB2_SUPER_MAGIC, "SMB"},
        {CIFS_SUPER_MAGIC, "CIFS"},
        {V9FS_MAGIC, "9p"},
        {FUSE_SUPER_MAGIC, "FUSE"},
        {EXT4_SUPER_MAGIC, NULL},
        {XFS_SUPER_MAGIC, NULL},
        {BTRFS_SUPER_MAGIC, NULL},
        {TMPFS_MAGIC, NULL},
        {OVERLAYFS_SUPER_MAGIC, NULL},
        {0, NULL},
        {0xffffffffff534d42UL, "CIFS"}, // as a 32-bit int arrives
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const char *name = NULL;
        CHECK_EQ(file_system_is_local(ROWS[i].f_type, &name), ROWS[i].name == NULL);
        CHECK_STR(name, ROWS[i].name);
    }
}
