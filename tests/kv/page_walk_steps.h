// Steps of the page walk's tests: makes files, walks them, and finds and changes their pages.

#pragma once

#include "kv/durable/lmdb_layout.h"
#include "kv/durable/page_walk.h"
#include "kv_fixture.h"

enum { PAGE = 4096, TEXTS_MAX = 8, COMMIT_ROWS = 1 };

typedef struct Walk {
    PageWalkResult result;
    char texts[TEXTS_MAX][PAGE_FINDING_BYTES_MAX];
    size_t row_count, row_bytes;
    size_t text_count;
} Walk;

typedef struct Page {
    uint64_t number;
    uint8_t bytes[PAGE];
} Page;

int open_file(void);
Walk walk_with(PageWalkOptions options);
Walk walk_all(void);
// Walks the file, and checks that a finding has this text, or that there is none.
void check_found(const char *text);
void check_sound(void);
void put_many(Kv *kv, unsigned first, unsigned count, size_t value_bytes);
void delete_many(Kv *kv, unsigned first, unsigned count);
// A closed store with branches, overflow pages and a free list.
void make_store(void);
// Of the newest state. The pages that follow are below it.
LmdbMetaPage read_meta(int file, uint64_t *out_index);
void write_meta(int file, const LmdbMetaPage *meta, uint64_t index);
Page read_page(int file, uint64_t number);
void write_page(int file, const Page *page);
LmdbPageHeader header_of(const Page *page);
size_t node_offset(const Page *page, size_t index);
Page find_root(int file);
uint64_t child_of(const Page *page, size_t index);
Page find_leaf(int file);
uint64_t find_overflow_page(int file);
// Changes the 16-bit field at `offset` of a page by `by`.
void change(int file, const Page *page, size_t offset, int by);
// The first leaf of the free list, and where its last row's numbers begin.
Page find_free_row(int file, size_t *out_at, uint64_t *out_count);
void plant_free(int file, const Page *page, size_t at, uint64_t number);
