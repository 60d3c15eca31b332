// One tree: each page under its root, its keys, and its counts.
//
// A page is walked with the bounds that its parents' separators give: every key under it is at or
// after `from` and before `to`. Both borrow from the parents' pages, which stay in memory, one for
// each level, until all their children were walked.

#include <stdio.h>
#include <stdlib.h>

#include "kv/durable/page_walk_fields.h"

typedef struct Range {
    Slice from, to; // .bytes NULL: no bound
} Range;

static const Range NO_RANGE = {{NULL, 0}, {NULL, 0}};

static void walk_page(PageWalk *walk, Tree *tree, uint64_t number, uint64_t by, Range range,
                      size_t level);

static int key_compare(const Tree *tree, Slice a, Slice b)
{
    if (tree->is_free_list) {
        uint64_t a_id = 0, b_id = 0;
        memcpy(&a_id, a.bytes, sizeof(a_id));
        memcpy(&b_id, b.bytes, sizeof(b_id));
        return a_id < b_id ? -1 : a_id > b_id;
    }
    size_t size = a.size < b.size ? a.size : b.size;
    int order = memcmp(a.bytes, b.bytes, size);
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

// Checks the order of a page's keys and that they are in its range. The first key of a branch means
// nothing. Returns the index of a bad key, or the count.
static size_t bad_key(const Tree *tree, const TreePage *page, Range range)
{
    Slice last = range.from;
    bool may_equal = page->is_leaf; // the first key may be the separator itself
    for (size_t i = page->is_leaf ? 0 : 1; i < page->count; i++) {
        Slice key = page_node_key(page, i);
        int order = last.bytes ? key_compare(tree, last, key) : -1;
        if (order > 0 || (order == 0 && !may_equal)) return i;
        if (range.to.bytes && key_compare(tree, key, range.to) >= 0) return i;
        last = key;
        may_equal = false;
    }
    return page->count;
}

// Claims and checks the first page of a value's overflow pages. Returns false if the value cannot
// be read.
static bool claim_overflow(PageWalk *walk, Tree *tree, uint64_t first, size_t size, uint64_t by)
{
    LmdbPageHeader header;
    uint64_t needed = (sizeof(header) + size + walk->page_bytes - 1) / walk->page_bytes;
    if (!page_walk_claim(walk, first, 1, by)) return false;
    if (!page_walk_read(walk, first, &header, sizeof(header))) return false;
    uint64_t count = lmdb_overflow_count(&header);
    if (header.page != first || header.flags != LMDB_PAGE_OVERFLOW) {
        page_walk_find(walk, first, "it is not the overflow page that page %llu names",
                       (unsigned long long)by);
        return false;
    }
    if (count < needed) {
        page_walk_find(walk, first, "it has %llu pages for a value that needs %llu",
                       (unsigned long long)count, (unsigned long long)needed);
        return false;
    }
    tree->seen.overflow_pages += count;
    return count == 1 || page_walk_claim(walk, first + 1, count - 1, by);
}

// Reads a value that is on overflow pages. Returns false if there is no memory, or with a finding.
static bool read_value(PageWalk *walk, uint64_t first, size_t size, Slice *out)
{
    size_t bytes = sizeof(LmdbPageHeader) + size;
    if (bytes > walk->value_capacity) {
        uint8_t *value = realloc(walk->value, bytes);
        walk->is_out_of_memory = !value;
        if (!value) return false;
        walk->value = value;
        walk->value_capacity = bytes;
    }
    if (!page_walk_read(walk, first, walk->value, bytes)) return false;
    *out = slice(walk->value + sizeof(LmdbPageHeader), size);
    return true;
}

static void note_table(PageWalk *walk, const TreePage *page, Slice key, Slice value)
{
    Tree table = {.named_by = page->number};
    if (value.size != sizeof(table.said) || walk->table_count == PAGE_WALK_TABLES_MAX) {
        page_walk_find(walk, page->number, "it names a table that cannot be right");
        walk->is_lossy = true;
        return;
    }
    memcpy(&table.said, value.bytes, sizeof(table.said));
    snprintf(table.name, sizeof(table.name), "table %.*s", (int)(key.size < 32 ? key.size : 32),
             (const char *)key.bytes);
    walk->tables[walk->table_count++] = table;
}

static void check_row(PageWalk *walk, const TreePage *page, Slice key, Slice value)
{
    walk->result->rows++;
    if (!walk->options->row) return;
    const char *wrong = walk->options->row(walk->options->context, key, value);
    if (wrong) page_walk_find(walk, page->number, "%s", wrong);
}

static void walk_overflow_node(PageWalk *walk, Tree *tree, const TreePage *page, Slice key,
                               size_t size)
{
    uint64_t first;
    Slice value;
    memcpy(&first, key.bytes + key.size, sizeof(first));
    if (!claim_overflow(walk, tree, first, size, page->number)) {
        tree->is_lossy = true;
    } else if (tree->is_free_list) {
        FreeRow row = {.key = key, .overflow = first, .size = size, .by = page->number};
        page_walk_free_row(walk, &row);
    } else if (!walk->options->row) {
        walk->result->rows++;
    } else if (read_value(walk, first, size, &value)) {
        check_row(walk, page, key, value);
    }
}

static void walk_leaf_node(PageWalk *walk, Tree *tree, const TreePage *page, size_t index)
{
    LmdbNode node = lmdb_node(page_node_at(page, index));
    Slice key = page_node_key(page, index);
    Slice value = slice(key.bytes + key.size, lmdb_value_bytes(node));
    if (node.flags == LMDB_NODE_OVERFLOW) {
        walk_overflow_node(walk, tree, page, key, value.size);
    } else if (node.flags == LMDB_NODE_TREE && tree->is_main) {
        note_table(walk, page, key, value);
    } else if (node.flags != 0) {
        page_walk_find(walk, page->number, "its node %zu has flags 0x%x, which no row here has",
                       index, node.flags);
        tree->is_lossy = true;
    } else if (tree->is_free_list) {
        FreeRow row = {.key = key, .value = value.bytes, .size = value.size, .by = page->number};
        page_walk_free_row(walk, &row);
    } else {
        check_row(walk, page, key, value);
    }
}

static void walk_leaf(PageWalk *walk, Tree *tree, const TreePage *page, size_t level)
{
    uint16_t depth = (uint16_t)(level + 1);
    if (tree->seen.depth == 0) tree->seen.depth = depth;
    if (depth != tree->seen.depth) {
        page_walk_find(walk, page->number, "this leaf is at depth %u, others are at %u", depth,
                       tree->seen.depth);
    }
    tree->seen.leaf_pages++;
    tree->seen.entries += page->count;
    if (walk->options->is_quick && !tree->is_main && !tree->is_free_list) return;
    size_t overflow_count = 0;
    for (size_t i = 0; i < page->count; i++) {
        const uint8_t *node = page_node_at(page, i);
        if (lmdb_node(node).flags != LMDB_NODE_OVERFLOW) continue;
        memcpy(&walk->children[overflow_count++],
               node + sizeof(LmdbNode) + lmdb_node(node).key_bytes, sizeof(uint64_t));
    }
    page_walk_read_ahead(walk, overflow_count);
    for (size_t i = 0; i < page->count && !page_walk_is_cancelled(walk); i++)
        walk_leaf_node(walk, tree, page, i);
}

static void walk_branch(PageWalk *walk, Tree *tree, const TreePage *page, Range range, size_t level)
{
    tree->seen.branch_pages++;
    if (walk->options->is_quick && !tree->is_free_list) {
        tree->is_lossy = true;
        return;
    }
    for (size_t i = 0; i < page->count; i++)
        walk->children[i] = lmdb_child_page(lmdb_node(page_node_at(page, i)));
    page_walk_read_ahead(walk, page->count);
    for (size_t i = 0; i < page->count && !page_walk_is_cancelled(walk); i++) {
        Range child = {
            .from = i == 0 ? range.from : page_node_key(page, i),
            .to = i + 1 < page->count ? page_node_key(page, i + 1) : range.to,
        };
        uint64_t number = lmdb_child_page(lmdb_node(page_node_at(page, i)));
        walk_page(walk, tree, number, page->number, child, level + 1);
    }
}

// Returns the buffer of a level, or NULL.
static uint8_t *level_bytes(PageWalk *walk, size_t level)
{
    if (!walk->levels[level]) walk->levels[level] = malloc(walk->page_bytes);
    if (!walk->levels[level]) walk->is_out_of_memory = true;
    return walk->levels[level];
}

static void walk_page(PageWalk *walk, Tree *tree, uint64_t number, uint64_t by, Range range,
                      size_t level)
{
    TreePage page = {.number = number};
    if (level == LMDB_DEPTH_MAX) {
        page_walk_find(walk, by, "it is too deep in its tree");
        tree->is_lossy = true;
        return;
    }
    uint8_t *bytes = level_bytes(walk, level);
    if (!bytes) return;
    page.bytes = bytes;
    if (!page_walk_claim(walk, number, 1, by) ||
        !page_walk_read(walk, number, bytes, walk->page_bytes) ||
        !page_nodes_check(walk, tree, &page)) {
        tree->is_lossy = true;
        return;
    }
    size_t bad = bad_key(tree, &page, range);
    if (bad < page.count) {
        page_walk_find(walk, number, "its key %zu is out of order in %s", bad, tree->name);
        range = NO_RANGE; // what lies below is still walked
    }
    if (page.is_leaf)
        walk_leaf(walk, tree, &page, level);
    else
        walk_branch(walk, tree, &page, range, level);
}

static void compare_count(PageWalk *walk, const Tree *tree, const char *what, uint64_t said,
                          uint64_t seen)
{
    if (said == seen) return;
    page_walk_find(walk, tree->named_by, "%s: it says %s %llu, the tree has %llu", tree->name, what,
                   (unsigned long long)said, (unsigned long long)seen);
}

void page_walk_tree(PageWalk *walk, Tree *tree)
{
    uint16_t flags = tree->is_free_list ? LMDB_TREE_INTEGER_KEYS : 0;
    if (tree->said.flags != flags) {
        page_walk_find(walk, tree->named_by, "%s: it says flags 0x%x instead of 0x%x", tree->name,
                       tree->said.flags, flags);
    }
    if (tree->said.root != LMDB_NO_PAGE) {
        walk_page(walk, tree, tree->said.root, tree->named_by, NO_RANGE, 0);
    }
    if (tree->is_lossy) walk->is_lossy = true;
    if (tree->is_lossy || page_walk_is_cancelled(walk)) return;
    const LmdbTree *said = &tree->said, *seen = &tree->seen;
    compare_count(walk, tree, "depth", said->depth, seen->depth);
    compare_count(walk, tree, "entries", said->entries, seen->entries);
    compare_count(walk, tree, "branch pages", said->branch_pages, seen->branch_pages);
    compare_count(walk, tree, "leaf pages", said->leaf_pages, seen->leaf_pages);
    if (walk->options->is_quick && !tree->is_main && !tree->is_free_list) return;
    compare_count(walk, tree, "overflow pages", said->overflow_pages, seen->overflow_pages);
}
