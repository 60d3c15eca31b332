// Transactions and rows: what is stored, what a reader sees, and what a failure leaves behind.

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "harness.h"
#include "kv_fixture.h"
#include "os/random.h"

TEST(put_is_read_back_replaced_and_deleted)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    CLEANUP(kv_abortp) KvTxn *txn = begin_ok(f.kv, /* is_write= */ true);
    bool found;

    CHECK_STR(text_at(txn, "a"), "-");
    put_ok(txn, "a", "one");
    CHECK_STR(text_at(txn, "a"), "one");
    put_ok(txn, "a", "and another one");
    CHECK_STR(text_at(txn, "a"), "and another one");
    CHECK_EQ(kv_delete(txn, LETTERS, slice_of("a"), &found), ERROR_NONE);
    CHECK(found);
    CHECK_EQ(kv_delete(txn, LETTERS, slice_of("a"), &found), ERROR_NONE);
    CHECK(!found);
    CHECK_STR(text_at(txn, "a"), "-");
}

TEST(get_that_finds_nothing_leaves_its_output_alone)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    CLEANUP(kv_abortp) KvTxn *txn = begin_ok(f.kv, /* is_write= */ false);
    bool found = true;
    Slice value = slice_of("untouched");
    CHECK_EQ(kv_get(txn, LETTERS, slice_of("a"), &found, &value), ERROR_NONE);
    CHECK(!found);
    CHECK_STR(text_of(value), "untouched");
}

TEST(longest_key_and_an_empty_value_are_stored)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    CLEANUP(kv_abortp) KvTxn *txn = begin_ok(f.kv, /* is_write= */ true);
    uint8_t bytes[KEY_BYTES_MAX];
    memset(bytes, 'k', sizeof bytes);
    Slice key = slice(bytes, sizeof bytes);
    bool found;
    Slice value;

    CHECK_EQ(kv_put(txn, LETTERS, key, slice(NULL, 0)), ERROR_NONE);
    CHECK_EQ(kv_get(txn, LETTERS, key, &found, &value), ERROR_NONE);
    CHECK(found);
    CHECK_EQ(value.size, 0);
    CLEANUP(kv_cursor_closep) KvCursor *cursor = cursor_ok(txn, LETTERS);
    KvRow row;
    CHECK_EQ(kv_next(cursor, &found, &row), ERROR_NONE);
    CHECK_BYTES(row.key, key);
}

TEST(put_new_puts_only_where_there_is_no_row)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    CLEANUP(kv_abortp) KvTxn *txn = begin_ok(f.kv, /* is_write= */ true);
    bool is_put = false;
    // Once as the table's first put of the transaction, and once as a later one.
    for (int round = 0; round < 2; round++) {
        const char *key = round ? "b" : "a";
        CHECK_EQ(kv_put_new(txn, LETTERS, slice_of(key), slice_of("first"), &is_put), ERROR_NONE);
        CHECK(is_put);
        size_t writes = kv_write_count(txn);
        CHECK_EQ(kv_put_new(txn, LETTERS, slice_of(key), slice_of("second"), &is_put), ERROR_NONE);
        CHECK(!is_put);
        CHECK_EQ(kv_write_count(txn), writes);
        CHECK_STR(text_at(txn, key), "first");
    }
    CHECK_EQ(kv_commit(&txn), ERROR_NONE);
    CHECK_STR(stored_at(f.kv, "a"), "first");

    KvTxn *next = begin_ok(f.kv, /* is_write= */ true);
    CHECK_EQ(kv_put_new(next, LETTERS, slice_of("a"), slice_of("second"), &is_put), ERROR_NONE);
    CHECK(!is_put);
    CHECK_EQ(kv_write_count(next), 0);
    kv_abort(&next);
}

// Rows of one transaction in two tables against an array: puts that follow each other and puts that
// do not, values of all sizes, deletes and cursors between them.
TEST(many_puts_and_deletes_of_a_transaction_leave_what_they_say)
{
    enum { KEYS = 700, STEPS = 20000, ROUNDS = 3 };
    static uint16_t sizes[2][KEYS]; // of each row's value, plus one; 0: no row
    static uint8_t value[5000];
    CLEANUP(fixture_close) Fixture f = fixture_open();
    Random random;
    random_seed(&random, 11);
    memset(sizes, 0, sizeof sizes);
    for (int round = 0; round < ROUNDS; round++) {
        KvTxn *txn = begin_ok(f.kv, /* is_write= */ true);
        size_t at = 0, steps = test_scaled(STEPS);
        for (size_t i = 0; i < steps; i++) {
            KvTable table = random_below(&random, 4) == 0 ? NUMBERS : LETTERS;
            at = random_below(&random, 3) ? (at + 1) % KEYS : random_below(&random, KEYS);
            char key[8];
            snprintf(key, sizeof key, "%06zu", at);
            bool is_there = sizes[table][at] > 0, found = false;
            size_t size = random_below(&random, random_below(&random, 9) ? 60 : sizeof value);
            memset(value, (int)(at % 251), size);
            switch (random_below(&random, 8)) {
            case 0:
                CHECK_EQ(kv_delete(txn, table, slice_of(key), &found), ERROR_NONE);
                CHECK_EQ(found, is_there);
                sizes[table][at] = 0;
                break;
            case 1:
                CHECK_EQ(kv_put_new(txn, table, slice_of(key), slice(value, size), &found),
                         ERROR_NONE);
                CHECK_EQ(found, !is_there);
                if (found) sizes[table][at] = (uint16_t)(size + 1);
                break;
            default:
                CHECK_EQ(kv_put(txn, table, slice_of(key), slice(value, size)), ERROR_NONE);
                sizes[table][at] = (uint16_t)(size + 1);
            }
        }
        CHECK_EQ(kv_commit(&txn), ERROR_NONE);
        txn = begin_ok(f.kv, /* is_write= */ false);
        for (KvTable table = 0; table < TABLE_COUNT; table++) {
            CLEANUP(kv_cursor_closep) KvCursor *cursor = cursor_ok(txn, table);
            bool found;
            KvRow row;
            for (at = 0; at < KEYS; at++) {
                if (sizes[table][at] == 0) continue;
                char key[8];
                snprintf(key, sizeof key, "%06zu", at);
                CHECK_EQ(kv_next(cursor, &found, &row), ERROR_NONE);
                CHECK(found);
                CHECK_BYTES(row.key, slice_of(key));
                memset(value, (int)(at % 251), sizeof value);
                CHECK_BYTES(row.value, slice(value, sizes[table][at] - 1u));
            }
            CHECK_EQ(kv_next(cursor, &found, &row), ERROR_NONE);
            CHECK(!found);
        }
        kv_abort(&txn);
    }
}

TEST(write_count_counts_puts_and_deletes_that_deleted)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    CLEANUP(kv_abortp) KvTxn *txn = begin_ok(f.kv, /* is_write= */ true);
    bool found;
    CHECK_EQ(kv_write_count(txn), 0);
    CHECK_EQ(kv_delete(txn, LETTERS, slice_of("a"), &found), ERROR_NONE);
    CHECK_EQ(kv_write_count(txn), 0);
    put_ok(txn, "a", "1");
    put_ok(txn, "b", "2");
    CHECK_EQ(kv_write_count(txn), 2);
    CHECK_EQ(kv_delete(txn, LETTERS, slice_of("a"), &found), ERROR_NONE);
    CHECK_STR(text_at(txn, "b"), "2");
    CHECK_EQ(kv_write_count(txn), 3);
}

TEST(abort_leaves_nothing)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    store_ok(f.kv, "a", "old");
    KvTxn *txn = begin_ok(f.kv, /* is_write= */ true);
    put_ok(txn, "a", "new");
    kv_abort(&txn);
    CHECK(txn == NULL);
    kv_abort(&txn);
    CHECK_STR(stored_at(f.kv, "a"), "old");
}

TEST(reader_keeps_its_snapshot_and_what_it_borrowed)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    store_ok(f.kv, "a", "old");
    CLEANUP(kv_abortp) KvTxn *reader = begin_ok(f.kv, /* is_write= */ false);
    bool found;
    Slice borrowed;
    CHECK_EQ(kv_get(reader, LETTERS, slice_of("a"), &found, &borrowed), ERROR_NONE);
    for (int i = 0; i < 50; i++) {
        store_ok(f.kv, "a", "new");
        store_ok(f.kv, "b", "new");
    }
    CHECK_STR(text_of(borrowed), "old");
    CHECK_STR(text_at(reader, "a"), "old");
    CHECK_STR(text_at(reader, "b"), "-");
    CHECK_STR(stored_at(f.kv, "a"), "new");
}

TEST(hundred_readers_each_see_their_own_snapshot)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    enum { COUNT = 100 };
    KvTxn *readers[COUNT];
    char text[16];
    for (int i = 0; i < COUNT; i++) {
        snprintf(text, sizeof text, "%d", i);
        store_ok(f.kv, "a", text);
        readers[i] = begin_ok(f.kv, /* is_write= */ false);
    }
    KvStats stats;
    CHECK_EQ(kv_stats(f.kv, NULL, &stats), ERROR_NONE);
    CHECK_EQ(stats.readers, COUNT);
    CHECK_EQ(stats.last_txn - stats.oldest_reader_txn, COUNT - 1);
    for (int i = 0; i < COUNT; i++) {
        snprintf(text, sizeof text, "%d", i);
        CHECK_STR(text_at(readers[i], "a"), text);
        kv_abort(&readers[i]);
    }
}

static void *end_reader(void *context)
{
    KvTxn *txn = context;
    bool found = false;
    Slice value;
    Error error = kv_get(txn, LETTERS, slice_of("a"), &found, &value);
    kv_abort(&txn);
    return error == ERROR_NONE && found ? context : NULL;
}

TEST(reader_may_be_ended_by_another_thread)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    store_ok(f.kv, "a", "1");
    KvTxn *txn = begin_ok(f.kv, /* is_write= */ false);
    pthread_t thread;
    void *result = NULL;
    CHECK_EQ(pthread_create(&thread, NULL, end_reader, txn), 0);
    CHECK_EQ(pthread_join(thread, &result), 0);
    CHECK(result != NULL);
}

static void *add_ones(void *context)
{
    Kv *kv = context;
    for (size_t i = 0; i < 200; i++) {
        KvTxn *txn;
        bool found;
        Slice value;
        uint32_t sum = 0;
        if (kv_begin(kv, /* is_write= */ true, NULL, &txn)) return NULL;
        if (kv_get(txn, NUMBERS, slice_of("sum"), &found, &value)) return NULL;
        if (found) memcpy(&sum, value.bytes, sizeof sum);
        sum++;
        if (kv_put(txn, NUMBERS, slice_of("sum"), slice(&sum, sizeof sum))) return NULL;
        if (kv_commit(&txn)) return NULL;
    }
    return context;
}

TEST(writers_on_many_threads_take_turns)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, add_ones, f.kv), 0);
    for (int i = 0; i < 4; i++) {
        void *result = NULL;
        CHECK_EQ(pthread_join(threads[i], &result), 0);
        CHECK(result != NULL);
    }
    CLEANUP(kv_abortp) KvTxn *txn = begin_ok(f.kv, /* is_write= */ false);
    bool found;
    Slice value;
    uint32_t sum = 0;
    CHECK_EQ(kv_get(txn, NUMBERS, slice_of("sum"), &found, &value), ERROR_NONE);
    memcpy(&sum, value.bytes, sizeof sum);
    CHECK_EQ(sum, 800);
}

// The seam: the n-th operation of a kind fails, or is only counted.

typedef struct Seam {
    KvOperation operation;
    Error error;
    unsigned counts[KV_COMMITTED + 1];
    KvTable last_table;
} Seam;

static Error before(void *context, KvOperation operation, KvTable table)
{
    Seam *seam = context;
    seam->counts[operation]++;
    seam->last_table = table;
    return operation == seam->operation ? seam->error : ERROR_NONE;
}

// A transaction with one of each operation. Returns the first error, and commits without one.
static Error do_everything(Kv *kv)
{
    CLEANUP(kv_abortp) KvTxn *txn = NULL;
    bool found;
    Slice value;
    KvRow row;
    Error error = kv_begin(kv, /* is_write= */ false, NULL, &txn);
    if (error) return error;
    kv_abort(&txn);
    error = kv_begin(kv, /* is_write= */ true, NULL, &txn);
    if (error) return error;
    error = kv_get(txn, LETTERS, slice_of("a"), &found, &value);
    if (error) return error;
    CLEANUP(kv_cursor_closep) KvCursor *cursor = cursor_ok(txn, LETTERS);
    error = kv_seek(cursor, slice_of("a"), &found, &row);
    if (error) return error;
    error = kv_delete(txn, LETTERS, slice_of("a"), &found);
    if (error) return error;
    error = kv_put(txn, NUMBERS, slice_of("b"), slice_of("2"));
    if (error) return error;
    kv_cursor_close(cursor);
    cursor = NULL;
    return kv_commit(&txn);
}

TEST(seam_is_told_of_each_operation_once)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    Seam seam = {.operation = KV_COMMITTED, .error = ERROR_IO}; // ignored there
    kv_set_seam(f.kv, (KvSeam){before, &seam});
    CHECK_EQ(do_everything(f.kv), ERROR_NONE);
    for (int i = 0; i <= KV_COMMITTED; i++)
        CHECK_EQ(seam.counts[i], 1);
}

TEST(seam_fault_at_any_operation_is_returned_and_changes_nothing)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    store_ok(f.kv, "a", "1");
    for (int i = 0; i < KV_COMMITTED; i++) {
        Seam seam = {.operation = (KvOperation)i, .error = ERROR_STORE_FULL};
        kv_set_seam(f.kv, (KvSeam){before, &seam});
        CHECK_EQ(do_everything(f.kv), ERROR_STORE_FULL);
        CHECK_EQ(seam.counts[i], 1);
        CHECK_EQ(seam.counts[KV_COMMITTED], 0);
        kv_set_seam(f.kv, (KvSeam){0});
        CHECK_STR(stored_at(f.kv, "a"), "1");
    }
    CHECK_EQ(do_everything(f.kv), ERROR_NONE);
    CHECK_STR(stored_at(f.kv, "a"), "-");
}

TEST(seam_hears_the_table_and_every_cursor_movement)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    Seam seam = {.operation = KV_SEEK, .error = ERROR_IO};
    kv_set_seam(f.kv, (KvSeam){before, &seam});
    KvTxn *txn = begin_ok(f.kv, /* is_write= */ false);
    KvCursor *cursor = cursor_ok(txn, NUMBERS);
    bool found;
    KvRow row;
    CHECK_EQ(kv_seek(cursor, slice_of("a"), &found, &row), ERROR_IO);
    CHECK_EQ(seam.last_table, NUMBERS);
    CHECK_EQ(kv_seek_before(cursor, slice_of("a"), &found, &row), ERROR_IO);
    CHECK_EQ(kv_seek_last(cursor, &found, &row), ERROR_IO);
    CHECK_EQ(kv_next(cursor, &found, &row), ERROR_IO);
    CHECK_EQ(kv_previous(cursor, &found, &row), ERROR_IO);
    CHECK_EQ(seam.counts[KV_SEEK], 5);
    kv_cursor_close(cursor);
    kv_abort(&txn);
}

TEST(failed_put_makes_the_commit_fail_the_same_way)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    Seam seam = {.operation = KV_DELETE, .error = ERROR_IO};
    kv_set_seam(f.kv, (KvSeam){before, &seam});
    KvTxn *txn = begin_ok(f.kv, /* is_write= */ true);
    put_ok(txn, "a", "1");
    bool found;
    CHECK_EQ(kv_delete(txn, LETTERS, slice_of("a"), &found), ERROR_IO);
    CHECK_EQ(kv_write_count(txn), 2);
    CHECK_EQ(kv_commit(&txn), ERROR_IO);
    CHECK(txn == NULL);
    CHECK_EQ(seam.counts[KV_COMMIT], 0);
    CHECK_STR(stored_at(f.kv, "a"), "-");
}

TEST(stats_tell_rows_bytes_and_readers)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    store_ok(f.kv, "a", "1");
    store_ok(f.kv, "b", "2");
    KvStats stats;
    CHECK_EQ(kv_stats(f.kv, NULL, &stats), ERROR_NONE);
    CHECK_EQ(stats.rows[LETTERS], 2);
    CHECK_EQ(stats.rows[NUMBERS], 0);
    CHECK_EQ(stats.map_bytes, 64 << 20);
    CHECK(stats.used_bytes > 0 && stats.free_bytes > 0);
    CHECK(stats.free_bytes < stats.used_bytes);
    CHECK_EQ(stats.readers, 0);
    CHECK_EQ(stats.readers_max, READERS_MAX);
    CHECK_EQ(stats.oldest_reader_txn, stats.last_txn);
}

// Kibibytes of files that this process has mapped and touched.
static long file_kib(void)
{
    char line[128];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status != NULL);
    while (fgets(line, sizeof(line), status))
        (void)sscanf(line, "RssFile: %ld", &kib);
    fclose(status);
    return kib;
}

static size_t count_rows(KvTxn *txn)
{
    CLEANUP(kv_cursor_closep) KvCursor *cursor = cursor_ok(txn, LETTERS);
    size_t count = 0;
    for (const char *key = seek(cursor, "k"); strcmp(key, "-") != 0; key = next(cursor))
        count++;
    return count;
}

TEST(trim_gives_memory_back_and_what_is_borrowed_stays)
{
    enum { ROWS = 4000, VALUE_BYTES = 1000, GIVEN_BACK_KIB = 2000 };
    CLEANUP(fixture_close) Fixture f = fixture_open();
    KvTxn *txn = begin_ok(f.kv, /* is_write= */ true);
    char key[16], value[VALUE_BYTES + 1];
    memset(value, 'v', VALUE_BYTES);
    value[VALUE_BYTES] = '\0';
    for (int i = 0; i < ROWS; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        put_ok(txn, key, value);
    }
    CHECK_EQ(kv_commit(&txn), ERROR_NONE);

    CLEANUP(kv_abortp) KvTxn *reader = begin_ok(f.kv, /* is_write= */ false);
    CHECK_EQ(count_rows(reader), ROWS);
    Slice borrowed;
    bool found;
    CHECK_EQ(kv_get(reader, LETTERS, slice_of("k7"), &found, &borrowed), ERROR_NONE);
    long before_kib = file_kib();
    trim_map(kv_file(f.kv));
    CHECK(file_kib() < before_kib - GIVEN_BACK_KIB);
    CHECK(borrowed.size == VALUE_BYTES && memcmp(borrowed.bytes, value, VALUE_BYTES) == 0);
    CHECK_EQ(count_rows(reader), ROWS);
}
