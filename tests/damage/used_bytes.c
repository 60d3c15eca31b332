// Follows a sound file from its newest meta page.

#include "used_bytes.h"

#include <stdbool.h>
#include <string.h>

#include "harness.h"
#include "kv/durable/lmdb_layout.h"

enum { PAGE = 4096 };

typedef struct File {
    const uint8_t *bytes;
    size_t size;
    uint8_t *used; // a ByteUse for each
    bool is_free_list;
} File;

static void mark(const File *file, size_t at, size_t size)
{
    CHECK(at + size <= file->size);
    memset(file->used + at, BYTE_OF_PAGE, size);
}

static void mark_row(const File *file, size_t at, size_t size)
{
    mark(file, at, size);
    memset(file->used + at, file->is_free_list ? BYTE_UNCLEAR : BYTE_OF_ROW, size);
}

static void mark_header(const File *file, size_t page_at)
{
    mark(file, page_at, sizeof(LmdbPageHeader));
    memset(file->used + page_at + offsetof(LmdbPageHeader, pad), 0, sizeof(uint16_t));
}

static void mark_page(const File *file, uint64_t number);

static void mark_tree(const File *from, size_t at, bool is_free_list)
{
    File copy = *from, *file = &copy;
    file->is_free_list = is_free_list;
    LmdbTree tree;
    memcpy(&tree, file->bytes + at, sizeof(tree));
    mark(file, at, sizeof(tree));
    if (!is_free_list) memset(file->used + at, 0, sizeof(tree.pad));
    if (tree.root != LMDB_NO_PAGE) mark_page(file, tree.root);
}

// A row of the free list has a count and that many numbers; room for more may follow.
static void mark_value(const File *file, size_t at, size_t size)
{
    uint64_t count;
    if (!file->is_free_list) {
        mark_row(file, at, size);
        return;
    }
    memcpy(&count, file->bytes + at, sizeof(count));
    mark(file, at, (size_t)(count + 1) * sizeof(count));
}

static void mark_overflow(const File *file, size_t at, size_t size)
{
    uint64_t number;
    mark(file, at, sizeof(number));
    memcpy(&number, file->bytes + at, sizeof(number));
    mark_value(file, number * PAGE + sizeof(LmdbPageHeader), size);
    mark_header(file, number * PAGE);
}

static void mark_leaf_node(const File *file, size_t at)
{
    LmdbNode node = lmdb_node(file->bytes + at);
    size_t value_at = at + sizeof(node) + node.key_bytes;
    mark(file, at, sizeof(node));
    mark_row(file, at + sizeof(node), node.key_bytes);
    if (node.flags == LMDB_NODE_OVERFLOW)
        mark_overflow(file, value_at, lmdb_value_bytes(node));
    else if (node.flags == LMDB_NODE_TREE)
        mark_tree(file, value_at, /* is_free_list= */ false);
    else
        mark_value(file, value_at, lmdb_value_bytes(node));
}

static void mark_page(const File *file, uint64_t number)
{
    LmdbPageHeader header;
    size_t page_at = number * PAGE;
    CHECK(page_at + PAGE <= file->size);
    memcpy(&header, file->bytes + page_at, sizeof(header));
    CHECK_EQ(header.page, number);
    mark_header(file, page_at);
    mark(file, page_at, header.lower);
    memset(file->used + page_at + offsetof(LmdbPageHeader, pad), 0, sizeof(uint16_t));
    for (size_t i = 0; i < lmdb_node_count(&header); i++) {
        size_t at = page_at + lmdb_u16(file->bytes + page_at + sizeof(header) + 2 * i);
        if (header.flags == LMDB_PAGE_LEAF) {
            mark_leaf_node(file, at);
            continue;
        }
        LmdbNode node = lmdb_node(file->bytes + at);
        mark(file, at, sizeof(node));
        if (i > 0) mark_row(file, at + sizeof(node), node.key_bytes); // a separator
        mark_page(file, lmdb_child_page(node));
    }
}

static void mark_field(const File *file, size_t index, size_t offset, size_t size)
{
    mark(file, index * PAGE + offset, size);
}

void used_bytes_find(const uint8_t *bytes, size_t size, uint8_t *used)
{
    File file = {.bytes = bytes, .size = size, .used = used};
    LmdbMetaPage metas[LMDB_META_COUNT];
    memset(used, 0, size);
    for (size_t i = 0; i < LMDB_META_COUNT; i++) {
        memcpy(&metas[i], bytes + i * PAGE, sizeof(metas[i]));
        mark_header(&file, i * PAGE);
        memset(used + i * PAGE + offsetof(LmdbPageHeader, lower), 0, 2 * sizeof(uint16_t));
        mark_field(&file, i, offsetof(LmdbMetaPage, magic), 2 * sizeof(uint32_t));
        mark_field(&file, i, offsetof(LmdbMetaPage, trees), sizeof(uint32_t)); // size of a page
        memset(used + i * PAGE + offsetof(LmdbMetaPage, txn_id), BYTE_UNCLEAR, sizeof(uint64_t));
    }
    size_t newest = metas[1].txn_id > metas[0].txn_id;
    mark_field(&file, newest, offsetof(LmdbMetaPage, last_page), sizeof(uint64_t));
    size_t trees_at = newest * PAGE + offsetof(LmdbMetaPage, trees);
    mark_tree(&file, trees_at, /* is_free_list= */ true);
    mark_tree(&file, trees_at + sizeof(LmdbTree), /* is_free_list= */ false);
}
