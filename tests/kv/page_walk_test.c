// The page walk: sound files of every shape have no findings, and no file ends the process.

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "page_walk_steps.h"

TEST(sound_files_have_no_findings)
{
    Fixture f = fixture_open();
    check_sound();
    store_ok(f.kv, "a", "1");
    check_sound();
    for (unsigned i = 0; i < 30; i++) {
        put_many(f.kv, i * 400, 400, i % 5 == 0 ? 9000 : i % 3 == 0 ? 3000 : 60);
        check_sound();
        delete_many(f.kv, i * 400 + i % 4 * 100, i == 7 ? 400 : 150);
        check_sound();
    }
    for (unsigned i = 0; i < 30; i++) {
        delete_many(f.kv, i * 400, 400);
        check_sound();
    }
    fixture_close(&f);
    check_sound();
}

TEST(a_compact_copy_has_no_findings)
{
    Fixture f = fixture_open();
    put_many(f.kv, 0, 3000, 100);
    put_many(f.kv, 3000, 20, 9000);
    char path[512];
    snprintf(path, sizeof path, "%s/copy", test_dir());
    int copy = open(path, O_RDWR | O_CREAT, 0600);
    CHECK_EQ(data_file_copy(kv_file(f.kv), copy, /* is_compact= */ true, NULL), ERROR_NONE);
    PageWalkResult result;
    PageWalkOptions options = {.file = copy};
    CHECK_EQ(page_walk(&options, NULL, &result), ERROR_NONE);
    CHECK_EQ(result.finding_count, 0);
    CHECK_EQ(result.free_pages, 0);
    close(copy);
    fixture_close(&f);
}

TEST(rows_are_handed_over_and_judged)
{
    Fixture f = fixture_open();
    put_many(f.kv, 0, 500, 30);
    put_many(f.kv, 500, 3, 10000);
    Walk walk = walk_all();
    CHECK_EQ(walk.result.finding_count, 0);
    CHECK_EQ(walk.row_count, 503 + COMMIT_ROWS);
    CHECK(walk.row_bytes >= 500 * 30 + 3 * 10000);
    store_ok(f.kv, "bad", "1");
    check_found("its row is bad");
    fixture_close(&f);
}

TEST(an_older_state_is_walked_while_it_is_held)
{
    Fixture f = fixture_open();
    put_many(f.kv, 0, 1000, 100);
    uint64_t index;
    int file = open_file();
    LmdbMetaPage meta = read_meta(file, &index);
    close(file);
    KvTxn *reader = begin_ok(f.kv, /* is_write= */ false);
    PageWalkOptions options = {.txn_id = meta.txn_id};
    CHECK_EQ(walk_with(options).result.txn_id, meta.txn_id);
    for (unsigned i = 0; i < 4; i++)
        delete_many(f.kv, i * 100, 100);
    PageWalkResult result;
    options.file = open_file();
    CHECK_EQ(page_walk(&options, NULL, &result), ERROR_UNAVAILABLE);
    close(options.file);
    options = (PageWalkOptions){.meta = slice(&meta, sizeof meta)};
    Walk walk = walk_with(options);
    CHECK_STR(walk.texts[0], "");
    CHECK_EQ(walk.result.txn_id, meta.txn_id);
    CHECK_EQ(walk.result.rows, 1000 + COMMIT_ROWS);
    kv_abort(&reader);
    fixture_close(&f);
}

TEST(a_walk_can_be_cancelled)
{
    make_store();
    atomic_bool is_cancelled = true;
    Walk walk = walk_with((PageWalkOptions){.is_cancelled = &is_cancelled});
    CHECK(walk.result.is_cancelled);
    CHECK_EQ(walk.result.finding_count, 0);
}

TEST(a_file_cut_anywhere_is_damaged)
{
    make_store();
    char path[512];
    snprintf(path, sizeof path, "%s/data.mdb", test_dir());
    struct stat status;
    CHECK_EQ(stat(path, &status), 0);
    for (off_t size = status.st_size - PAGE; size >= 0; size -= status.st_size / 7 / 512 * 512) {
        CHECK_EQ(truncate(path, size), 0);
        Walk walk = walk_all();
        CHECK(walk.result.finding_count > 0 || walk.result.free_pages > 0);
        if (size < status.st_size / 2) CHECK(walk.result.finding_count > 0);
    }
}

TEST(a_quick_walk_reads_the_roots_and_a_small_free_list)
{
    make_store();
    PageWalkOptions quick = {.is_quick = true};
    Walk walk = walk_with(quick);
    CHECK_STR(walk.texts[0], "");
    int file = open_file();
    Page leaf = find_leaf(file), root = find_root(file);
    change(file, &leaf, offsetof(LmdbPageHeader, page), 1);
    CHECK_EQ(walk_with(quick).result.finding_count, 0);
    change(file, &root, offsetof(LmdbPageHeader, page), 1);
    CHECK_EQ(walk_with(quick).result.finding_count, 1);
    write_page(file, &root);
    size_t at;
    uint64_t count;
    Page row = find_free_row(file, &at, &count);
    plant_free(file, &row, at + 16, UINT64_MAX);
    CHECK(walk_with(quick).result.finding_count > 0);
    quick.is_for_reading = true;
    CHECK_EQ(walk_with(quick).result.finding_count, 0);
    close(file);
}

// Whatever a page contains, the walk ends without a signal. (Run under sanitizers too.)
TEST(random_damage_never_ends_the_process)
{
    make_store();
    int file = open_file();
    struct stat status;
    CHECK_EQ(fstat(file, &status), 0);
    uint64_t seed = test_seed(), pages = (uint64_t)status.st_size / PAGE;
    unsigned short state[3] = {(unsigned short)seed, (unsigned short)(seed >> 16), 7};
    for (size_t i = 0; i < test_scaled(3000); i++) {
        Page page = read_page(file, (uint64_t)nrand48(state) % pages), bad = page;
        size_t near = i % 2 == 0 ? 64 : PAGE; // the header, or anywhere
        for (int k = 0; k < 3; k++)
            bad.bytes[(size_t)nrand48(state) % near] ^= (uint8_t)(1 << nrand48(state) % 8);
        write_page(file, &bad);
        (void)walk_all();
        (void)walk_with((PageWalkOptions){.is_quick = true});
        if (i % 3 != 0) write_page(file, &page);
    }
    close(file);
}
