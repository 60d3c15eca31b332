// The free list: each row has a transaction as its key, and the pages that it freed as its value, a
// count and that many numbers, from the highest to the lowest.

#include "kv/durable/page_walk_fields.h"

enum { PIECE_IDS = 1024 };

typedef struct FreeScan {
    const FreeRow *row;
    uint64_t left;  // of the numbers
    uint64_t above; // the next number is below this one
    bool is_wrong;  // told once for each row
} FreeScan;

static void scan_id(PageWalk *walk, FreeScan *scan, uint64_t page)
{
    bool is_ordered = page < scan->above && page >= LMDB_META_COUNT;
    if (!is_ordered && !scan->is_wrong) {
        page_walk_find(walk, scan->row->by, "a row of the free list has page %llu out of order",
                       (unsigned long long)page);
        scan->is_wrong = true;
    }
    scan->above = page;
    if (page < LMDB_META_COUNT || page >= walk->page_count) return;
    if (page_bit(walk->freed, page))
        page_walk_find(walk, page, "the free list has it twice");
    else if (page_bit(walk->used, page))
        page_walk_find(walk, page, "it is in use, but the free list has it");
    page_bit_set(walk->freed, page);
}

// Reads the next numbers of the value, which begin at byte `at`.
static bool read_ids(PageWalk *walk, const FreeRow *row, uint64_t at, uint64_t *ids, size_t count)
{
    if (row->value) {
        memcpy(ids, row->value + at, count * sizeof(*ids));
        return true;
    }
    uint64_t offset = row->overflow * walk->page_bytes + sizeof(LmdbPageHeader) + at;
    return page_walk_read_at(walk, row->overflow, offset, ids, count * sizeof(*ids));
}

void page_walk_free_row(PageWalk *walk, const FreeRow *row)
{
    uint64_t ids[PIECE_IDS], txn_id, count = 0;
    memcpy(&txn_id, row->key.bytes, sizeof(txn_id));
    if (row->size >= sizeof(count) && !read_ids(walk, row, 0, &count, 1)) return;
    bool is_whole = row->size >= sizeof(count) && count <= row->size / sizeof(count) - 1;
    if (txn_id == 0 || txn_id > walk->result->txn_id || !is_whole) {
        page_walk_find(walk, row->by, "a row of the free list cannot be right: transaction %llu",
                       (unsigned long long)txn_id);
        walk->is_lossy = true;
        return;
    }
    FreeScan scan = {.row = row, .left = count, .above = walk->page_count};
    for (uint64_t at = sizeof(count); scan.left > 0; at += sizeof(ids)) {
        size_t piece = scan.left < PIECE_IDS ? (size_t)scan.left : PIECE_IDS;
        if (!read_ids(walk, row, at, ids, piece)) return;
        for (size_t i = 0; i < piece; i++)
            scan_id(walk, &scan, ids[i]);
        scan.left -= piece;
    }
}

void page_walk_missing(PageWalk *walk)
{
    for (uint64_t page = walk->file_pages; page < walk->page_count; page++) {
        if (page_bit(walk->freed, page)) continue;
        page_walk_find(walk, page, "it is not free, but the file ends before it does");
        return;
    }
}

static void tell_leak(PageWalk *walk, uint64_t first, uint64_t end)
{
    walk->result->leaked_pages += end - first;
    if (end - first == 1) {
        page_walk_find(walk, first, "it is neither in use nor free");
    } else {
        page_walk_find(walk, first, "it and the %llu pages after it are neither in use nor free",
                       (unsigned long long)(end - first - 1));
    }
}

void page_walk_leaks(PageWalk *walk)
{
    PageWalkResult *result = walk->result;
    uint64_t first = 0; // of a run of leaked pages; 0: none
    for (uint64_t page = LMDB_META_COUNT; page < walk->page_count; page++) {
        bool is_used = page_bit(walk->used, page), is_free = page_bit(walk->freed, page);
        result->used_pages += is_used;
        result->free_pages += is_free;
        bool is_leaked = !is_used && !is_free && !walk->is_lossy;
        if (is_leaked && first == 0) first = page;
        if (is_leaked || first == 0) continue;
        tell_leak(walk, first, page);
        first = 0;
    }
    if (first != 0) tell_leak(walk, first, walk->page_count);
}
