// The meta pages: reads, hashes and writes them without LMDB.

#include "kv/durable/meta_page.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kv/durable/file_at.h"
#include "kv/durable/lmdb_layout.h"

_Static_assert(sizeof(LmdbMetaPage) <= FLUSH_NOTE_META_BYTES, "a note holds a meta page");

static bool is_meta(const LmdbMetaPage *meta)
{
    return meta->magic == (uint32_t)LMDB_MAGIC && meta->version == LMDB_VERSION;
}

typedef struct RootHash {
    int file;
    uint64_t page_bytes;
    Hash hash;
} RootHash;

static bool hash_page(RootHash *roots, uint64_t page, uint8_t *bytes)
{
    if (!file_at_read(roots->file, bytes, roots->page_bytes, page * roots->page_bytes))
        return false;
    roots->hash = hash_pair(slice(roots->hash.bytes, HASH_BYTES), slice(bytes, roots->page_bytes));
    return true;
}

// Hashes the root page of each table that a leaf of the tree of tables names.
static bool hash_tables(RootHash *roots, const uint8_t *leaf)
{
    static _Thread_local uint8_t page[LMDB_PAGE_BYTES_MAX];
    LmdbPageHeader header;
    memcpy(&header, leaf, sizeof(header));
    if (!(header.flags & LMDB_PAGE_LEAF)) return true;
    size_t end = header.lower;
    for (size_t at = sizeof(header); at + 2 <= end && end <= roots->page_bytes; at += 2) {
        size_t node_at = lmdb_u16(leaf + at);
        if (node_at + sizeof(LmdbNode) > roots->page_bytes) return true;
        LmdbNode node = lmdb_node(leaf + node_at);
        size_t tree_at = node_at + sizeof(node) + node.key_bytes;
        LmdbTree tree;
        if (!(node.flags & LMDB_NODE_TREE)) continue;
        if (tree_at + sizeof(tree) > roots->page_bytes) return true;
        memcpy(&tree, leaf + tree_at, sizeof(tree));
        if (tree.root != LMDB_NO_PAGE && !hash_page(roots, tree.root, page)) return false;
    }
    return true;
}

// Hashes the root pages of the state's trees. They stay as they are while the state is pinned, and
// those of another store differ.
static bool hash_roots(int file, uint64_t page_bytes, const LmdbMetaPage *meta, uint8_t out[16])
{
    static _Thread_local uint8_t page[LMDB_PAGE_BYTES_MAX];
    RootHash roots = {.file = file, .page_bytes = page_bytes};
    if (page_bytes > LMDB_PAGE_BYTES_MAX) {
        errno = EINVAL;
        return false;
    }
    for (size_t i = 0; i < LMDB_ROOT_COUNT; i++) {
        uint64_t root = meta->trees[i].root;
        if (root == LMDB_NO_PAGE) continue;
        if (!hash_page(&roots, root, page)) return false;
        bool is_of_tables = i == LMDB_ROOT_COUNT - 1;
        if (is_of_tables && !hash_tables(&roots, page)) return false;
    }
    memcpy(out, roots.hash.bytes, HASH_BYTES);
    return true;
}

int meta_page_take(int data_file, size_t page_bytes, FlushNote *note)
{
    for (uint64_t i = 0; i < LMDB_META_COUNT; i++) {
        if (!file_at_read(data_file, note->meta, sizeof(note->meta), i * page_bytes)) return errno;
        LmdbMetaPage meta;
        memcpy(&meta, note->meta, sizeof(meta));
        if (!is_meta(&meta) || meta.txn_id != note->txn_id) continue;
        note->page_bytes = page_bytes;
        return hash_roots(data_file, page_bytes, &meta, note->roots) ? 0 : errno;
    }
    return EPROTO;
}

int meta_page_find_roots(int data_file, const FlushNote *note, bool *out_is_there)
{
    LmdbMetaPage meta;
    memcpy(&meta, note->meta, sizeof(meta));
    uint8_t roots[HASH_BYTES];
    if (!hash_roots(data_file, note->page_bytes, &meta, roots)) return errno;
    *out_is_there = is_meta(&meta) && memcmp(roots, note->roots, HASH_BYTES) == 0;
    return 0;
}

// Both meta pages become the state's, each with its own number: LMDB takes the newer of them, and
// the next commit writes over one.
int meta_page_put_back(int data_file, const FlushNote *note)
{
    uint8_t bytes[FLUSH_NOTE_META_BYTES];
    memcpy(bytes, note->meta, sizeof(bytes));
    for (uint64_t i = 0; i < LMDB_META_COUNT; i++) {
        memcpy(bytes + offsetof(LmdbMetaPage, header.page), &i, sizeof(i));
        if (!file_at_write(data_file, bytes, sizeof(bytes), i * note->page_bytes)) return errno;
    }
    // A file that was emptied, because it was not finished, ends within the second page now.
    struct stat status;
    off_t end = (off_t)(LMDB_META_COUNT * note->page_bytes);
    if (fstat(data_file, &status) != 0) return errno;
    if (status.st_size < end && ftruncate(data_file, end) != 0) return errno;
    return fsync(data_file) != 0 ? errno : 0;
}

// LMDB makes the file with both meta pages, and it is flushed before the first commit. So a meta
// page with a transaction's number, or a third page, shows that it was finished.
bool meta_page_is_unfinished(int data_file)
{
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    struct stat status;
    if (fstat(data_file, &status) != 0 || status.st_size == 0 ||
        (uint64_t)status.st_size > LMDB_META_COUNT * page_bytes) {
        return false;
    }
    for (uint64_t i = 0; i < LMDB_META_COUNT; i++) {
        static const LmdbMetaPage ZEROS;
        LmdbMetaPage meta;
        if (!file_at_read(data_file, &meta, sizeof(meta), i * page_bytes)) return false;
        bool is_blank = memcmp(&meta, &ZEROS, sizeof(meta)) == 0;
        if (!is_blank && !(is_meta(&meta) && meta.txn_id == 0)) return false;
    }
    return true;
}
