// Steps of the page walk's tests.

#include "page_walk_steps.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"

int open_file(void)
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

Walk walk_with(PageWalkOptions options)
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

Walk walk_all(void)
{
    return walk_with((PageWalkOptions){.row = count_row});
}

void check_found(const char *text)
{
    Walk walk = walk_all();
    bool is_found = false;
    for (size_t i = 0; i < walk.text_count; i++)
        is_found = is_found || strstr(walk.texts[i], text) != NULL;
    if (!is_found) CHECK_STR(walk.text_count > 0 ? walk.texts[0] : "no finding", text);
}

void check_sound(void)
{
    Walk walk = walk_all();
    CHECK_STR(walk.texts[0], "");
    CHECK_EQ(walk.result.finding_count, 0);
    CHECK_EQ(walk.result.used_pages + walk.result.free_pages + LMDB_META_COUNT,
             walk.result.last_page + 1);
}

void put_many(Kv *kv, unsigned first, unsigned count, size_t value_bytes)
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

void delete_many(Kv *kv, unsigned first, unsigned count)
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
void make_store(void)
{
    Fixture f = fixture_open();
    put_many(f.kv, 0, 3000, 100);
    put_many(f.kv, 3000, 20, 4000);
    for (unsigned i = 0; i < 5; i++)
        delete_many(f.kv, i * 100, 100);
    fixture_close(&f);
}

// What the state's meta page says.
LmdbMetaPage read_meta(int file, uint64_t *out_index)
{
    LmdbMetaPage metas[2];
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pread(file, &metas[i], sizeof metas[i], (off_t)i * PAGE), sizeof metas[i]);
    *out_index = metas[1].txn_id > metas[0].txn_id;
    return metas[*out_index];
}

void write_meta(int file, const LmdbMetaPage *meta, uint64_t index)
{
    CHECK_EQ(pwrite(file, meta, sizeof *meta, (off_t)index * PAGE), sizeof *meta);
}

Page read_page(int file, uint64_t number)
{
    Page page = {.number = number};
    CHECK_EQ(pread(file, page.bytes, PAGE, (off_t)number * PAGE), PAGE);
    return page;
}

void write_page(int file, const Page *page)
{
    CHECK_EQ(pwrite(file, page->bytes, PAGE, (off_t)page->number * PAGE), PAGE);
}

LmdbPageHeader header_of(const Page *page)
{
    LmdbPageHeader header;
    memcpy(&header, page->bytes, sizeof header);
    return header;
}

size_t node_offset(const Page *page, size_t index)
{
    return lmdb_u16(page->bytes + sizeof(LmdbPageHeader) + 2 * index);
}

// The tree with the most pages is below the root of the main tree, or is the main tree.
Page find_root(int file)
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

uint64_t child_of(const Page *page, size_t index)
{
    return lmdb_child_page(lmdb_node(page->bytes + node_offset(page, index)));
}

// The second leaf under the root.
Page find_leaf(int file)
{
    Page root = find_root(file);
    CHECK_EQ(header_of(&root).flags, LMDB_PAGE_BRANCH);
    Page leaf = read_page(file, child_of(&root, 1));
    CHECK_EQ(header_of(&leaf).flags, LMDB_PAGE_LEAF);
    return leaf;
}

uint64_t find_overflow_page(int file)
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
void change(int file, const Page *page, size_t offset, int by)
{
    Page changed = *page;
    uint16_t value = (uint16_t)(lmdb_u16(page->bytes + offset) + by);
    memcpy(changed.bytes + offset, &value, sizeof value);
    write_page(file, &changed);
}

// The first leaf of the free list, and where its last row's numbers begin.
Page find_free_row(int file, size_t *out_at, uint64_t *out_count)
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

void plant_free(int file, const Page *page, size_t at, uint64_t number)
{
    Page bad = *page;
    memcpy(bad.bytes + at, &number, sizeof number);
    write_page(file, &bad);
}
