// The layout of data.mdb as LMDB 0.9 writes it (data version 1), for code that reads its pages
// without LMDB. All numbers are in the byte order of the machine.
//
// A page begins with a header. A tree's page then has an array of offsets, one for each node, which
// ends at `lower`; the nodes fill the page from `upper` to its end without gaps, each with an even
// size. A large value has overflow pages of its own, of which only the first has a header.

#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    LMDB_MAGIC = (int)0xBEEFC0DE,
    LMDB_VERSION = 1,
    LMDB_META_COUNT = 2,
    LMDB_PAGE_BYTES_MIN = 512,
    LMDB_PAGE_BYTES_MAX = 65536,
    LMDB_KEY_BYTES_MAX = 511,
    LMDB_DEPTH_MAX = 32,
};

static const uint64_t LMDB_NO_PAGE = UINT64_MAX; // the root of an empty tree

enum { // LmdbPageHeader.flags; a page on the disk has exactly one
    LMDB_PAGE_BRANCH = 0x01,
    LMDB_PAGE_LEAF = 0x02,
    LMDB_PAGE_OVERFLOW = 0x04,
    LMDB_PAGE_META = 0x08,
};

enum { // LmdbNode.flags, of a leaf
    LMDB_NODE_OVERFLOW =
        0x01,              // the value is on overflow pages; the node has the first one's number
    LMDB_NODE_TREE = 0x02, // the value is an LmdbTree
};

enum { LMDB_TREE_INTEGER_KEYS = 0x08 }; // LmdbTree.flags, of the free list

typedef struct LmdbPageHeader {
    uint64_t page;
    uint16_t pad, flags, lower, upper; // `lower` and `upper`, of an overflow page: count of pages
} LmdbPageHeader;

// A node's key follows its header, and its value the key. In a branch, `low`, `high` and `flags`
// are the number of the child page, and there is no value; the first node's key means nothing.
typedef struct LmdbNode {
    uint16_t low, high, flags, key_bytes; // of a leaf: `low` and `high` are the value's size
} LmdbNode;

typedef struct LmdbTree {
    uint32_t pad; // of the free list: the size of a page
    uint16_t flags, depth;
    uint64_t branch_pages, leaf_pages, overflow_pages, entries;
    uint64_t root;
} LmdbTree;

enum { LMDB_FREE_LIST, LMDB_MAIN_TREE, LMDB_ROOT_COUNT }; // indexes of LmdbMetaPage.trees

typedef struct LmdbMetaPage {
    LmdbPageHeader header;
    uint32_t magic, version;
    uint64_t address, map_bytes;
    LmdbTree trees[LMDB_ROOT_COUNT];
    uint64_t last_page;
    uint64_t txn_id;
} LmdbMetaPage;

_Static_assert(sizeof(LmdbPageHeader) == 16, "LMDB's page header");
_Static_assert(sizeof(LmdbNode) == 8, "LMDB's node header");
_Static_assert(sizeof(LmdbMetaPage) == 152, "LMDB's meta page");

// Structures lie at any even offset of a page, so their fields are copied out.
static inline uint16_t lmdb_u16(const uint8_t *bytes)
{
    uint16_t value;
    memcpy(&value, bytes, sizeof(value));
    return value;
}

static inline LmdbNode lmdb_node(const uint8_t *bytes)
{
    LmdbNode node;
    memcpy(&node, bytes, sizeof(node));
    return node;
}

static inline size_t lmdb_node_count(const LmdbPageHeader *header)
{
    return ((size_t)header->lower - sizeof(*header)) / sizeof(uint16_t);
}

static inline uint64_t lmdb_child_page(LmdbNode node)
{
    return node.low | (uint64_t)node.high << 16 | (uint64_t)node.flags << 32;
}

static inline size_t lmdb_value_bytes(LmdbNode node)
{
    return node.low | (size_t)node.high << 16;
}

static inline uint32_t lmdb_overflow_count(const LmdbPageHeader *header)
{
    return header->lower | (uint32_t)header->upper << 16;
}
