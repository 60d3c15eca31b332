// One page of a tree: header, bounds and nodes.
//
// The nodes fill the page from `upper` to its end, in any order. So a page is right if the nodes
// lie end to end: the size of each is noted at its offset, and one pass from `upper` to the end
// meets all of them.

#include "kv/durable/page_walk_fields.h"

static const char NOT_A_TREE_PAGE[] = "it has flags 0x%x, which no page of a tree has";

static bool header_check(PageWalk *walk, const Tree *tree, TreePage *page)
{
    LmdbPageHeader header;
    memcpy(&header, page->bytes, sizeof(header));
    if (header.page != page->number) {
        page_walk_find(walk, page->number, "it says that it is page %llu",
                       (unsigned long long)header.page);
        return false;
    }
    if (header.flags != LMDB_PAGE_BRANCH && header.flags != LMDB_PAGE_LEAF) {
        page_walk_find(walk, page->number, NOT_A_TREE_PAGE, header.flags);
        return false;
    }
    page->is_leaf = header.flags == LMDB_PAGE_LEAF;
    // LMDB asserts that a branch has two children, except in the free list.
    size_t count_min = page->is_leaf || tree->is_free_list ? 1 : 2;
    bool is_bounded = header.lower >= sizeof(header) + count_min * sizeof(uint16_t) &&
                      header.lower % 2 == 0 && header.lower <= header.upper &&
                      header.upper <= walk->page_bytes;
    if (!is_bounded) {
        page_walk_find(walk, page->number, "its bounds %u and %u cannot be right", header.lower,
                       header.upper);
        return false;
    }
    page->count = lmdb_node_count(&header);
    return true;
}

// Returns the size of the node at `at`, or 0 if it cannot be right.
static size_t node_bytes(const PageWalk *walk, const Tree *tree, const TreePage *page, size_t index,
                         size_t at)
{
    if (at + sizeof(LmdbNode) > walk->page_bytes) return 0;
    LmdbNode node = lmdb_node(page->bytes + at);
    size_t bytes = sizeof(node) + node.key_bytes;
    bool may_lack_key = !page->is_leaf && index == 0;
    if (node.key_bytes > LMDB_KEY_BYTES_MAX || (node.key_bytes == 0 && !may_lack_key)) return 0;
    if (tree->is_free_list && node.key_bytes != sizeof(uint64_t) && !may_lack_key) return 0;
    if (page->is_leaf) {
        bool is_overflow = node.flags & LMDB_NODE_OVERFLOW;
        bytes += is_overflow ? sizeof(uint64_t) : lmdb_value_bytes(node);
    }
    return at + bytes <= walk->page_bytes ? bytes + bytes % 2 : 0;
}

static bool note_nodes(PageWalk *walk, const Tree *tree, const TreePage *page, size_t upper)
{
    for (size_t i = 0; i < page->count; i++) {
        size_t at = lmdb_u16(page->bytes + sizeof(LmdbPageHeader) + i * sizeof(uint16_t));
        size_t bytes = at >= upper && at % 2 == 0 ? node_bytes(walk, tree, page, i, at) : 0;
        if (bytes == 0 || walk->node_bytes[at / 2] != 0) {
            page_walk_find(walk, page->number, "its node %zu cannot be where it is", i);
            return false;
        }
        walk->node_bytes[at / 2] = (uint16_t)bytes;
    }
    return true;
}

bool page_nodes_check(PageWalk *walk, const Tree *tree, TreePage *page)
{
    if (!header_check(walk, tree, page)) return false;
    LmdbPageHeader header;
    memcpy(&header, page->bytes, sizeof(header));
    bool is_sound = note_nodes(walk, tree, page, header.upper);
    if (is_sound) {
        size_t at = header.upper, count = 0;
        for (; at < walk->page_bytes && walk->node_bytes[at / 2] != 0; count++)
            at += walk->node_bytes[at / 2];
        is_sound = at == walk->page_bytes && count == page->count;
        if (!is_sound) page_walk_find(walk, page->number, "its nodes overlap or leave a gap");
    }
    for (size_t i = 0; i < page->count; i++) {
        size_t at = lmdb_u16(page->bytes + sizeof(header) + i * sizeof(uint16_t));
        walk->node_bytes[at / 2] = 0;
    }
    return is_sound;
}

const uint8_t *page_node_at(const TreePage *page, size_t index)
{
    size_t at = lmdb_u16(page->bytes + sizeof(LmdbPageHeader) + index * sizeof(uint16_t));
    return page->bytes + at;
}

Slice page_node_key(const TreePage *page, size_t index)
{
    const uint8_t *node = page_node_at(page, index);
    return slice(node + sizeof(LmdbNode), lmdb_node(node).key_bytes);
}
