// Page walk: reads the pages of data.mdb without LMDB and finds what is wrong with them.
//
// LMDB believes every page: a damaged one makes it abort, read outside its memory, or return other
// rows. The walk reads with pread and believes nothing, so no file can end the process. It checks
// one state of the file:
//
// - the meta pages: magic, version, page size, transaction;
// - each page of each tree: its number, flags and bounds; its nodes, which lie in it without gap or
//   overlap; its keys, in order and between the separators of its parents; the same depth for all
//   leaves; the counts of pages and entries against those that the tree is said to have;
// - the overflow pages: number, flags, count;
// - the free list: its pages in order, each in the file and not in use;
// - each page: it is used once, or free once, or a meta page.
//
// It does not see a change of a key or a value that breaks none of these rules; checksums of rows
// do. What nobody reads counts as no damage: free pages, the unused bytes of a page, the meta page
// of the older state except for what identifies it.
//
// Memory: two bits a page of the file, and a few pages. A subtree that cannot be read is left out,
// and the rest is still walked.

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "report/error_detail.h"

enum { PAGE_FINDING_BYTES_MAX = 256 };

typedef struct PageFinding {
    uint64_t page;
    const char *text; // "page 1234: it says that it is page 99"
} PageFinding;

typedef struct PageWalkOptions {
    int file; // data.mdb, open for reading
    // Which state: that of the meta page whose bytes `meta` has, or of transaction `txn_id`, or, if
    // both are 0, the newest. While others write, the caller must hold a reader of that state.
    Slice meta;
    uint64_t txn_id;
    // Reads the meta pages, the roots, and the free list if it has at most PAGE_WALK_QUICK_PAGES.
    bool is_quick;
    // Called for each finding, which is borrowed until the call returns. NULL: only counted.
    void (*found)(void *context, const PageFinding *finding);
    // Called for each row of each tree but the free list, if its value can be read. The row is
    // borrowed until the call returns. Returns what is wrong with it, or NULL. NULL: values on
    // overflow pages are not read.
    const char *(*row)(void *context, Slice key, Slice value);
    void *context;
    const atomic_bool *is_cancelled; // ends the walk early once it is set; may be NULL
} PageWalkOptions;

enum { PAGE_WALK_QUICK_PAGES = 256 };

typedef struct PageWalkResult {
    uint64_t finding_count;
    uint64_t txn_id; // of the state that was walked
    uint64_t last_page;
    uint32_t page_bytes;
    uint64_t used_pages, free_pages; // of a walk that is not quick
    uint64_t leaked_pages;           // neither used nor free; 0 if a subtree could not be read
    uint64_t rows;
    bool is_cancelled;
} PageWalkResult;

// Walks. Damage is reported and is no error. ERROR_OUT_OF_MEMORY; ERROR_IO: the file's size cannot
// be read; ERROR_UNAVAILABLE: the file no longer has the meta page of `txn_id`.
MUST_USE Error page_walk(const PageWalkOptions *options, ErrorDetail *detail, PageWalkResult *out);
