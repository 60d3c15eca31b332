// What the files of the page walk share. Nothing else includes this.

#pragma once

#include "base/error.h"
#include "kv/durable/lmdb_layout.h"
#include "kv/durable/page_walk_options.h"

enum {
    PAGE_WALK_TABLES_MAX = 256,
    PAGE_WALK_UNWRITTEN_PAGES_MAX = 1 << 20, // at the file's end, freed before they were written
    TREE_NAME_BYTES = 48,
    NODE_COUNT_MAX = LMDB_PAGE_BYTES_MAX / 2
};

// A tree, as the page that names it describes it, and as the walk finds it.
typedef struct Tree {
    char name[TREE_NAME_BYTES]; // for messages: "the free list", "table messages"
    LmdbTree said;
    LmdbTree seen;
    uint64_t named_by; // the page
    bool is_free_list;
    bool is_main;
    bool is_lossy; // a part could not be read, so the counts cannot be compared
} Tree;

// A page of a tree, checked by page_nodes_check.
typedef struct TreePage {
    const uint8_t *bytes;
    uint64_t number;
    size_t count; // of its nodes
    bool is_leaf;
} TreePage;

typedef struct PageWalk {
    const PageWalkOptions *options;
    PageWalkResult *result;
    uint64_t file_pages;
    size_t page_bytes;
    uint64_t page_count;             // of the state, with the meta pages
    uint8_t *used, *freed;           // a bit for each page
    uint8_t *levels[LMDB_DEPTH_MAX]; // a page for each level of a tree
    uint8_t *value;                  // a value from overflow pages
    size_t value_capacity;
    Tree *tables; // that the main tree names
    size_t table_count;
    uint16_t node_bytes[NODE_COUNT_MAX]; // by offset / 2; all 0 between two checks
    uint64_t children[NODE_COUNT_MAX];   // of the page that is being read ahead
    bool is_lossy;                       // of any tree
    bool is_out_of_memory;
} PageWalk;

void page_walk_find(PageWalk *walk, uint64_t page, const char *format, ...) PRINTF_LIKE(3, 4);

// Reads from the start of a page, or of page `page` at `offset` in the file. Returns false, with a
// finding, if the file does not have it.
bool page_walk_read(PageWalk *walk, uint64_t page, void *bytes, size_t size);
bool page_walk_read_at(PageWalk *walk, uint64_t page, uint64_t offset, void *bytes, size_t size);

// Notes that `count` pages from `page` are in use. Returns false, with a finding, if they are not
// in the file or used already. `by` is the page that names them.
bool page_walk_claim(PageWalk *walk, uint64_t page, uint64_t count, uint64_t by);

// Asks the kernel to read `count` pages of walk->children, which are sorted by this.
void page_walk_read_ahead(PageWalk *walk, size_t count);

static inline bool page_walk_is_cancelled(PageWalk *walk)
{
    const atomic_bool *is_cancelled = walk->options->is_cancelled;
    if (is_cancelled && atomic_load_explicit(is_cancelled, memory_order_relaxed))
        walk->result->is_cancelled = true;
    return walk->result->is_cancelled || walk->is_out_of_memory;
}

static inline bool page_bit(const uint8_t *bits, uint64_t page)
{
    return bits[page / 8] >> (page % 8) & 1;
}

static inline void page_bit_set(uint8_t *bits, uint64_t page)
{
    bits[page / 8] = (uint8_t)(bits[page / 8] | 1 << (page % 8));
}

// page_walk_nodes.c

// Checks a page that a tree has, except for what its keys are. Returns false, with a finding, if
// its nodes cannot be read.
bool page_nodes_check(PageWalk *walk, const Tree *tree, TreePage *page);

// A node of a page that was checked.
const uint8_t *page_node_at(const TreePage *page, size_t index);
Slice page_node_key(const TreePage *page, size_t index);

// page_walk_tree.c

// Walks a tree, or in a quick walk its root. Compares the counts.
void page_walk_tree(PageWalk *walk, Tree *tree);

// page_walk_free.c

// Checks a row of the free list, whose value has `size` bytes: inline at `value`, or, if that is
// NULL, behind the header of page `overflow`. `by` is the leaf.
typedef struct FreeRow {
    Slice key;
    const uint8_t *value;
    uint64_t overflow;
    uint64_t size;
    uint64_t by;
} FreeRow;

void page_walk_free_row(PageWalk *walk, const FreeRow *row);

// Finds pages that the file does not have although the free list does not have them.
void page_walk_missing(PageWalk *walk);

// Finds pages that are neither used nor free, and counts the others.
void page_walk_leaks(PageWalk *walk);
