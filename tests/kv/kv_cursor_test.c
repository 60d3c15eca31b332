// Cursors: their edges, their borrowed rows, and that they survive writes, against a small model.

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "harness.h"
#include "kv_fixture.h"

static Fixture fixture_with_b_d_f(void)
{
    Fixture f = fixture_open();
    KvTxn *txn = begin_ok(f.kv, /* is_write= */ true);
    put_ok(txn, "d", "4");
    put_ok(txn, "f", "6");
    put_ok(txn, "b", "2");
    CHECK_EQ(kv_commit(&txn), ERROR_NONE);
    return f;
}

TEST(cursor_in_an_empty_table_finds_nothing)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    CLEANUP(kv_abortp) KvTxn *txn = begin_ok(f.kv, /* is_write= */ false);
    CLEANUP(kv_cursor_closep) KvCursor *cursor = cursor_ok(txn, LETTERS);

    CHECK_STR(next(cursor), "-");
    CHECK_STR(previous(cursor), "-");
    CHECK_STR(seek(cursor, "a"), "-");
    CHECK_STR(seek_before(cursor, "a"), "-");
    CHECK_STR(seek_last(cursor), "-");
    CHECK_STR(next(cursor), "-");
}

TEST(seek_finds_the_key_or_the_next_one)
{
    CLEANUP(fixture_close) Fixture f = fixture_with_b_d_f();
    CLEANUP(kv_abortp) KvTxn *txn = begin_ok(f.kv, /* is_write= */ false);
    CLEANUP(kv_cursor_closep) KvCursor *cursor = cursor_ok(txn, LETTERS);

    CHECK_STR(seek(cursor, "a"), "b");
    CHECK_STR(seek(cursor, "b"), "b");
    CHECK_STR(seek(cursor, "c"), "d");
    CHECK_STR(seek(cursor, "f"), "f");
    CHECK_STR(seek(cursor, "f\1"), "-");
    CHECK_STR(seek(cursor, "g"), "-");
}

TEST(seek_before_finds_the_last_smaller_key)
{
    CLEANUP(fixture_close) Fixture f = fixture_with_b_d_f();
    CLEANUP(kv_abortp) KvTxn *txn = begin_ok(f.kv, /* is_write= */ false);
    CLEANUP(kv_cursor_closep) KvCursor *cursor = cursor_ok(txn, LETTERS);

    CHECK_STR(seek_before(cursor, "a"), "-");
    CHECK_STR(seek_before(cursor, "b"), "-");
    CHECK_STR(seek_before(cursor, "b\1"), "b");
    CHECK_STR(seek_before(cursor, "d"), "b");
    CHECK_STR(seek_before(cursor, "f"), "d");
    CHECK_STR(seek_before(cursor, "g"), "f");
}

TEST(next_and_previous_walk_from_where_the_seek_landed)
{
    CLEANUP(fixture_close) Fixture f = fixture_with_b_d_f();
    CLEANUP(kv_abortp) KvTxn *txn = begin_ok(f.kv, /* is_write= */ false);
    CLEANUP(kv_cursor_closep) KvCursor *cursor = cursor_ok(txn, LETTERS);

    CHECK_STR(seek(cursor, "c"), "d");
    CHECK_STR(next(cursor), "f");
    CHECK_STR(previous(cursor), "d");
    CHECK_STR(previous(cursor), "b");
    CHECK_STR(seek_before(cursor, "d"), "b");
    CHECK_STR(next(cursor), "d");
    CHECK_STR(seek_last(cursor), "f");
    CHECK_STR(previous(cursor), "d");
}

TEST(new_cursor_starts_at_either_end)
{
    CLEANUP(fixture_close) Fixture f = fixture_with_b_d_f();
    CLEANUP(kv_abortp) KvTxn *txn = begin_ok(f.kv, /* is_write= */ false);
    CLEANUP(kv_cursor_closep) KvCursor *forward = cursor_ok(txn, LETTERS);
    CLEANUP(kv_cursor_closep) KvCursor *backward = cursor_ok(txn, LETTERS);

    CHECK_STR(next(forward), "b");
    CHECK_STR(previous(backward), "f");
}

TEST(cursor_past_an_end_stays_there_until_it_seeks)
{
    CLEANUP(fixture_close) Fixture f = fixture_with_b_d_f();
    CLEANUP(kv_abortp) KvTxn *txn = begin_ok(f.kv, /* is_write= */ false);
    CLEANUP(kv_cursor_closep) KvCursor *cursor = cursor_ok(txn, LETTERS);

    CHECK_STR(seek_last(cursor), "f");
    CHECK_STR(next(cursor), "-");
    CHECK_STR(next(cursor), "-");
    CHECK_STR(previous(cursor), "-");
    CHECK_STR(seek_before(cursor, "b"), "-");
    CHECK_STR(next(cursor), "-");
    CHECK_STR(seek(cursor, "z"), "-");
    CHECK_STR(previous(cursor), "-");
    CHECK_STR(seek(cursor, "d"), "d");
    CHECK_STR(next(cursor), "f");
}

TEST(cursor_orders_keys_as_bytes_and_prefixes_first)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    KvTxn *txn = begin_ok(f.kv, /* is_write= */ true);
    put_ok(txn, "ab", "");
    put_ok(txn, "a", "");
    put_ok(txn, "a\xff", "");
    put_ok(txn, "b", "");
    put_ok(txn, "abc", "");
    CHECK_EQ(kv_commit(&txn), ERROR_NONE);

    txn = begin_ok(f.kv, /* is_write= */ false);
    KvCursor *cursor = cursor_ok(txn, LETTERS);
    CHECK_STR(next(cursor), "a");
    CHECK_STR(next(cursor), "ab");
    CHECK_STR(next(cursor), "abc");
    CHECK_STR(next(cursor), "a\xff");
    CHECK_STR(next(cursor), "b");
    CHECK_STR(next(cursor), "-");
    CHECK_STR(seek_before(cursor, "ab"), "a");
    CHECK_STR(seek(cursor, "abd"), "a\xff");
    kv_cursor_close(cursor);
    kv_abort(&txn);
}

TEST(cursor_stays_in_its_table)
{
    CLEANUP(fixture_close) Fixture f = fixture_with_b_d_f();
    CLEANUP(kv_abortp) KvTxn *txn = begin_ok(f.kv, /* is_write= */ true);
    CHECK_EQ(kv_put(txn, NUMBERS, slice_of("c"), slice_of("")), ERROR_NONE);
    CLEANUP(kv_cursor_closep) KvCursor *letters = cursor_ok(txn, LETTERS);
    CLEANUP(kv_cursor_closep) KvCursor *numbers = cursor_ok(txn, NUMBERS);

    CHECK_STR(seek(letters, "c"), "d");
    CHECK_STR(seek(numbers, "a"), "c");
    CHECK_STR(next(numbers), "-");
}

TEST(cursor_leaves_its_output_alone_when_nothing_is_found)
{
    CLEANUP(fixture_close) Fixture f = fixture_with_b_d_f();
    CLEANUP(kv_abortp) KvTxn *txn = begin_ok(f.kv, /* is_write= */ false);
    CLEANUP(kv_cursor_closep) KvCursor *cursor = cursor_ok(txn, LETTERS);
    bool found = true;
    KvRow row = {.key = slice_of("untouched")};

    CHECK_EQ(kv_seek(cursor, slice_of("z"), &found, &row), ERROR_NONE);
    CHECK(!found);
    CHECK_EQ(kv_seek_before(cursor, slice_of("a"), &found, &row), ERROR_NONE);
    CHECK(!found);
    CHECK_STR(text_of(row.key), "untouched");
}

TEST(rows_may_be_deleted_while_a_cursor_walks_over_them)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    enum { COUNT = 2000 };
    KvTxn *txn = begin_ok(f.kv, /* is_write= */ true);
    for (int i = 0; i < COUNT; i++) {
        char key[12];
        snprintf(key, sizeof key, "%06d", i);
        put_ok(txn, key, "some text that makes it a few pages");
    }
    CHECK_EQ(kv_commit(&txn), ERROR_NONE);

    txn = begin_ok(f.kv, /* is_write= */ true);
    KvCursor *cursor = cursor_ok(txn, LETTERS);
    int count = 0;
    for (;;) {
        bool found;
        KvRow row;
        CHECK_EQ(kv_next(cursor, &found, &row), ERROR_NONE);
        if (!found) break;
        count++;
        CHECK_EQ(kv_delete(txn, LETTERS, row.key, &found), ERROR_NONE);
        CHECK(found);
    }
    CHECK_EQ(count, COUNT);
    CHECK_STR(seek_last(cursor), "-");
    kv_cursor_close(cursor);
    CHECK_EQ(kv_commit(&txn), ERROR_NONE);
}

// The model: which keys exist, and the size of their values. Two cursors walk while rows come and
// go; each must go on from the key it was at, whether that key still exists or not.

enum { MODEL_KEYS = 700, MODEL_CURSORS = 2 };

typedef struct Model {
    uint64_t random;
    size_t sizes[MODEL_KEYS]; // 0: no such row
    KvTxn *txn;
    KvCursor *cursors[MODEL_CURSORS];
    int positions[MODEL_CURSORS]; // -1: nowhere
} Model;

static uint32_t draw(Model *model, uint32_t below)
{
    model->random = model->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(model->random >> 33) % below;
}

static Slice model_key(int key, char text[static 12])
{
    snprintf(text, 12, "%06d", key);
    return slice(text, 6);
}

static void model_write(Model *model)
{
    static const uint8_t BYTES[6000];
    static const uint32_t SIZES[] = {8, 30, 400, 1500, 5000};
    char text[12];
    int key = (int)draw(model, MODEL_KEYS);
    // Often at a cursor, where it hurts.
    int position = model->positions[draw(model, MODEL_CURSORS)];
    if (position >= 0 && draw(model, 3) == 0) key = position;

    if (draw(model, 100) < 52) {
        bool found;
        CHECK_EQ(kv_delete(model->txn, LETTERS, model_key(key, text), &found), ERROR_NONE);
        CHECK_EQ(found, model->sizes[key] > 0);
        model->sizes[key] = 0;
    } else {
        size_t size = 1 + draw(model, SIZES[draw(model, 5)]);
        Slice value = slice(BYTES, size);
        CHECK_EQ(kv_put(model->txn, LETTERS, model_key(key, text), value), ERROR_NONE);
        model->sizes[key] = size;
    }
}

static int model_after(const Model *model, int key)
{
    while (++key < MODEL_KEYS)
        if (model->sizes[key]) return key;
    return -1;
}

static int model_before(const Model *model, int key)
{
    while (--key >= 0)
        if (model->sizes[key]) return key;
    return -1;
}

static void model_move(Model *model)
{
    char text[12];
    uint32_t i = draw(model, MODEL_CURSORS);
    KvCursor *cursor = model->cursors[i];
    int from = model->positions[i];
    int key = (int)draw(model, MODEL_KEYS);
    uint32_t movement = draw(model, 20);
    bool found = false;
    KvRow row;
    int expected;
    Error error;
    if (movement == 0) {
        error = kv_seek(cursor, model_key(key, text), &found, &row);
        expected = model_after(model, key - 1);
    } else if (movement == 1) {
        error = kv_seek_before(cursor, model_key(key, text), &found, &row);
        expected = model_before(model, key);
    } else if (movement == 2) {
        error = kv_seek_last(cursor, &found, &row);
        expected = model_before(model, MODEL_KEYS);
    } else if (movement < 12) {
        error = kv_next(cursor, &found, &row);
        expected = from < 0 ? -1 : model_after(model, from);
    } else {
        error = kv_previous(cursor, &found, &row);
        expected = from < 0 ? -1 : model_before(model, from);
    }
    CHECK_EQ(error, ERROR_NONE);
    CHECK_EQ(found, expected >= 0);
    if (found) {
        CHECK_BYTES(row.key, model_key(expected, text));
        CHECK_EQ(row.value.size, model->sizes[expected]);
    }
    model->positions[i] = expected;
}

TEST(cursors_agree_with_a_model_while_rows_come_and_go)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    Model model = {.random = test_seed()};
    for (size_t round = 0; round < test_scaled(100); round++) {
        model.txn = begin_ok(f.kv, /* is_write= */ true);
        for (int i = 0; i < MODEL_CURSORS; i++) {
            model.cursors[i] = cursor_ok(model.txn, LETTERS);
            CHECK_STR(seek(model.cursors[i], "z"), "-");
            model.positions[i] = -1;
        }
        uint32_t writes_in_ten = draw(&model, 10);
        for (int step = 0; step < 1500; step++) {
            if (draw(&model, 10) < writes_in_ten)
                model_write(&model);
            else
                model_move(&model);
        }
        for (int i = 0; i < MODEL_CURSORS; i++)
            kv_cursor_close(model.cursors[i]);
        CHECK_EQ(kv_commit(&model.txn), ERROR_NONE);
    }
}

// In a read transaction kv_next reads ahead, so LMDB's cursor is not where the walk is.
static void model_read(Model *model, Kv *kv)
{
    model->txn = begin_ok(kv, /* is_write= */ false);
    for (int i = 0; i < MODEL_CURSORS; i++) {
        model->cursors[i] = cursor_ok(model->txn, LETTERS);
        CHECK_STR(seek(model->cursors[i], "z"), "-");
        model->positions[i] = -1;
    }
    for (int step = 0; step < 1500; step++)
        model_move(model);
    for (int i = 0; i < MODEL_CURSORS; i++)
        kv_cursor_close(model->cursors[i]);
    kv_abort(&model->txn);
}

TEST(cursors_of_readers_agree_with_a_model)
{
    CLEANUP(fixture_close) Fixture f = fixture_open();
    Model model = {.random = test_seed()};
    for (size_t round = 0; round < test_scaled(100); round++) {
        model.txn = begin_ok(f.kv, /* is_write= */ true);
        for (int step = 0; step < 100; step++)
            model_write(&model);
        CHECK_EQ(kv_commit(&model.txn), ERROR_NONE);
        model_read(&model, f.kv);
    }
}

TEST(cursor_turns_back_after_any_number_of_steps)
{
    enum { ROWS = 26 };
    CLEANUP(fixture_close) Fixture f = fixture_open();
    CLEANUP(kv_abortp) KvTxn *txn = begin_ok(f.kv, /* is_write= */ true);
    for (char letter = 'a'; letter <= 'z'; letter++)
        put_ok(txn, (char[]){letter, 0}, "");
    CHECK_EQ(kv_commit(&txn), ERROR_NONE);
    txn = begin_ok(f.kv, /* is_write= */ false);
    for (int steps = 1; steps < ROWS; steps++) {
        KvCursor *cursor = cursor_ok(txn, LETTERS);
        CHECK_STR(seek(cursor, "a"), "a");
        for (int i = 1; i <= steps; i++)
            CHECK_STR(next(cursor), ((char[]){(char)('a' + i), 0}));
        for (int i = steps - 1; i >= 0; i--)
            CHECK_STR(previous(cursor), ((char[]){(char)('a' + i), 0}));
        CHECK_STR(next(cursor), "b");
        kv_cursor_close(cursor);
    }
}
