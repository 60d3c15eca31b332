// Tables beside each other in one tree: their borders, and how many rows each has.

#include <string.h>

#include "base/limits.h"
#include "harness.h"
#include "kv_fixture.h"

enum { LOW, EMPTY, HIGH, COUNT };

static const KvTableOptions TABLES[COUNT] = {{1, "low"}, {2, "empty"}, {KV_TABLES_MAX - 1, "high"}};

static Kv *open_three(void)
{
    KvOptions options = fixture_options();
    options.tables = TABLES;
    options.table_count = COUNT;
    return open_ok(&options);
}

static void put(KvTxn *txn, KvTable table, const char *key)
{
    CHECK_EQ(kv_put(txn, table, slice_of(key), slice_of("value")), ERROR_NONE);
}

// Keys of the smallest and the largest bytes, in the first and the last table there can be.
static Kv *open_filled(void)
{
    Kv *kv = open_three();
    KvTxn *txn = begin_ok(kv, /* is_write= */ true);
    put(txn, LOW, "\x01");
    put(txn, LOW, "\xff\xff\xff");
    put(txn, HIGH, "\x01");
    put(txn, HIGH, "\xff\xff\xff");
    CHECK_EQ(kv_commit(&txn), ERROR_NONE);
    return kv;
}

static void check_borders(KvTxn *txn, KvTable table, const char *first, const char *last)
{
    CLEANUP(kv_cursor_closep) KvCursor *cursor = cursor_ok(txn, table);
    CHECK_STR(next(cursor), first);
    kv_cursor_close(cursor);
    cursor = cursor_ok(txn, table);
    CHECK_STR(previous(cursor), last);
    CHECK_STR(seek_last(cursor), last);
    CHECK_STR(next(cursor), "-");
    CHECK_STR(previous(cursor), "-"); // lost
    CHECK_STR(seek(cursor, "\x01"), first);
    CHECK_STR(previous(cursor), "-");
    CHECK_STR(seek(cursor, "\xff\xff\xff\x01"), "-");
    CHECK_STR(seek_before(cursor, "\x01"), "-");
    CHECK_STR(seek_before(cursor, "\xff\xff\xff\x01"), last);
}

TEST(a_cursor_stops_at_the_borders_of_its_table)
{
    Kv *kv = open_filled();
    for (int is_write = 0; is_write < 2; is_write++) {
        CLEANUP(kv_abortp) KvTxn *txn = begin_ok(kv, is_write);
        check_borders(txn, LOW, "\x01", "\xff\xff\xff");
        check_borders(txn, EMPTY, "-", "-");
        check_borders(txn, HIGH, "\x01", "\xff\xff\xff");
    }
    kv_close(kv);
}

TEST(a_cursor_stops_at_the_borders_when_rows_there_come_and_go)
{
    Kv *kv = open_filled();
    CLEANUP(kv_abortp) KvTxn *txn = begin_ok(kv, /* is_write= */ true);
    CLEANUP(kv_cursor_closep) KvCursor *cursor = cursor_ok(txn, LOW);
    bool found;
    CHECK_STR(seek_last(cursor), "\xff\xff\xff");
    put(txn, EMPTY, "a");
    CHECK_STR(next(cursor), "-");
    CHECK_STR(seek_last(cursor), "\xff\xff\xff");
    CHECK_EQ(kv_delete(txn, LOW, slice_of("\xff\xff\xff"), &found), ERROR_NONE);
    CHECK_STR(next(cursor), "-");
    CHECK_STR(seek(cursor, "\x01"), "\x01");
    CHECK_EQ(kv_delete(txn, LOW, slice_of("\x01"), &found), ERROR_NONE);
    CHECK_STR(previous(cursor), "-");
    check_borders(txn, EMPTY, "a", "a");
    kv_cursor_close(cursor);
    cursor = NULL;
    kv_abort(&txn);
    kv_close(kv);
}

static void check_rows(Kv *kv, uint64_t low, uint64_t empty, uint64_t high)
{
    KvStats stats;
    CHECK_EQ(kv_stats(kv, NULL, &stats), ERROR_NONE);
    CHECK_EQ(stats.rows[LOW], low);
    CHECK_EQ(stats.rows[EMPTY], empty);
    CHECK_EQ(stats.rows[HIGH], high);
}

TEST(rows_are_counted_by_table)
{
    Kv *kv = open_three();
    check_rows(kv, 0, 0, 0);
    kv_close(kv);
    kv = open_filled();
    check_rows(kv, 2, 0, 2);

    KvTxn *txn = begin_ok(kv, /* is_write= */ true);
    bool found;
    put(txn, LOW, "\x01"); // replaced
    put(txn, LOW, "new");
    CHECK_EQ(kv_put_new(txn, LOW, slice_of("new"), slice_of(""), &found), ERROR_NONE);
    CHECK_EQ(kv_put_new(txn, EMPTY, slice_of("new"), slice_of(""), &found), ERROR_NONE);
    CHECK_EQ(kv_delete(txn, HIGH, slice_of("\x01"), &found), ERROR_NONE);
    CHECK_EQ(kv_delete(txn, HIGH, slice_of("\x01"), &found), ERROR_NONE);
    CHECK_EQ(kv_commit(&txn), ERROR_NONE);
    check_rows(kv, 3, 1, 1);

    txn = begin_ok(kv, /* is_write= */ true);
    put(txn, HIGH, "never");
    kv_abort(&txn);
    check_rows(kv, 3, 1, 1);
    kv_close(kv);
    kv = open_three();
    check_rows(kv, 3, 1, 1);
    kv_close(kv);
}

TEST(a_transaction_that_writes_nothing_leaves_the_file_empty)
{
    Kv *kv = open_three();
    KvTxn *txn = begin_ok(kv, /* is_write= */ true);
    bool is_empty, has_rows;
    CHECK_EQ(kv_commit(&txn), ERROR_NONE);
    txn = begin_ok(kv, /* is_write= */ false);
    CHECK_EQ(kv_survey(txn, &is_empty, &has_rows), ERROR_NONE);
    CHECK(is_empty && !has_rows);
    kv_abort(&txn);
    kv_close(kv);
    kv = open_filled();
    txn = begin_ok(kv, /* is_write= */ false);
    CHECK_EQ(kv_survey(txn, &is_empty, &has_rows), ERROR_NONE);
    CHECK(!is_empty && has_rows);
    kv_abort(&txn);
    kv_close(kv);
}
