// Checksums: a bit that changed in a stored row is found by every kind of read, and what the tags
// of verified rows spare.

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "harness.h"
#include "kv/checksum.h"
#include "kv_fixture.h"

enum { LETTERS_BYTE = KV_TABLE_BYTE + 1 };

// Longer than what is hashed on every read.
#define LONG_TEXT                                                                                  \
    "a value that is so long that looking for its tag is cheaper than hashing it once more, 0123"

// A new store of three rows, closed.
static void store_rows(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/data.mdb", test_dir());
    (void)unlink(path);
    snprintf(path, sizeof path, "%s/lock.mdb", test_dir());
    (void)unlink(path);
    Fixture f = fixture_open();
    store_ok(f.kv, "first", "1");
    store_ok(f.kv, "middle", LONG_TEXT);
    store_ok(f.kv, "other", "3");
    fixture_close(&f);
}

typedef enum Place { IN_VALUE, IN_CHECKSUM, IN_KEY, IN_TABLE_BYTE, PLACE_COUNT } Place;

// Changes a bit of the row "middle".
static void damage(Place place)
{
    static const char KEY[] = {(char)LETTERS_BYTE, 'm', 'i', 'd', 'd', 'l', 'e'};
    Slice key = slice(KEY, sizeof KEY), value = slice_of(LONG_TEXT);
    uint8_t checksum[CHECKSUM_BYTES];
    bytes_put_u64(checksum, checksum_of_row(key, value));
    int count = 0;
    switch (place) {
    case IN_VALUE: count = flip_bit(value.bytes, value.size, 10); break;
    case IN_CHECKSUM: count = flip_bit(checksum, sizeof checksum, 7); break;
    case IN_KEY: count = flip_bit(key.bytes, key.size, 3); break;
    case IN_TABLE_BYTE: count = flip_bit(key.bytes, key.size, 0); break;
    case PLACE_COUNT: break;
    }
    CHECK(count > 0); // an older page may have it too
}

static Error get(KvTxn *txn, const char *key)
{
    bool found;
    Slice value;
    return kv_get(txn, LETTERS, slice_of(key), &found, &value);
}

TEST(a_changed_bit_is_found_by_a_get)
{
    for (Place place = IN_VALUE; place <= IN_CHECKSUM; place++) {
        store_rows();
        damage(place);
        CLEANUP(fixture_close) Fixture f = fixture_open();
        CLEANUP(kv_abortp) KvTxn *txn = begin_ok(f.kv, /* is_write= */ false);
        ErrorDetail detail = {""};
        kv_set_detail(txn, &detail);
        CHECK_EQ(get(txn, "middle"), ERROR_CORRUPT);
        CHECK(strstr(detail.text, "a row of letters in ") != NULL);
        CHECK(strstr(detail.text, "(key 6d6964646c65)") != NULL);
        CHECK(strstr(detail.text, "tine check") != NULL);
        CHECK_EQ(get(txn, "middle"), ERROR_CORRUPT); // it got no tag
        CHECK_EQ(get(txn, "other"), ERROR_NONE);
    }
}

// What a walk over the letters meets, forward or back.
static unsigned count_corrupt(KvTxn *txn, Error (*step)(KvCursor *, bool *, KvRow *))
{
    CLEANUP(kv_cursor_closep) KvCursor *cursor = cursor_ok(txn, LETTERS);
    unsigned corrupt = 0;
    for (int i = 0; i < 10; i++) {
        bool found;
        KvRow row = {.key = {NULL, 0}};
        Error error = step(cursor, &found, &row);
        if (!error && !found) return corrupt;
        if (error) CHECK_EQ(error, ERROR_CORRUPT);
        if (error) corrupt++;
        if (error && found) CHECK_EQ(row.key.size, 6); // it is named
    }
    return corrupt;
}

TEST(a_changed_bit_is_found_by_a_walk_which_goes_on_behind_it)
{
    for (Place place = IN_VALUE; place < PLACE_COUNT; place++) {
        for (int is_write = 0; is_write < 2; is_write++) {
            store_rows();
            CLEANUP(fixture_close) Fixture f = fixture_open();
            damage(place); // after the opening, which walks the root page
            CLEANUP(kv_abortp) KvTxn *txn = begin_ok(f.kv, is_write);
            CHECK_EQ(count_corrupt(txn, kv_next), 1);
            CHECK_EQ(count_corrupt(txn, kv_previous), 1);
        }
    }
}

TEST(a_changed_bit_is_found_by_a_seek)
{
    store_rows();
    damage(IN_VALUE);
    CLEANUP(fixture_close) Fixture f = fixture_open();
    CLEANUP(kv_abortp) KvTxn *txn = begin_ok(f.kv, /* is_write= */ false);
    CLEANUP(kv_cursor_closep) KvCursor *cursor = cursor_ok(txn, LETTERS);
    bool found;
    KvRow row;
    CHECK_EQ(kv_seek(cursor, slice_of("j"), &found, &row), ERROR_CORRUPT);
    CHECK(found);
    CHECK_BYTES(row.key, slice_of("middle"));
    CHECK_STR(next(cursor), "other");
    CHECK_EQ(kv_seek_before(cursor, slice_of("other"), &found, &row), ERROR_CORRUPT);
    CHECK_STR(previous(cursor), "first");
    CHECK_STR(seek_last(cursor), "other");
}

TEST(a_walk_may_end_at_a_bad_row_of_another_table)
{
    store_rows();
    CLEANUP(fixture_close) Fixture f = fixture_open();
    KvTxn *txn = begin_ok(f.kv, /* is_write= */ true);
    CHECK_EQ(kv_put(txn, NUMBERS, slice_of("n"), slice_of("a number")), ERROR_NONE);
    CHECK_EQ(kv_commit(&txn), ERROR_NONE);
    CHECK(flip_bit("a number", 8, 3) > 0);
    txn = begin_ok(f.kv, /* is_write= */ false);
    CHECK_EQ(count_corrupt(txn, kv_next), 0);
    kv_abort(&txn);
}

TEST(a_write_transaction_that_met_a_bad_row_goes_on)
{
    store_rows();
    damage(IN_VALUE);
    CLEANUP(fixture_close) Fixture f = fixture_open();
    KvTxn *txn = begin_ok(f.kv, /* is_write= */ true);
    CHECK_EQ(get(txn, "middle"), ERROR_CORRUPT);
    CHECK_EQ(kv_write_count(txn), 0);
    put_ok(txn, "new", "4");
    put_ok(txn, "middle", "whole again");
    CHECK_EQ(kv_commit(&txn), ERROR_NONE);
    CHECK_STR(stored_at(f.kv, "new"), "4");
    CHECK_STR(stored_at(f.kv, "middle"), "whole again");
}

TEST(a_row_is_verified_once_by_readers_and_always_by_writers)
{
    store_rows();
    CLEANUP(fixture_close) Fixture f = fixture_open();
    CHECK_STR(stored_at(f.kv, "middle"), LONG_TEXT);
    damage(IN_VALUE); // in memory, after it was verified
    KvTxn *txn = begin_ok(f.kv, /* is_write= */ false);
    CHECK_EQ(get(txn, "middle"), ERROR_NONE);
    kv_abort(&txn);
    txn = begin_ok(f.kv, /* is_write= */ true);
    CHECK_EQ(get(txn, "middle"), ERROR_CORRUPT);
    kv_abort(&txn);
    fixture_close(&f);
    f = fixture_open(); // which remembers nothing
    txn = begin_ok(f.kv, /* is_write= */ false);
    CHECK_EQ(get(txn, "middle"), ERROR_CORRUPT);
    kv_abort(&txn);
}

TEST(a_row_that_was_replaced_is_verified_anew)
{
    store_rows();
    CLEANUP(fixture_close) Fixture f = fixture_open();
    for (char round = '0'; round < '9'; round++) {
        char text[sizeof LONG_TEXT];
        snprintf(text, sizeof text, "%s", LONG_TEXT);
        CHECK_STR(stored_at(f.kv, "middle"), text);
        text[20] = round;
        store_ok(f.kv, "middle", text);
        CHECK(flip_bit(text, strlen(text), 30) > 0);
        KvTxn *txn = begin_ok(f.kv, /* is_write= */ false);
        CHECK_EQ(get(txn, "middle"), ERROR_CORRUPT);
        kv_abort(&txn);
        store_ok(f.kv, "middle", LONG_TEXT);
    }
}

TEST(a_short_row_is_verified_on_every_read)
{
    store_rows();
    CLEANUP(fixture_close) Fixture f = fixture_open();
    store_ok(f.kv, "short", "some short value");
    CHECK_STR(stored_at(f.kv, "short"), "some short value");
    CHECK(flip_bit("some short value", 16, 3) > 0);
    KvTxn *txn = begin_ok(f.kv, /* is_write= */ false);
    CHECK_EQ(get(txn, "short"), ERROR_CORRUPT);
    kv_abort(&txn);
}

TEST(a_changed_commit_row_is_refused)
{
    store_rows();
    enum { VALUE_AT = 7 };
    CHECK(flip_bit("\x80"
                   "commit",
                   7, VALUE_AT + 3) > 0);
    KvOptions options = fixture_options();
    ErrorDetail detail = {""};
    CHECK_EQ(open_error(&options, &detail), ERROR_CORRUPT);
    CHECK(strstr(detail.text, "its checksum is wrong") != NULL);
}
