// Images. For each file the flushed content is kept, and the list of (page, write) pairs that no
// flush has covered; a page of an image has the first few of its writes, by chance.

#include "image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"

enum { PAGE_BYTES = 4096, SECTOR_BYTES = 512, ENTRIES_MAX = 128, IMAGE_PATH_BYTES = 4096 };

typedef struct Pending {
    uint64_t page;
    size_t record;
    bool is_forgotten; // the kernel believes that it is on the disk
} Pending;

typedef struct Node {
    // A file's. `sizes` are those that it had since the flush, by records of their own.
    uint8_t *bytes;
    uint64_t size, capacity;
    Pending *pending;
    size_t pending_count, pending_capacity;
    // A directory's.
    RecordEntry entries[ENTRIES_MAX];
    size_t entry_count;
    size_t *names; // records
    size_t name_count, name_capacity;
} Node;

struct Disk {
    const Recording *recording;
    size_t position;
    Node nodes[RECORD_NODES_MAX];
};

static void *grown(void *array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity) return array;
    *capacity = *capacity ? 2 * *capacity : 64;
    array = realloc(array, *capacity * size);
    CHECK(array != NULL);
    return array;
}

Disk *disk_new(const Recording *recording)
{
    Disk *disk = calloc(1, sizeof(Disk));
    CHECK(disk != NULL);
    disk->recording = recording;
    return disk;
}

void disk_free(Disk *disk)
{
    for (size_t i = 0; i < RECORD_NODES_MAX; i++) {
        free(disk->nodes[i].bytes);
        free(disk->nodes[i].pending);
        free(disk->nodes[i].names);
    }
    free(disk);
}

static void resize(Node *node, uint64_t size)
{
    if (size > node->capacity) {
        uint64_t capacity = (size + (1 << 20)) & ~(uint64_t)((1 << 20) - 1);
        node->bytes = realloc(node->bytes, capacity);
        CHECK(node->bytes != NULL);
        memset(node->bytes + node->capacity, 0, capacity - node->capacity);
        node->capacity = capacity;
    }
    if (size < node->size) memset(node->bytes + size, 0, node->size - size);
    node->size = size;
}

// Copies what the write has of [begin, end) to `page_bytes`, which is the file's from `begin` on.
static void overlay(uint8_t *page_bytes, uint64_t begin, uint64_t end, const Record *record)
{
    if (record->kind == RECORD_SIZE) { // what is past the end is zeros, also when it grows again
        uint64_t from = record->size > begin ? record->size : begin;
        if (from < end) memset(page_bytes + (from - begin), 0, end - from);
        return;
    }
    uint64_t from = record->offset > begin ? record->offset : begin;
    uint64_t to = record->offset + record->size < end ? record->offset + record->size : end;
    if (from < to)
        memcpy(page_bytes + (from - begin), record->bytes + (from - record->offset), to - from);
}

static uint64_t size_after(uint64_t size, const Record *record)
{
    if (record->kind == RECORD_SIZE) return record->size;
    uint64_t end = record->offset + record->size;
    return end > size ? end : size;
}

static void pend(Node *node, uint64_t page, size_t record)
{
    node->pending =
        grown(node->pending, node->pending_count, &node->pending_capacity, sizeof(*node->pending));
    node->pending[node->pending_count++] = (Pending){page, record, false};
}

static void pend_record(const Disk *disk, Node *node, size_t index)
{
    const Record *record = &disk->recording->records[index];
    uint64_t begin = record->offset, end = record->offset + record->size;
    if (record->kind == RECORD_SIZE) {
        begin = record->size;
        end = node->capacity > begin ? node->capacity : begin + 1;
    }
    for (uint64_t page = begin / PAGE_BYTES; page * PAGE_BYTES < end; page++) {
        pend(node, page, index);
    }
}

// A flush of the first `end` writes has failed. The page that one of them left is not written by
// the next flush, but if it was written to since.
static void forget(Node *node, size_t end)
{
    for (size_t i = 0; i < node->pending_count; i++) {
        if (node->pending[i].record < end) node->pending[i].is_forgotten = true;
    }
}

static bool is_dirty(const Node *node, size_t from, size_t end)
{
    for (size_t i = from; i < node->pending_count; i++) {
        const Pending *pending = &node->pending[i];
        bool is_of_page = pending->page == node->pending[from].page;
        if (is_of_page && pending->record < end && !pending->is_forgotten) return true;
    }
    return false;
}

// The first `end` writes, or those up to it of some pages, have reached the disk.
static void settle(const Disk *disk, Node *node, size_t end, uint64_t first_page,
                   uint64_t last_page)
{
    size_t kept = 0;
    for (size_t i = 0; i < node->pending_count; i++) {
        Pending *pending = &node->pending[i];
        bool is_asked =
            pending->record < end && pending->page >= first_page && pending->page <= last_page;
        if (!is_asked || (pending->is_forgotten && !is_dirty(node, i, end))) {
            node->pending[kept++] = *pending;
            continue;
        }
        const Record *record = &disk->recording->records[pending->record];
        uint64_t begin = pending->page * PAGE_BYTES;
        resize(node, size_after(node->size, record));
        uint64_t stop = begin + PAGE_BYTES;
        if (stop > node->capacity) stop = node->capacity;
        if (begin < stop) overlay(node->bytes + begin, begin, stop, record);
    }
    node->pending_count = kept;
}

static void rename_entry(Node *node, const RecordEntry *entry)
{
    if (!entry->name[0]) return;
    size_t i = 0;
    while (i < node->entry_count && strcmp(node->entries[i].name, entry->name) != 0)
        i++;
    if (entry->node == RECORD_NO_NODE) {
        if (i < node->entry_count) node->entries[i] = node->entries[--node->entry_count];
        return;
    }
    CHECK(i < ENTRIES_MAX);
    if (i == node->entry_count) node->entry_count++;
    node->entries[i] = *entry;
}

static void rename_by(const Disk *disk, Node *node, size_t record)
{
    for (size_t i = 0; i < 2; i++) {
        rename_entry(node, &disk->recording->records[record].entries[i]);
    }
}

static void settle_names(const Disk *disk, Node *node, size_t end)
{
    size_t done = 0;
    if (node->name_count == 0) return;
    while (done < node->name_count && node->names[done] < end)
        rename_by(disk, node, node->names[done++]);
    node->name_count -= done;
    memmove(node->names, node->names + done, node->name_count * sizeof(*node->names));
}

void disk_advance(Disk *disk, size_t cut)
{
    const Recording *recording = disk->recording;
    for (; disk->position < cut; disk->position++) {
        size_t index = disk->position;
        const Record *record = &recording->records[index];
        if (record->node == RECORD_NO_NODE) continue;
        Node *node = &disk->nodes[record->node];
        switch (record->kind) {
        case RECORD_WRITE:
        case RECORD_SIZE: pend_record(disk, node, index); break;
        case RECORD_WRITTEN: {
            const Record *written = &recording->records[record->begun];
            settle(disk, node, record->begun + 1, written->offset / PAGE_BYTES,
                   (written->offset + written->size - 1) / PAGE_BYTES);
            break;
        }
        case RECORD_NAME:
            node->names =
                grown(node->names, node->name_count, &node->name_capacity, sizeof(*node->names));
            node->names[node->name_count++] = index;
            break;
        case RECORD_FLUSH_END:
            settle(disk, node, record->begun, 0, UINT64_MAX);
            settle_names(disk, node, record->begun);
            break;
        case RECORD_FLUSH_FAILED: forget(node, record->begun); break;
        case RECORD_FLUSH_BEGIN:
        case RECORD_MARK: break;
        }
    }
}

// How an image loses what was not flushed.
typedef struct Loss {
    Random *random;
    unsigned kept_of_8; // of the pages, and of the changes of a directory
    bool is_torn;
    bool is_ordered; // the changes of a directory reach the disk in their order
} Loss;

// How many of its `count` contents a page got beyond the flushed one.
static size_t pick(const Loss *loss, size_t count)
{
    if (random_below(loss->random, 8) >= loss->kept_of_8) return 0;
    return random_below(loss->random, 4) ? count : random_below(loss->random, count + 1);
}

static int compare_pending(const void *a, const void *b)
{
    const Pending *x = a, *y = b;
    if (x->page != y->page) return x->page < y->page ? -1 : 1;
    return x->record < y->record ? -1 : x->record > y->record;
}

static void write_whole(int file, const void *bytes, size_t size, uint64_t offset)
{
    CHECK_EQ(pwrite(file, bytes, size, (off_t)offset), (ssize_t)size);
}

static void write_page(const Disk *disk, const Loss *loss, int file, const Node *node,
                       const Pending *pending, size_t count)
{
    uint8_t page[PAGE_BYTES] = {0};
    uint64_t begin = pending->page * PAGE_BYTES;
    size_t kept = pick(loss, count);
    for (uint64_t at = 0; at < PAGE_BYTES; at += SECTOR_BYTES) {
        uint64_t sector = begin + at;
        if (sector < node->size) {
            uint64_t size = node->size - sector;
            memcpy(page + at, node->bytes + sector, size < SECTOR_BYTES ? size : SECTOR_BYTES);
        }
        if (loss->is_torn && random_below(loss->random, 2)) kept = pick(loss, count);
        for (size_t i = 0; i < kept; i++) {
            overlay(page + at, sector, sector + SECTOR_BYTES,
                    &disk->recording->records[pending[i].record]);
        }
    }
    write_whole(file, page, sizeof(page), begin);
}

// The file may be as long as it was at any time since it was flushed.
static uint64_t pick_size(const Disk *disk, const Loss *loss, const Node *node)
{
    size_t kept = pick(loss, node->pending_count), last = 0;
    uint64_t size = node->size;
    for (size_t i = 0; i < kept; i++) {
        if (i > 0 && node->pending[i].record == last) continue;
        last = node->pending[i].record;
        size = size_after(size, &disk->recording->records[last]);
    }
    return size;
}

static void write_file(const Disk *disk, const Loss *loss, const Node *node, const char *path)
{
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0);
    if (node->size > 0) write_whole(file, node->bytes, node->size, 0);
    uint64_t size = pick_size(disk, loss, node);
    size_t bytes = node->pending_count * sizeof(Pending);
    Pending *pending = malloc(bytes + 1);
    CHECK(pending != NULL);
    if (bytes > 0) memcpy(pending, node->pending, bytes);
    qsort(pending, node->pending_count, sizeof(Pending), compare_pending);
    for (size_t i = 0, next; i < node->pending_count; i = next) {
        for (next = i + 1; next < node->pending_count && pending[next].page == pending[i].page;)
            next++;
        write_page(disk, loss, file, node, &pending[i], next - i);
    }
    free(pending);
    CHECK_EQ(ftruncate(file, (off_t)size), 0);
    close(file);
}

// A journal keeps the order of a directory's changes; POSIX has each of them reach the disk or not,
// whatever became of the others. A rename within the directory is one change.
static void apply_names(const Disk *disk, const Loss *loss, Node *node)
{
    size_t kept = loss->is_ordered ? pick(loss, node->name_count) : node->name_count;
    for (size_t i = 0; i < kept; i++) {
        if (loss->is_ordered || random_below(loss->random, 8) < loss->kept_of_8) {
            rename_by(disk, node, node->names[i]);
        }
    }
}

static void write_directory(const Disk *disk, const Loss *loss, int index, const char *path)
{
    Node *node = malloc(sizeof(Node));
    CHECK(node != NULL);
    *node = disk->nodes[index];
    apply_names(disk, loss, node);
    CHECK(mkdir(path, 0700) == 0 || errno == EEXIST);
    for (size_t i = 0; i < node->entry_count; i++) {
        char below[IMAGE_PATH_BYTES];
        int child = node->entries[i].node;
        snprintf(below, sizeof(below), "%s/%s", path, node->entries[i].name);
        if (disk->recording->is_directory[child]) {
            write_directory(disk, loss, child, below);
        } else {
            write_file(disk, loss, &disk->nodes[child], below);
        }
    }
    free(node);
}

static void empty(const char *path)
{
    DIR *directory = opendir(path);
    if (!directory) return;
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        char below[IMAGE_PATH_BYTES];
        snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
        if (unlink(below) == 0) continue;
        empty(below);
        CHECK_EQ(rmdir(below), 0);
    }
    closedir(directory);
}

void disk_write_image(const Disk *disk, Random *random, const char *path)
{
    Loss loss = {
        .random = random,
        .kept_of_8 = (unsigned)random_below(random, 9),
        .is_torn = random_below(random, 2),
        .is_ordered = random_below(random, 2),
    };
    empty(path);
    write_directory(disk, &loss, 0, path);
}
