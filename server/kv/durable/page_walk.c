// The page walk: chooses the state, walks its trees, and compares all pages with the free list.

#include "kv/durable/page_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kv/durable/page_walk_fields.h"

void page_walk_find(PageWalk *walk, uint64_t page, const char *format, ...)
{
    char text[PAGE_FINDING_BYTES_MAX];
    walk->result->finding_count++;
    if (!walk->options->found) return;
    int size = snprintf(text, sizeof(text), "page %llu: ", (unsigned long long)page);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + size, sizeof(text) - (size_t)size, format, arguments);
    va_end(arguments);
    PageFinding finding = {.page = page, .text = text};
    walk->options->found(walk->options->context, &finding);
}

bool page_walk_read_at(PageWalk *walk, uint64_t page, uint64_t offset, void *bytes, size_t size)
{
    for (size_t got = 0; got < size;) {
        ssize_t count =
            pread(walk->options->file, (uint8_t *)bytes + got, size - got, (off_t)(offset + got));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            page_walk_find(walk, page, "it cannot be read: %s", strerror(errno));
            return false;
        }
        if (count == 0) {
            page_walk_find(walk, page, "the file ends before it does");
            return false;
        }
        got += (size_t)count;
    }
    return true;
}

bool page_walk_read(PageWalk *walk, uint64_t page, void *bytes, size_t size)
{
    return page_walk_read_at(walk, page, page * walk->page_bytes, bytes, size);
}

bool page_walk_claim(PageWalk *walk, uint64_t page, uint64_t count, uint64_t by)
{
    if (page < LMDB_META_COUNT || page >= walk->page_count || count > walk->page_count - page) {
        page_walk_find(walk, by, "it names page %llu, but the last page is %llu",
                       (unsigned long long)(page + count - 1),
                       (unsigned long long)(walk->page_count - 1));
        return false;
    }
    if (page + count > walk->file_pages) {
        page_walk_find(walk, page + count - 1, "it is in use, but the file ends before it does");
        return false;
    }
    bool is_new = true;
    for (uint64_t i = page; i < page + count; i++) {
        if (page_bit(walk->used, i)) {
            page_walk_find(walk, i, "it is used twice, the second time by page %llu",
                           (unsigned long long)by);
            is_new = false;
        } else if (page_bit(walk->freed, i)) {
            page_walk_find(walk, i, "it is in use, but the free list has it");
        }
        page_bit_set(walk->used, i);
    }
    return is_new;
}

static int page_number_compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

// One request for each run of pages, or nearly so.
void page_walk_read_ahead(PageWalk *walk, size_t count)
{
    enum { COUNT_MIN = 4, GAP_PAGES = 8 };
    uint64_t *pages = walk->children;
    if (count < COUNT_MIN) return;
    qsort(pages, count, sizeof(*pages), page_number_compare);
    for (size_t i = 0, end; i < count && pages[i] < walk->page_count; i = end) {
        for (end = i + 1; end < count && pages[end] - pages[end - 1] <= GAP_PAGES;)
            end++;
        (void)posix_fadvise(walk->options->file, (off_t)(pages[i] * walk->page_bytes),
                            (off_t)((pages[end - 1] - pages[i] + 1) * walk->page_bytes),
                            POSIX_FADV_WILLNEED);
    }
}

static bool is_page_size(uint64_t bytes)
{
    return bytes >= LMDB_PAGE_BYTES_MIN && bytes <= LMDB_PAGE_BYTES_MAX &&
           (bytes & (bytes - 1)) == 0;
}

// Reads both meta pages, until they are the same twice: another process may be writing one. What
// the file does not have is zeros. The place of the second depends on the page size in the first.
static void read_metas(PageWalk *walk, LmdbMetaPage metas[LMDB_META_COUNT])
{
    enum { TRIES = 100 };
    LmdbMetaPage last[LMDB_META_COUNT];
    for (int i = 0; i < TRIES; i++) {
        memset(last, 0, sizeof(last));
        if (i > 0) memcpy(last, metas, sizeof(last));
        memset(metas, 0, LMDB_META_COUNT * sizeof(*metas));
        (void)!pread(walk->options->file, &metas[0], sizeof(*metas), 0);
        uint32_t bytes = metas[0].trees[LMDB_FREE_LIST].pad;
        walk->page_bytes = is_page_size(bytes) ? bytes : (size_t)sysconf(_SC_PAGESIZE);
        (void)!pread(walk->options->file, &metas[1], sizeof(*metas), (off_t)walk->page_bytes);
        if (i > 0 && memcmp(last, metas, sizeof(last)) == 0) return;
    }
}

static bool meta_check(PageWalk *walk, const LmdbMetaPage *meta, uint64_t index)
{
    if (meta->magic != (uint32_t)LMDB_MAGIC || meta->version != LMDB_VERSION ||
        meta->header.flags != LMDB_PAGE_META || meta->header.page != index) {
        page_walk_find(walk, index, "it is not a meta page of LMDB 0.9");
        return false;
    }
    if (meta->trees[LMDB_FREE_LIST].pad == walk->page_bytes) return true;
    page_walk_find(walk, index, "it says that pages have %u bytes",
                   meta->trees[LMDB_FREE_LIST].pad);
    return false;
}

// LMDB writes the meta pages in turn, the one with the parity of the transaction. Where recovery
// put a state back, both have it.
static void compare_metas(PageWalk *walk, const LmdbMetaPage *metas)
{
    uint64_t newer = metas[1].txn_id > metas[0].txn_id, id = metas[newer].txn_id;
    uint64_t other_id = metas[!newer].txn_id;
    size_t from = offsetof(LmdbMetaPage, trees);
    bool is_same = memcmp((const uint8_t *)&metas[0] + from, (const uint8_t *)&metas[1] + from,
                          sizeof(*metas) - from) == 0;
    if (id == other_id ? is_same : id == other_id + 1 && id % 2 == newer) return;
    page_walk_find(walk, newer, "its transaction %llu does not follow that of page %d, %llu",
                   (unsigned long long)id, (int)!newer, (unsigned long long)other_id);
}

// Chooses the meta page to walk. Sets `*out_index` to -1, with findings, if there is none.
static Error choose_meta(PageWalk *walk, ErrorDetail *detail, LmdbMetaPage *out, int *out_index)
{
    LmdbMetaPage metas[LMDB_META_COUNT];
    uint64_t wanted = walk->options->txn_id;
    bool are_sound = true;
    *out_index = -1;
    read_metas(walk, metas);
    for (uint64_t i = 0; i < LMDB_META_COUNT; i++) {
        bool is_sound = meta_check(walk, &metas[i], i);
        are_sound = are_sound && is_sound;
        bool is_newer = *out_index < 0 || metas[i].txn_id > metas[*out_index].txn_id;
        bool is_wanted = wanted == 0 || metas[i].txn_id == wanted;
        if (is_sound && is_newer && is_wanted) *out_index = (int)i;
    }
    if (are_sound) compare_metas(walk, metas);
    if (walk->options->meta.size >= sizeof(*out)) {
        memcpy(out, walk->options->meta.bytes, sizeof(*out));
        *out_index = 0;
        return ERROR_NONE;
    }
    if (*out_index >= 0) *out = metas[*out_index];
    if (*out_index >= 0 || wanted == 0 || !are_sound) return ERROR_NONE;
    return error_say(detail, ERROR_UNAVAILABLE, "the state to walk is no longer in the file");
}

static bool last_page_check(PageWalk *walk, const LmdbMetaPage *meta, uint64_t index)
{
    // LMDB does not write the last pages if they are free, so the file may be a little shorter.
    uint64_t end = walk->file_pages + PAGE_WALK_UNWRITTEN_PAGES_MAX;
    if (meta->last_page >= LMDB_META_COUNT - 1 && meta->last_page < end) return true;
    page_walk_find(walk, index, "it says that the last page is %llu, but the file has %llu pages",
                   (unsigned long long)meta->last_page, (unsigned long long)walk->file_pages);
    return false;
}

// Reads the file into the kernel's memory from its start to its end, if it fits well: a disk does
// that many times faster than it reads the pages in the order of their keys. (The kernel takes no
// more than some hundred kilobytes of one request.)
static void read_all_ahead(PageWalk *walk)
{
    enum { PIECE_BYTES = 128 << 10, MEMORY_SHARE = 2 };
    uint64_t bytes = walk->file_pages * walk->page_bytes;
    uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (walk->options->is_quick || bytes > memory / MEMORY_SHARE) return;
    for (uint64_t at = 0; at < bytes && !page_walk_is_cancelled(walk); at += PIECE_BYTES) {
        (void)posix_fadvise(walk->options->file, (off_t)at, PIECE_BYTES, POSIX_FADV_WILLNEED);
    }
}

// Returns whether the free list is walked: always by a full walk. A quick one reads it if it is
// small, for a writer, or to find out whether the pages that the file lacks are free.
static bool is_free_list_walked(const PageWalk *walk, const LmdbTree *free_list)
{
    if (!walk->options->is_quick) return true;
    if (walk->options->is_for_reading && walk->file_pages >= walk->page_count) return false;
    return free_list->branch_pages <= PAGE_WALK_QUICK_PAGES &&
           free_list->leaf_pages <= PAGE_WALK_QUICK_PAGES &&
           free_list->overflow_pages <= PAGE_WALK_QUICK_PAGES;
}

static void walk_state(PageWalk *walk, const LmdbMetaPage *meta, uint64_t index)
{
    Tree main_tree = {.name = "the main tree", .named_by = index, .is_main = true};
    Tree free_list = {.name = "the free list", .named_by = index, .is_free_list = true};
    main_tree.said = meta->trees[LMDB_MAIN_TREE];
    free_list.said = meta->trees[LMDB_FREE_LIST];
    page_walk_tree(walk, &main_tree);
    for (size_t i = 0; i < walk->table_count && !page_walk_is_cancelled(walk); i++)
        page_walk_tree(walk, &walk->tables[i]);
    // Last, because the pages in use are known then.
    bool has_free_list = is_free_list_walked(walk, &free_list.said);
    if (has_free_list) page_walk_tree(walk, &free_list);
    if (has_free_list && !free_list.is_lossy) page_walk_missing(walk);
    if (!walk->options->is_quick && !page_walk_is_cancelled(walk)) page_walk_leaks(walk);
}

static Error walk_meta(PageWalk *walk, ErrorDetail *detail, const LmdbMetaPage *meta,
                       uint64_t index)
{
    PageWalkResult *result = walk->result;
    result->page_bytes = (uint32_t)walk->page_bytes;
    result->txn_id = meta->txn_id;
    result->last_page = meta->last_page;
    if (!last_page_check(walk, meta, index)) return ERROR_NONE;
    walk->page_count = meta->last_page + 1;
    walk->used = calloc(1, walk->page_count / 8 + 1);
    walk->freed = calloc(1, walk->page_count / 8 + 1);
    walk->tables = calloc(PAGE_WALK_TABLES_MAX, sizeof(*walk->tables));
    walk->is_out_of_memory = !walk->used || !walk->freed || !walk->tables;
    if (!walk->is_out_of_memory) {
        read_all_ahead(walk);
        walk_state(walk, meta, index);
    }
    free(walk->used);
    free(walk->freed);
    free(walk->tables);
    free(walk->value);
    for (size_t i = 0; i < LMDB_DEPTH_MAX; i++)
        free(walk->levels[i]);
    if (!walk->is_out_of_memory) return ERROR_NONE;
    return error_say(detail, ERROR_OUT_OF_MEMORY, "no memory to walk %llu pages",
                     (unsigned long long)walk->page_count);
}

Error page_walk(const PageWalkOptions *options, ErrorDetail *detail, PageWalkResult *out)
{
    struct stat status;
    LmdbMetaPage meta;
    int index;
    PageWalkResult result = {.finding_count = 0};
    if (fstat(options->file, &status) != 0)
        return error_say_errno(detail, errno, "cannot read the size of the file");
    PageWalk *walk = calloc(1, sizeof(*walk));
    if (!walk) return error_say(detail, ERROR_OUT_OF_MEMORY, "no memory to walk the pages");
    walk->options = options;
    walk->result = &result;
    Error error = choose_meta(walk, detail, &meta, &index);
    walk->file_pages = (uint64_t)status.st_size / walk->page_bytes;
    if (!error && index >= 0) error = walk_meta(walk, detail, &meta, (uint64_t)index);
    free(walk);
    if (!error) *out = result;
    return error;
}
