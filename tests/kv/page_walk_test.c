// The page walk: a sound file of every shape has no findings, and each planted damage is found.

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "kv/durable/lmdb_layout.h"
#include "kv/durable/page_walk.h"
#include "kv_fixture.h"

enum { PAGE = 4096, TEXTS_MAX = 8, COMMIT_ROWS = 1 };

typedef struct Walk {
    PageWalkResult result;
    char texts[TEXTS_MAX][PAGE_FINDING_BYTES_MAX];
    size_t row_count, row_bytes;
    size_t text_count;
} Walk;

static int open_file(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/data.mdb", test_dir());
    int file = open(path, O_RDWR);
    CHECK(file >= 0);
    return file;
}

static void keep_text(void *context, const PageFinding *finding)
{
    Walk *walk = context;
    if (walk->text_count == TEXTS_MAX) return;
    snprintf(walk->texts[walk->text_count++], PAGE_FINDING_BYTES_MAX, "%s", finding->text);
}

static const char *count_row(void *context, Slice key, Slice value)
{
    Walk *walk = context;
    walk->row_count++;
    walk->row_bytes += value.size;
    return slice_equal(slice_skip(key, 1), slice_of("bad")) ? "its row is bad" : NULL;
}

static Walk walk_with(PageWalkOptions options)
{
    Walk walk = {.text_count = 0};
    ErrorDetail detail = {""};
    options.file = open_file();
    options.found = keep_text;
    options.context = &walk;
    CHECK_EQ(page_walk(&options, &detail, &walk.result), ERROR_NONE);
    close(options.file);
    return walk;
}

static Walk walk_all(void)
{
    return walk_with((PageWalkOptions){.row = count_row});
}

static void check_found(const char *text)
{
    Walk walk = walk_all();
    bool is_found = false;
    for (size_t i = 0; i < walk.text_count; i++)
        is_found = is_found || strstr(walk.texts[i], text) != NULL;
    if (!is_found) CHECK_STR(walk.text_count > 0 ? walk.texts[0] : "no finding", text);
}

static void check_sound(void)
{
    Walk walk = walk_all();
    CHECK_STR(walk.texts[0], "");
    CHECK_EQ(walk.result.finding_count, 0);
    CHECK_EQ(walk.result.used_pages + walk.result.free_pages + LMDB_META_COUNT,
             walk.result.last_page + 1);
}

static void put_many(Kv *kv, unsigned first, unsigned count, size_t value_bytes)
{
    static const uint8_t VALUE[20000] = {1};
    KvTxn *txn = begin_ok(kv, /* is_write= */ true);
    for (unsigned i = first; i < first + count; i++) {
        char key[32];
        snprintf(key, sizeof key, "key %08u", i * 7919 % 100003);
        CHECK_EQ(kv_put(txn, LETTERS, slice_of(key), slice(VALUE, value_bytes)), ERROR_NONE);
    }
    CHECK_EQ(kv_commit(&txn), ERROR_NONE);
}

static void delete_many(Kv *kv, unsigned first, unsigned count)
{
    KvTxn *txn = begin_ok(kv, /* is_write= */ true);
    for (unsigned i = first; i < first + count; i++) {
        char key[32];
        bool found;
        snprintf(key, sizeof key, "key %08u", i * 7919 % 100003);
        CHECK_EQ(kv_delete(txn, LETTERS, slice_of(key), &found), ERROR_NONE);
    }
    CHECK_EQ(kv_commit(&txn), ERROR_NONE);
}

// A closed store with branches, overflow pages and a free list.
static void make_store(void)
{
    Fixture f = fixture_open();
    put_many(f.kv, 0, 3000, 100);
    put_many(f.kv, 3000, 20, 4000);
    for (unsigned i = 0; i < 5; i++)
        delete_many(f.kv, i * 100, 100);
    fixture_close(&f);
}

// What the state's meta page says.
static LmdbMetaPage read_meta(int file, uint64_t *out_index)
{
    LmdbMetaPage metas[2];
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pread(file, &metas[i], sizeof metas[i], (off_t)i * PAGE), sizeof metas[i]);
    *out_index = metas[1].txn_id > metas[0].txn_id;
    return metas[*out_index];
}

static void write_meta(int file, const LmdbMetaPage *meta, uint64_t index)
{
    CHECK_EQ(pwrite(file, meta, sizeof *meta, (off_t)index * PAGE), sizeof *meta);
}

typedef struct Page {
    uint64_t number;
    uint8_t bytes[PAGE];
} Page;

static Page read_page(int file, uint64_t number)
{
    Page page = {.number = number};
    CHECK_EQ(pread(file, page.bytes, PAGE, (off_t)number * PAGE), PAGE);
    return page;
}

static void write_page(int file, const Page *page)
{
    CHECK_EQ(pwrite(file, page->bytes, PAGE, (off_t)page->number * PAGE), PAGE);
}

static LmdbPageHeader header_of(const Page *page)
{
    LmdbPageHeader header;
    memcpy(&header, page->bytes, sizeof header);
    return header;
}

static size_t node_offset(const Page *page, size_t index)
{
    return lmdb_u16(page->bytes + sizeof(LmdbPageHeader) + 2 * index);
}

// The tree with the most pages is below the root of the main tree, or is the main tree.
static Page find_root(int file)
{
    uint64_t index;
    LmdbMetaPage meta = read_meta(file, &index);
    Page page = read_page(file, meta.trees[LMDB_MAIN_TREE].root);
    LmdbPageHeader header = header_of(&page);
    for (size_t i = 0; header.flags == LMDB_PAGE_LEAF && i < lmdb_node_count(&header); i++) {
        LmdbTree tree;
        size_t at = node_offset(&page, i);
        LmdbNode node = lmdb_node(page.bytes + at);
        if (!(node.flags & LMDB_NODE_TREE)) continue;
        memcpy(&tree, page.bytes + at + sizeof node + node.key_bytes, sizeof tree);
        if (tree.depth > 1) return read_page(file, tree.root);
    }
    return page;
}

static uint64_t child_of(const Page *page, size_t index)
{
    return lmdb_child_page(lmdb_node(page->bytes + node_offset(page, index)));
}

// The second leaf under the root.
static Page find_leaf(int file)
{
    Page root = find_root(file);
    CHECK_EQ(header_of(&root).flags, LMDB_PAGE_BRANCH);
    Page leaf = read_page(file, child_of(&root, 1));
    CHECK_EQ(header_of(&leaf).flags, LMDB_PAGE_LEAF);
    return leaf;
}

static uint64_t find_overflow_page(int file)
{
    struct stat status;
    CHECK_EQ(fstat(file, &status), 0);
    for (uint64_t i = 2; i < (uint64_t)status.st_size / PAGE; i++) {
        Page page = read_page(file, i);
        if (header_of(&page).flags == LMDB_PAGE_OVERFLOW) return i;
    }
    return 0;
}

// Changes the 16-bit field at `offset` of a page by `by`.
static void change(int file, const Page *page, size_t offset, int by)
{
    Page changed = *page;
    uint16_t value = (uint16_t)(lmdb_u16(page->bytes + offset) + by);
    memcpy(changed.bytes + offset, &value, sizeof value);
    write_page(file, &changed);
}

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

TEST(meta_pages_that_cannot_be_right_are_found)
{
    make_store();
    int file = open_file();
    uint64_t index;
    LmdbMetaPage meta = read_meta(file, &index);
    for (size_t at = offsetof(LmdbMetaPage, magic); at < offsetof(LmdbMetaPage, address); at++) {
        LmdbMetaPage bad = meta;
        ((uint8_t *)&bad)[at] ^= 4;
        write_meta(file, &bad, index);
        check_found("it is not a meta page of LMDB 0.9");
    }
    LmdbMetaPage bad = meta;
    bad.trees[LMDB_FREE_LIST].pad ^= 64;
    write_meta(file, &bad, index);
    check_found("it says that pages have");
    bad = meta;
    bad.txn_id += 2;
    write_meta(file, &bad, index);
    check_found("does not follow that of page");
    bad = meta;
    bad.txn_id -= 1;
    write_meta(file, &bad, index);
    check_found("does not follow that of page");
    bad = meta;
    bad.last_page = UINT64_MAX;
    write_meta(file, &bad, index);
    check_found("it says that the last page is");
    bad = meta;
    bad.last_page += 1;
    write_meta(file, &bad, index);
    check_found("it is not free, but the file ends before it does");
    write_meta(file, &meta, index);
    check_sound();
    close(file);
}

TEST(trees_that_the_meta_page_misdescribes_are_found)
{
    make_store();
    int file = open_file();
    uint64_t index;
    LmdbMetaPage meta = read_meta(file, &index);
    for (size_t i = 0; i < LMDB_ROOT_COUNT; i++) {
        LmdbMetaPage bad = meta;
        bad.trees[i].root = meta.last_page + 5;
        write_meta(file, &bad, index);
        check_found("but the last page is");
        bad = meta;
        bad.trees[i].root = meta.trees[!i].root;
        write_meta(file, &bad, index);
        CHECK(walk_all().result.finding_count > 0);
        bad = meta;
        bad.trees[i].flags ^= 4;
        write_meta(file, &bad, index);
        check_found("it says flags");
        bad = meta;
        bad.trees[i].depth++;
        write_meta(file, &bad, index);
        check_found("it says depth");
        bad = meta;
        bad.trees[i].entries++;
        write_meta(file, &bad, index);
        check_found("it says entries");
        bad = meta;
        bad.trees[i].leaf_pages++;
        write_meta(file, &bad, index);
        check_found("it says leaf pages");
    }
    close(file);
}

TEST(a_page_with_a_wrong_header_is_found)
{
    make_store();
    int file = open_file();
    Page leaf = find_leaf(file);
    change(file, &leaf, offsetof(LmdbPageHeader, page), 1);
    check_found("it says that it is page");
    change(file, &leaf, offsetof(LmdbPageHeader, flags), 1);
    check_found("it has flags 0x3");
    change(file, &leaf, offsetof(LmdbPageHeader, lower), 1);
    check_found("cannot be right");
    change(file, &leaf, offsetof(LmdbPageHeader, lower), PAGE);
    check_found("cannot be right");
    change(file, &leaf, offsetof(LmdbPageHeader, lower), -2);
    check_found("its nodes overlap or leave a gap");
    change(file, &leaf, offsetof(LmdbPageHeader, upper), -2);
    check_found("its nodes overlap or leave a gap");
    change(file, &leaf, offsetof(LmdbPageHeader, upper), 2);
    check_found("cannot be where it is");
    Page empty = {.number = leaf.number};
    write_page(file, &empty);
    check_found("it says that it is page 0");
    write_page(file, &leaf);
    check_sound();
    close(file);
}

TEST(nodes_that_cannot_be_right_are_found)
{
    make_store();
    int file = open_file();
    Page leaf = find_leaf(file);
    size_t pointer = sizeof(LmdbPageHeader) + 2;
    change(file, &leaf, pointer, 1);
    check_found("its node 1 cannot be where it is");
    change(file, &leaf, pointer, (int)node_offset(&leaf, 0) - (int)node_offset(&leaf, 1));
    check_found("its node 1 cannot be where it is");
    change(file, &leaf, pointer, PAGE);
    check_found("its node 1 cannot be where it is");
    size_t node = node_offset(&leaf, 1);
    change(file, &leaf, node + offsetof(LmdbNode, low), 2);
    check_found("its nodes overlap or leave a gap");
    change(file, &leaf, node + offsetof(LmdbNode, key_bytes), 2);
    check_found("its nodes overlap or leave a gap");
    change(file, &leaf, node + offsetof(LmdbNode, key_bytes), 600);
    check_found("its node 1 cannot be where it is");
    change(file, &leaf, node + offsetof(LmdbNode, flags), 4);
    check_found("its node 1 has flags 0x4");
    close(file);
}

TEST(keys_out_of_order_are_found)
{
    make_store();
    int file = open_file();
    Page leaf = find_leaf(file), swapped = leaf;
    uint8_t *pointers = swapped.bytes + sizeof(LmdbPageHeader);
    memcpy(pointers, leaf.bytes + sizeof(LmdbPageHeader) + 2, 2);
    memcpy(pointers + 2, leaf.bytes + sizeof(LmdbPageHeader), 2);
    write_page(file, &swapped);
    check_found("out of order in");
    // In order in its page, and not where the parent says.
    Page high = leaf;
    LmdbPageHeader header = header_of(&leaf);
    size_t last = node_offset(&leaf, lmdb_node_count(&header) - 1);
    high.bytes[last + sizeof(LmdbNode)] = 'z';
    write_page(file, &high);
    check_found("out of order in");
    write_page(file, &leaf);
    Page root = find_root(file), low = root;
    low.bytes[node_offset(&root, 1) + sizeof(LmdbNode)] = 'a';
    write_page(file, &low);
    check_found("out of order in");
    close(file);
}

TEST(children_that_are_not_there_or_twice_there_are_found)
{
    make_store();
    int file = open_file();
    Page root = find_root(file);
    size_t at = node_offset(&root, 1);
    change(file, &root, at + offsetof(LmdbNode, high), 1);
    check_found("but the last page is");
    change(file, &root, at, (int)child_of(&root, 0) - (int)child_of(&root, 1));
    check_found("it is used twice");
    change(file, &root, at, (int)root.number - (int)child_of(&root, 1));
    check_found("it is used twice");
    change(file, &root, at, -(int)child_of(&root, 1));
    check_found("it names page 0, but");
    close(file);
}

TEST(a_damaged_subtree_leaves_the_rest_to_be_walked)
{
    make_store();
    Walk whole = walk_all();
    int file = open_file();
    Page leaf = find_leaf(file);
    Page empty = {.number = leaf.number};
    write_page(file, &empty);
    Walk walk = walk_all();
    CHECK_EQ(walk.result.finding_count, 1);
    CHECK_EQ(walk.result.leaked_pages, 0);
    LmdbPageHeader header = header_of(&leaf);
    CHECK(whole.row_count - walk.row_count <= lmdb_node_count(&header));
    CHECK(walk.row_count < whole.row_count);
    close(file);
}

TEST(leaves_at_another_depth_are_found)
{
    make_store();
    int file = open_file();
    Page root = find_root(file), leaf = find_leaf(file);
    // A branch in the place of a leaf, with two children that are leaves of the same tree.
    Page branch = root;
    branch.number = leaf.number;
    memcpy(branch.bytes, &leaf.number, sizeof leaf.number);
    write_page(file, &branch);
    CHECK(walk_all().result.finding_count > 0);
    check_found("this leaf is at depth");
    close(file);
}

TEST(overflow_pages_that_cannot_be_right_are_found)
{
    make_store();
    int file = open_file();
    Page page = read_page(file, find_overflow_page(file));
    change(file, &page, offsetof(LmdbPageHeader, page), 1);
    check_found("it is not the overflow page that page");
    change(file, &page, offsetof(LmdbPageHeader, flags), 2);
    check_found("it is not the overflow page that page");
    change(file, &page, offsetof(LmdbPageHeader, lower), -1);
    check_found("for a value that needs");
    change(file, &page, offsetof(LmdbPageHeader, upper), 2000);
    check_found("but the last page is");
    close(file);
}

// The first leaf of the free list, and where its last row's numbers begin.
static Page find_free_row(int file, size_t *out_at, uint64_t *out_count)
{
    uint64_t index;
    LmdbMetaPage meta = read_meta(file, &index);
    Page page = read_page(file, meta.trees[LMDB_FREE_LIST].root);
    LmdbPageHeader header = header_of(&page);
    CHECK_EQ(header.flags, LMDB_PAGE_LEAF);
    for (size_t i = lmdb_node_count(&header); i-- > 0;) {
        LmdbNode node = lmdb_node(page.bytes + node_offset(&page, i));
        *out_at = node_offset(&page, i) + sizeof node + node.key_bytes;
        memcpy(out_count, page.bytes + *out_at, sizeof *out_count);
        if (node.flags == 0 && *out_count >= 2) return page;
    }
    CHECK(!"a row with two pages");
    return page;
}

static void plant_free(int file, const Page *page, size_t at, uint64_t number)
{
    Page bad = *page;
    memcpy(bad.bytes + at, &number, sizeof number);
    write_page(file, &bad);
}

TEST(a_free_list_that_cannot_be_right_is_found)
{
    make_store();
    int file = open_file();
    size_t at;
    uint64_t count, first, index;
    Page page = find_free_row(file, &at, &count);
    LmdbMetaPage meta = read_meta(file, &index);
    memcpy(&first, page.bytes + at + 8, sizeof first);
    plant_free(file, &page, at, count + 1000);
    check_found("a row of the free list cannot be right");
    plant_free(file, &page, at + 8, meta.last_page + 1);
    check_found("out of order");
    plant_free(file, &page, at + 16, first);
    check_found("out of order");
    check_found("the free list has it twice");
    plant_free(file, &page, at + 8, 1);
    check_found("out of order");
    uint64_t leaf = find_leaf(file).number;
    plant_free(file, &page, at + 8, leaf);
    check_found("it is in use, but the free list has it");
    plant_free(file, &page, at, count - 1);
    check_found("neither in use nor free");
    plant_free(file, &page, at - 8, meta.txn_id + 1);
    check_found("a row of the free list cannot be right");
    close(file);
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
