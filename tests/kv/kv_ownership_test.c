// A file that somebody else changes while this process has it open: the next write is refused, and
// what both had committed is still there.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "harness.h"
#include "kv/durable/ownership.h"
#include "kv_fixture.h"

static KvOptions kept_options(void)
{
    KvOptions options = fixture_options();
    options.file.no_sync = false;
    return options;
}

static KvOptions relaxed_options(void)
{
    KvOptions options = kept_options();
    options.file.flush_ms = FLUSH_MS_MAX; // nothing is flushed by itself within a test
    return options;
}

static const char *path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
    return path;
}

// The other process: opens the file as if there were no locks, and writes.
static int write_as_other(void *context)
{
    KvOptions options = kept_options();
    Kv *kv = open_ok(&options);
    for (int i = 0; i < *(int *)context; i++)
        store_ok(kv, "b", "other");
    kv_close(kv);
    return 0;
}

static void other_writes(int count)
{
#if defined(__SANITIZE_THREAD__)
    SKIP("TSan lets no child of fork start threads, and who writes has a log with one");
#endif
    CHECK_EQ(in_child(write_as_other, &count), 0);
}

// A write transaction must be refused, now and later, with a sentence that has `word`.
static void check_refused(Kv *kv, const char *word)
{
    for (int i = 0; i < 2; i++) {
        ErrorDetail detail = {""};
        KvTxn *txn = NULL;
        CHECK_EQ(kv_begin(kv, /* is_write= */ true, &detail, &txn), ERROR_IO);
        CHECK(txn == NULL);
        printf("%s\n", detail.text);
        CHECK(strstr(detail.text, word) != NULL);
        CHECK(strstr(detail.text, path_of("data.mdb")) != NULL);
    }
    CHECK(ownership_is_lost(kv_file(kv)));
    ErrorDetail cause = {""};
    ownership_tell_loss(kv_file(kv), &cause);
    CHECK(strstr(cause.text, word) != NULL);
}

static void check_has_both(void)
{
    KvOptions options = kept_options();
    Kv *kv = open_ok(&options);
    CHECK_STR(stored_at(kv, "a"), "ours");
    CHECK_STR(stored_at(kv, "b"), "other");
    store_ok(kv, "c", "later");
    kv_close(kv);
}

static void check_other_is_noticed(KvOptions options, int other_count)
{
    Kv *kv = open_ok(&options);
    store_ok(kv, "a", "ours");
    other_writes(other_count);
    check_refused(kv, "written to by another process");
    CHECK_STR(stored_at(kv, "b"), "other");
    kv_close(kv);
    check_has_both();
}

TEST(a_write_after_that_of_another_process_is_refused)
{
    check_other_is_noticed(kept_options(), 1);
}

TEST(a_write_after_many_of_another_process_is_refused)
{
    check_other_is_noticed(kept_options(), 7);
}

TEST(a_relaxed_store_refuses_a_write_after_that_of_another_process)
{
    check_other_is_noticed(relaxed_options(), 1);
}

TEST(a_relaxed_store_that_another_process_wrote_to_is_not_flushed)
{
    KvOptions options = relaxed_options();
    Kv *kv = open_ok(&options);
    store_ok(kv, "a", "ours");
    other_writes(1);
    ErrorDetail detail = {""};
    flush_again(kv_file(kv));
    CHECK(flush_has_failed(kv_file(kv)));
    flush_tell_failure(kv_file(kv), &detail);
    CHECK(strstr(detail.text, "another process") != NULL);
    check_refused(kv, "another process");
    kv_close(kv);
    check_has_both();
}

// LMDB counts in lock.mdb, which the other process may not share.
TEST(a_write_is_refused_after_that_of_a_process_with_a_lock_file_of_its_own)
{
    for (int count = 1; count < 5; count++) {
        KvOptions options = kept_options();
        Kv *kv = open_ok(&options);
        store_ok(kv, "a", "ours");
        CHECK_EQ(unlink(path_of("lock.mdb")), 0);
        other_writes(count);
        check_refused(kv, "written to by another process");
        kv_close(kv);
        CHECK_EQ(unlink(path_of("lock.mdb")), 0);
        check_has_both();
    }
}

TEST(a_transaction_that_another_process_overtook_writes_nothing)
{
    KvOptions options = kept_options();
    Kv *kv = open_ok(&options);
    store_ok(kv, "a", "ours");
    ErrorDetail detail = {""};
    KvTxn *txn = NULL;
    CHECK_EQ(kv_begin(kv, /* is_write= */ true, &detail, &txn), ERROR_NONE);
    put_ok(txn, "a", "never");
    CHECK_EQ(unlink(path_of("lock.mdb")), 0);
    other_writes(1);
    CHECK_EQ(kv_commit(&txn), ERROR_IO);
    CHECK(strstr(detail.text, "another process") != NULL);
    check_refused(kv, "another process");
    kv_close(kv);
    CHECK_EQ(unlink(path_of("lock.mdb")), 0);
    check_has_both();
}

TEST(a_process_that_only_reads_is_no_other_writer)
{
    KvOptions options = kept_options();
    Kv *kv = open_ok(&options);
    store_ok(kv, "a", "ours");
    other_writes(0);
    store_ok(kv, "b", "ours");
    kv_close(kv);
}

TEST(transactions_that_change_nothing_do_not_count)
{
    KvOptions options = relaxed_options();
    Kv *kv = open_ok(&options);
    for (int i = 0; i < 3; i++) {
        KvTxn *txn = begin_ok(kv, /* is_write= */ true);
        kv_abort(&txn);
        txn = begin_ok(kv, /* is_write= */ true);
        put_ok(txn, "a", "never");
        kv_abort(&txn);
        txn = begin_ok(kv, /* is_write= */ true);
        CHECK_EQ(kv_commit(&txn), ERROR_NONE);
        txn = begin_ok(kv, /* is_write= */ true);
        bool found;
        CHECK_EQ(kv_delete(txn, LETTERS, slice_of("nothing"), &found), ERROR_NONE);
        CHECK_EQ(kv_commit(&txn), ERROR_NONE);
        CHECK_EQ(flush_commits(kv_file(kv), NULL), ERROR_NONE);
        store_ok(kv, "a", "ours");
    }
    kv_close(kv);
}

// Does something to data.mdb, after which a write must be refused.
static void check_file_is_noticed(void (*change)(const char *path), const char *word)
{
    KvOptions options = kept_options();
    Kv *kv = open_ok(&options);
    store_ok(kv, "a", "ours");
    store_ok(kv, "b", "ours"); // its begin notes that the file has grown
    change(path_of("data.mdb"));
    ErrorDetail detail = {""};
    CHECK_EQ(ownership_check_name(kv_file(kv), &detail), ERROR_IO);
    CHECK(strstr(detail.text, word) != NULL);
    check_refused(kv, word);
    kv_close(kv);

    (void)unlink(path_of("data.mdb"));
    options = relaxed_options();
    kv = open_ok(&options);
    store_ok(kv, "a", "ours");
    flush_again(kv_file(kv));
    change(path_of("data.mdb"));
    flush_again(kv_file(kv));
    CHECK(flush_has_failed(kv_file(kv)));
    flush_tell_failure(kv_file(kv), &detail);
    CHECK(strstr(detail.text, word) != NULL);
    check_refused(kv, word);
    kv_close(kv);
}

static void remove_file(const char *path)
{
    CHECK_EQ(unlink(path), 0);
}

static void move_away(const char *path)
{
    char away[600];
    snprintf(away, sizeof(away), "%s.away", path);
    CHECK_EQ(rename(path, away), 0);
}

static void replace(const char *path)
{
    char command[1300];
    snprintf(command, sizeof(command), "cp '%s' '%s.new' && mv '%s.new' '%s'", path, path, path,
             path);
    CHECK_EQ(system(command), 0);
}

static void replace_one_that_has_another_name(const char *path)
{
    char other[600];
    snprintf(other, sizeof(other), "%s.other", path);
    (void)unlink(other);
    CHECK_EQ(link(path, other), 0);
    replace(path);
}

static void cut_all(const char *path)
{
    CHECK_EQ(truncate(path, 0), 0);
}

// Leaves what LMDB reads first.
static void cut_to_two_pages(const char *path)
{
    CHECK_EQ(truncate(path, 2 * 4096), 0);
}

TEST(a_file_that_was_removed_is_not_written_to)
{
    check_file_is_noticed(remove_file, "was removed");
}

TEST(a_file_that_was_moved_away_is_not_written_to)
{
    check_file_is_noticed(move_away, "was removed");
}

TEST(a_file_that_was_replaced_is_not_written_to)
{
    check_file_is_noticed(replace, "was replaced");
}

TEST(a_file_that_was_replaced_and_has_another_name_is_not_written_to)
{
    check_file_is_noticed(replace_one_that_has_another_name, "was replaced");
}

TEST(a_file_that_was_emptied_is_not_written_to)
{
    check_file_is_noticed(cut_all, "was cut from");
}

TEST(a_file_that_lost_its_end_is_not_written_to)
{
    check_file_is_noticed(cut_to_two_pages, "was cut from");
}

TEST(a_store_that_nobody_keeps_needs_no_name)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    CHECK_EQ(unlink(path_of("data.mdb")), 0);
    store_ok(f.kv, "a", "ours");
    CHECK_STR(stored_at(f.kv, "a"), "ours");
}
