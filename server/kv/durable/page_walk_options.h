// What a page walk is asked, what it finds, and what it counts (page_walk.h).

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

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
    // A file that is only read needs no free list.
    bool is_quick, is_for_reading;
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
