// What is there after the process died, and what after the machine did: data.mdb as it was flushed
// last, and what the log has. What a disk makes of unflushed pages is tests/powercut's.

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "harness.h"
#include "kv_fixture.h"
#include "log/record.h"
#include "os/clock.h"

static const char BEFORE[] = "boot before", AFTER[] = "boot after";

static KvOptions relaxed(const char *boot_id)
{
    KvOptions options = fixture_options();
    options.file.no_sync = false;
    options.file.flush_ms = FLUSH_MS_MAX; // nothing is flushed by itself within a test
    options.file.owns_directory = true;
    options.file.boot_id = boot_id;
    return options;
}

static const char *flushed_path(void)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/flushed.mdb", test_dir());
    return path;
}

// "a" is flushed to data.mdb, "b" is not, and there were so many commits since that both meta pages
// are newer.
static void work_until_killed(void)
{
    KvOptions options = relaxed(BEFORE);
    Kv *kv = open_ok(&options);
    store_ok(kv, "a", "flushed");
    CHECK_EQ(flush_commits(kv_file(kv), NULL), ERROR_NONE);
    for (int i = 0; i < 20; i++)
        store_ok(kv, "b", "not flushed");
    child_is_ready();
}

TEST(a_relaxed_store_that_was_closed_has_everything_after_a_reboot)
{
    KvOptions options = relaxed(BEFORE);
    Kv *kv = open_ok(&options);
    store_ok(kv, "a", "1");
    kv_close(kv);
    options = relaxed(AFTER);
    kv = open_ok(&options);
    CHECK_STR(stored_at(kv, "a"), "1");
    CHECK(!recovery_is_set_back(kv_file(kv)));
    kv_close(kv);
}

TEST(a_killed_process_loses_nothing)
{
    kill_when_ready(work_until_killed);
    KvOptions options = relaxed(BEFORE);
    Kv *kv = open_ok(&options);
    CHECK_STR(stored_at(kv, "a"), "flushed");
    CHECK_STR(stored_at(kv, "b"), "not flushed");
    CHECK(!recovery_is_set_back(kv_file(kv)));
    kv_close(kv);
}

static void synced_work_until_killed(void)
{
    KvOptions options = relaxed(BEFORE);
    options.file.flush_ms = 0;
    Kv *kv = open_ok(&options);
    for (int i = 0; i < 20; i++)
        store_ok(kv, i % 2 ? "a" : "b", "in the log");
    child_is_ready();
}

TEST(after_a_reboot_the_log_has_what_data_mdb_lacks)
{
    kill_when_ready(synced_work_until_killed);
    KvOptions options = relaxed(AFTER);
    options.file.flush_ms = 0;
    Kv *kv = open_ok(&options);
    CHECK_STR(stored_at(kv, "a"), "in the log");
    CHECK_STR(stored_at(kv, "b"), "in the log");
    CHECK(!recovery_is_set_back(kv_file(kv)));
    store_ok(kv, "c", "goes on");
    kv_close(kv);
}

TEST(after_a_reboot_a_relaxed_store_may_lack_what_the_log_does_not_say)
{
    kill_when_ready(work_until_killed);
    KvOptions options = relaxed(AFTER);
    Kv *kv = open_ok(&options);
    CHECK_STR(stored_at(kv, "b"), "not flushed"); // for the log was not lost this time
    CHECK(recovery_is_set_back(kv_file(kv)));
    kv_close(kv);
}

// The power took all of the log that was not flushed: this is what the next tests begin with.
static void lose_the_log_when_ready(void (*body)(void))
{
    kill_when_ready(body);
    kv_remove_log(test_dir());
}

TEST(a_reboot_takes_the_store_back_to_the_last_flush)
{
    lose_the_log_when_ready(work_until_killed);
    KvOptions options = relaxed(AFTER);
    Kv *kv = open_ok(&options);
    CHECK_STR(stored_at(kv, "a"), "flushed");
    CHECK_STR(stored_at(kv, "b"), "-");
    CHECK(recovery_is_set_back(kv_file(kv)));
    store_ok(kv, "c", "goes on");
    kv_close(kv);
    // It is said until somebody has taken note.
    kv = open_ok(&options);
    CHECK(recovery_is_set_back(kv_file(kv)));
    CHECK_STR(stored_at(kv, "c"), "goes on");
    recovery_forget_set_back(kv_file(kv), options.file.directory);
    kv_close(kv);
    kv = open_ok(&options);
    CHECK(!recovery_is_set_back(kv_file(kv)));
    kv_close(kv);
}

TEST(a_store_that_is_no_longer_relaxed_is_taken_back_too)
{
    lose_the_log_when_ready(work_until_killed);
    KvOptions options = relaxed(AFTER);
    options.file.flush_ms = 0;
    Kv *kv = open_ok(&options);
    CHECK_STR(stored_at(kv, "b"), "-");
    CHECK(recovery_is_set_back(kv_file(kv)));
    store_ok(kv, "c", "on the disk");
    recovery_forget_set_back(kv_file(kv), options.file.directory);
    kv_close(kv);
    // flushed.mdb says nothing any more, whatever boot comes.
    options = relaxed("a third");
    kv = open_ok(&options);
    CHECK_STR(stored_at(kv, "c"), "on the disk");
    CHECK(!recovery_is_set_back(kv_file(kv)));
    kv_close(kv);
}

TEST(a_kernel_that_does_not_say_which_run_it_is_counts_as_another)
{
    lose_the_log_when_ready(work_until_killed);
    KvOptions options = relaxed("");
    Kv *kv = open_ok(&options);
    CHECK_STR(stored_at(kv, "b"), "-");
    kv_close(kv);
}

TEST(only_the_owner_takes_a_store_back)
{
    lose_the_log_when_ready(work_until_killed);
    KvOptions options = relaxed(AFTER);
    options.file.owns_directory = false;
    options.file.read_only = true;
    ErrorDetail detail = {""};
    CHECK_EQ(open_error(&options, &detail), ERROR_UNAVAILABLE);
    CHECK(strstr(detail.text, "cut off from its disk") != NULL);
    options.file.owns_directory = true;
    Kv *kv = open_ok(&options);
    CHECK_STR(stored_at(kv, "b"), "-");
    kv_close(kv);
}

TEST(another_file_in_its_place_is_left_alone)
{
    char other[600], path[600];
    snprintf(other, sizeof(other), "%s/other", test_dir());
    snprintf(path, sizeof(path), "%s/data.mdb", test_dir());
    CHECK_EQ(mkdir(other, 0700), 0);
    KvOptions options = relaxed(BEFORE);
    options.file.directory = other;
    Kv *kv = open_ok(&options);
    store_ok(kv, "b", "of another store");
    kv_close(kv);

    kill_when_ready(work_until_killed);
    snprintf(other, sizeof(other), "%s/other/data.mdb", test_dir());
    CHECK_EQ(rename(other, path), 0);
    options = relaxed(AFTER);
    kv = open_ok(&options);
    CHECK_STR(stored_at(kv, "b"), "of another store");
    CHECK(!recovery_is_set_back(kv_file(kv)));
    kv_close(kv);
}

static void open_until_killed(void)
{
    KvOptions options = relaxed(BEFORE);
    Kv *kv = open_ok(&options);
    store_ok(kv, "b", "not flushed");
    child_is_ready();
}

TEST(an_empty_file_is_taken_back_to)
{
    lose_the_log_when_ready(open_until_killed);
    KvOptions options = relaxed(AFTER);
    Kv *kv = open_ok(&options);
    CHECK_STR(stored_at(kv, "b"), "-");
    CHECK(recovery_is_set_back(kv_file(kv)));
    kv_close(kv);
}

static void only_open_until_killed(void)
{
    KvOptions options = relaxed(BEFORE);
    (void)open_ok(&options);
    child_is_ready();
}

// Its two pages are whole when the flushed state is put back.
TEST(an_empty_file_that_nobody_wrote_to_is_taken_back_to)
{
    lose_the_log_when_ready(only_open_until_killed);
    KvOptions options = relaxed(AFTER);
    Kv *kv = open_ok(&options);
    CHECK_STR(stored_at(kv, "b"), "-");
    kv_close(kv);
}

// The file is then complete by itself, whatever boot comes.
static void settle_and_part(const char *boot_id)
{
    ErrorDetail detail = {""};
    KvOptions options = relaxed(boot_id);
    CHECK_EQ(kv_settle(&options, &detail), ERROR_NONE);
    CHECK_STR(detail.text, "");
    kv_remove_log(test_dir());
    options = relaxed("a third");
    CHECK_EQ(kv_settle(&options, &detail), ERROR_NONE);
}

TEST(a_settled_store_has_all_that_a_killed_process_wrote)
{
    kill_when_ready(work_until_killed);
    settle_and_part(BEFORE);
    KvOptions options = relaxed("a third");
    Kv *kv = open_ok(&options);
    CHECK_STR(stored_at(kv, "b"), "not flushed");
    CHECK(!recovery_is_set_back(kv_file(kv)));
    kv_close(kv);
}

TEST(a_settled_store_is_as_it_was_flushed_before_the_power_went)
{
    lose_the_log_when_ready(work_until_killed);
    settle_and_part(AFTER);
    KvOptions options = relaxed("a third");
    Kv *kv = open_ok(&options);
    CHECK(recovery_is_set_back(kv_file(kv))); // its watchers are still to be told
    kv_close(kv);
    CHECK_EQ(unlink(flushed_path()), 0);
    kv = open_ok(&options);
    CHECK_STR(stored_at(kv, "a"), "flushed");
    CHECK_STR(stored_at(kv, "b"), "-");
    kv_close(kv);
}

TEST(a_store_that_is_not_there_settles)
{
    ErrorDetail detail = {""};
    KvOptions options = relaxed(AFTER);
    CHECK_EQ(kv_settle(&options, &detail), ERROR_NONE);
    CHECK(access(flushed_path(), F_OK) != 0);
}

TEST(a_file_without_what_was_flushed_is_corrupt)
{
    kill_when_ready(work_until_killed);
    char path[600];
    snprintf(path, sizeof(path), "%s/data.mdb", test_dir());
    int file = open(path, O_WRONLY);
    static const char ZEROS[4096];
    struct stat status;
    CHECK_EQ(fstat(file, &status), 0);
    for (off_t at = 2 * 4096; at < status.st_size; at += 4096) {
        CHECK_EQ(pwrite(file, ZEROS, sizeof(ZEROS), at), 4096);
    }
    close(file);
    KvOptions options = relaxed(AFTER);
    ErrorDetail detail = {""};
    CHECK_EQ(open_error(&options, &detail), ERROR_CORRUPT);
    CHECK(strstr(detail.text, "lacks what was flushed") != NULL);
    CHECK(strstr(detail.text, "restore-backup") != NULL);
    CHECK_EQ(kv_settle(&options, &detail), ERROR_CORRUPT);
}

TEST(a_torn_place_of_flushed_mdb_leaves_the_other)
{
    kill_when_ready(work_until_killed);
    int file = open(flushed_path(), O_RDWR);
    char byte;
    // Either place may be the newer one: with both torn nothing can be said.
    for (off_t place = 0; place < 2; place++) {
        CHECK_EQ(pread(file, &byte, 1, place * 4096 + 100), 1);
        byte ^= 1;
        CHECK_EQ(pwrite(file, &byte, 1, place * 4096 + 100), 1);
        if (place == 1) break;
        KvOptions options = relaxed(BEFORE);
        options.file.flush_ms = 0;
        options.file.read_only = true;
        kv_close(open_ok(&options));
    }
    close(file);
    KvOptions options = relaxed(BEFORE);
    ErrorDetail detail = {""};
    CHECK_EQ(open_error(&options, &detail), ERROR_CORRUPT);
    CHECK(strstr(detail.text, "flushed.mdb is damaged") != NULL);
}

TEST(a_new_file_that_never_held_a_commit_is_made_anew)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/data.mdb", test_dir());
    // As a power cut leaves it: its size is there, and nothing of its pages.
    int file = open(path, O_RDWR | O_CREAT, 0600);
    CHECK_EQ(ftruncate(file, 2 * sysconf(_SC_PAGESIZE)), 0);
    close(file);
    KvOptions options = relaxed(BEFORE);
    options.file.flush_ms = 0;
    Kv *kv = open_ok(&options);
    store_ok(kv, "a", "1");
    kv_close(kv);
}

TEST(stats_say_what_is_not_flushed)
{
    KvOptions options = relaxed(BEFORE);
    Kv *kv = open_ok(&options);
    KvFlushStats stats;
    kv_flush_stats(kv, &stats);
    CHECK(stats.is_relaxed);
    CHECK_EQ(stats.commits, 0);
    store_ok(kv, "a", "1");
    store_ok(kv, "a", "2");
    kv_flush_stats(kv, &stats);
    CHECK_EQ(stats.commits, 2);
    CHECK(stats.bytes >= 2 * LOG_HEADER_BYTES);
    CHECK_EQ(kv_flush(kv, NULL), ERROR_NONE);
    kv_flush_stats(kv, &stats);
    CHECK_EQ(stats.commits, 0);
    CHECK_EQ(stats.bytes, 0);
    kv_close(kv);
    options.file.flush_ms = 0;
    kv = open_ok(&options);
    store_ok(kv, "a", "3");
    kv_flush_stats(kv, &stats);
    CHECK(!stats.is_relaxed);
    CHECK_EQ(stats.commits, 0);
    CHECK_EQ(kv_flush(kv, NULL), ERROR_NONE);
    kv_close(kv);
}

// Without a flush no page of an overwritten value is used again: writes wait for one instead.
// TINE_GROWTH_SECONDS=600 writes for so long.
TEST(a_relaxed_store_does_not_grow_without_end)
{
    KvOptions options = relaxed(BEFORE);
    options.file.map_bytes = (size_t)1 << 30;
    Kv *kv = open_ok(&options);
    static char text[4000];
    memset(text, 'x', sizeof(text) - 1);
    KvStats stats;
    const char *said = getenv("TINE_GROWTH_SECONDS");
    int64_t until_ns = said ? clock_monotonic_ns() + strtol(said, NULL, 10) * 1000000000 : 0;
    size_t i = 0;
    for (; i < test_scaled(20000) || clock_monotonic_ns() < until_ns; i++) {
        char key[16];
        snprintf(key, sizeof(key), "%zu", i * 7919 % 500);
        store_ok(kv, key, text);
    }
    CHECK_EQ(kv_stats(kv, NULL, &stats), ERROR_NONE);
    printf("%zu commits over 2 MB of values: %.1f MiB\n", i, (double)stats.used_bytes / (1 << 20));
    CHECK(stats.used_bytes < 3 * (uint64_t)UNFLUSHED_BYTES_MAX);
    kv_close(kv);
}
