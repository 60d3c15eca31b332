// flushed.mdb, and the meta pages of data.mdb, whose layout is LMDB's 0.9 (data version 1).

#include "kv/kv_lmdb_slot.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/limits.h"
#include "kv/kv_lmdb_pair.h"

static const uint64_t SLOT_MAGIC = UINT64_C(0x3148534c46454e54); // "TNEFLSH1"
enum { META_MAGIC = (int)0xBEEFC0DE, META_VERSION = 1, META_COUNT = 2, ROOT_COUNT = 2 };
static const uint64_t NO_PAGE = UINT64_MAX;

typedef struct LmdbTree {
    uint32_t pad;
    uint16_t flags, depth;
    uint64_t branch_pages, leaf_pages, overflow_pages, entries;
    uint64_t root;
} LmdbTree;

typedef struct LmdbMetaPage {
    uint64_t page;
    uint16_t pad, flags, lower, upper;
    uint32_t magic, version;
    uint64_t address, map_bytes;
    LmdbTree trees[ROOT_COUNT]; // of free pages, of the tables
    uint64_t last_page;
    uint64_t txn_id;
} LmdbMetaPage;

_Static_assert(sizeof(LmdbMetaPage) == 152, "LMDB's meta page");
_Static_assert(sizeof(Slot) <= SLOT_BYTES, "a slot fits its place");

static Error fail(ErrorDetail *detail, const char *what, const char *directory, const char *name)
{
    Error error = errno == ENOSPC || errno == EDQUOT ? ERROR_STORE_FULL : ERROR_IO;
    return error_say(detail, error, "cannot %s %s/%s: %s", what, directory, name, strerror(errno));
}

static int open_in(const char *directory, const char *name, int flags)
{
    char path[PATH_BYTES_MAX + 16];
    if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(path, flags | O_CLOEXEC, 0600);
}

// A short read counts as one of zeros.
static bool read_at(int file, void *bytes, size_t size, uint64_t offset)
{
    memset(bytes, 0, size);
    return pread(file, bytes, size, (off_t)offset) >= 0;
}

static bool write_at(int file, const void *bytes, size_t size, uint64_t offset)
{
    ssize_t written = pwrite(file, bytes, size, (off_t)offset);
    if (written >= 0 && (size_t)written < size) errno = ENOSPC;
    return written == (ssize_t)size;
}

void slot_boot_id(const char *said, char out[SLOT_BOOT_ID_BYTES])
{
    memset(out, 0, SLOT_BOOT_ID_BYTES);
    if (said) {
        snprintf(out, SLOT_BOOT_ID_BYTES, "%s", said);
        return;
    }
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    if (read(file, out, SLOT_BOOT_ID_BYTES - 1) < 0) memset(out, 0, SLOT_BOOT_ID_BYTES);
    close(file);
}

// A file that was never written to may lack its name on the disk: whoever made it may have failed.
static bool is_used(int file)
{
    static const uint8_t ZEROS[SLOT_COUNT * SLOT_BYTES];
    uint8_t bytes[sizeof(ZEROS)];
    return !read_at(file, bytes, sizeof(bytes), 0) || memcmp(bytes, ZEROS, sizeof(ZEROS)) != 0;
}

// Both places zero, on the disk, under its name: a slot is only ever written over.
static Error slot_make(const char *directory, ErrorDetail *detail, int *out_file)
{
    static const uint8_t ZEROS[SLOT_COUNT * SLOT_BYTES];
    int file = open_in(directory, "flushed.mdb", O_RDWR | O_CREAT);
    if (file < 0) return fail(detail, "make", directory, "flushed.mdb");
    int above = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_made = above >= 0 && write_at(file, ZEROS, sizeof(ZEROS), 0) && fsync(file) == 0 &&
                   (fsync(above) == 0 || errno == EINVAL);
    Error error = is_made ? ERROR_NONE : fail(detail, "make", directory, "flushed.mdb");
    if (above >= 0) close(above);
    if (error) {
        close(file);
        return error;
    }
    *out_file = file;
    return ERROR_NONE;
}

Error slot_open(const char *directory, bool create, ErrorDetail *detail, SlotFile *out)
{
    *out = (SlotFile){.file = open_in(directory, "flushed.mdb", O_RDWR), .directory = directory};
    if (out->file < 0 && errno != ENOENT) {
        out->file = open_in(directory, "flushed.mdb", O_RDONLY);
        if (out->file < 0) return fail(detail, "open", directory, "flushed.mdb");
    }
    struct stat status;
    if (out->file >= 0 && fstat(out->file, &status) == 0 &&
        status.st_size >= (off_t)SLOT_COUNT * SLOT_BYTES && (!create || is_used(out->file))) {
        return ERROR_NONE;
    }
    // Missing, or it was being made when the power went: nothing was relaxed yet.
    slot_close(out);
    return create ? slot_make(directory, detail, &out->file) : ERROR_NONE;
}

void slot_close(SlotFile *slots)
{
    if (slots->file >= 0) close(slots->file);
    slots->file = -1;
}

static Hash checksum_of(const Slot *slot)
{
    return hash_bytes(slice(slot, offsetof(Slot, checksum)));
}

static bool is_whole(const Slot *slot)
{
    Hash hash = checksum_of(slot);
    return slot->magic == SLOT_MAGIC && memcmp(slot->checksum, hash.bytes, HASH_BYTES) == 0;
}

static bool is_unused(const Slot *slot)
{
    static const Slot ZEROS;
    return memcmp(slot, &ZEROS, sizeof(*slot)) == 0;
}

Error slot_read(SlotFile *slots, bool *out_found, Slot *out, ErrorDetail *detail)
{
    *out_found = false;
    unsigned unused_count = 0;
    for (uint64_t i = 0; i < SLOT_COUNT; i++) {
        Slot slot;
        if (!read_at(slots->file, &slot, sizeof(slot), i * SLOT_BYTES)) {
            return fail(detail, "read", slots->directory, "flushed.mdb");
        }
        if (is_unused(&slot)) unused_count++;
        if (!is_whole(&slot) || (*out_found && slot.sequence < out->sequence)) continue;
        *out = slot;
        *out_found = true;
    }
    slots->sequence = *out_found ? out->sequence : 0;
    if (*out_found || unused_count > 0) return ERROR_NONE;
    return error_say(detail, ERROR_CORRUPT, "%s/flushed.mdb is damaged", slots->directory);
}

int slot_write(SlotFile *slots, Slot *slot)
{
    slot->magic = SLOT_MAGIC;
    slot->sequence = ++slots->sequence;
    if (!slot->boot_id[0]) memcpy(slot->boot_id, slots->boot_id, sizeof(slot->boot_id));
    if (!slot->inode) slot->inode = slots->inode;
    Hash hash = checksum_of(slot);
    memcpy(slot->checksum, hash.bytes, HASH_BYTES);
    uint64_t place = slot->sequence % SLOT_COUNT * SLOT_BYTES;
    if (!write_at(slots->file, slot, sizeof(*slot), place)) return errno;
    return fdatasync(slots->file) != 0 ? errno : 0;
}

static bool is_meta(const LmdbMetaPage *meta)
{
    return meta->magic == (uint32_t)META_MAGIC && meta->version == META_VERSION;
}

enum { LMDB_PAGE_BYTES_MAX = 65536, PAGE_HEADER_BYTES = 16, NODE_HEADER_BYTES = 8 };
enum { PAGE_IS_LEAF = 2, NODE_IS_TREE = 2 };

typedef struct RootHash {
    int file;
    uint64_t page_bytes;
    Hash hash;
} RootHash;

static bool hash_page(RootHash *roots, uint64_t page, uint8_t *bytes)
{
    if (!read_at(roots->file, bytes, roots->page_bytes, page * roots->page_bytes)) return false;
    roots->hash = hash_pair(slice(roots->hash.bytes, HASH_BYTES), slice(bytes, roots->page_bytes));
    return true;
}

static uint16_t get_u16(const uint8_t *bytes)
{
    uint16_t value;
    memcpy(&value, bytes, sizeof(value));
    return value;
}

// The first page of each table that a leaf of the tree of tables names.
static bool hash_tables(RootHash *roots, const uint8_t *leaf)
{
    enum { FLAGS_AT = 10, LOWER_AT = 12, NODE_FLAGS_AT = 4, KEY_BYTES_AT = 6 };
    static _Thread_local uint8_t page[LMDB_PAGE_BYTES_MAX];
    if (!(get_u16(leaf + FLAGS_AT) & PAGE_IS_LEAF)) return true;
    size_t end = get_u16(leaf + LOWER_AT);
    for (size_t at = PAGE_HEADER_BYTES; at + 2 <= end && end <= roots->page_bytes; at += 2) {
        size_t node = get_u16(leaf + at);
        if (node + NODE_HEADER_BYTES > roots->page_bytes) return true;
        size_t tree_at = node + NODE_HEADER_BYTES + get_u16(leaf + node + KEY_BYTES_AT);
        LmdbTree tree;
        if (!(get_u16(leaf + node + NODE_FLAGS_AT) & NODE_IS_TREE)) continue;
        if (tree_at + sizeof(tree) > roots->page_bytes) return true;
        memcpy(&tree, leaf + tree_at, sizeof(tree));
        if (tree.root != NO_PAGE && !hash_page(roots, tree.root, page)) return false;
    }
    return true;
}

// A hash of the pages that the state's trees begin at. They are the state's for as long as it is
// pinned, and another store's are others.
static bool hash_roots(int file, uint64_t page_bytes, const LmdbMetaPage *meta, uint8_t out[16])
{
    static _Thread_local uint8_t page[LMDB_PAGE_BYTES_MAX];
    RootHash roots = {.file = file, .page_bytes = page_bytes};
    if (page_bytes > LMDB_PAGE_BYTES_MAX) {
        errno = EINVAL;
        return false;
    }
    for (size_t i = 0; i < ROOT_COUNT; i++) {
        uint64_t root = meta->trees[i].root;
        if (root == NO_PAGE) continue;
        if (!hash_page(&roots, root, page)) return false;
        bool is_of_tables = i == ROOT_COUNT - 1;
        if (is_of_tables && !hash_tables(&roots, page)) return false;
    }
    memcpy(out, roots.hash.bytes, HASH_BYTES);
    return true;
}

int slot_take_meta(int data_file, size_t page_bytes, Slot *slot)
{
    for (uint64_t i = 0; i < META_COUNT; i++) {
        if (!read_at(data_file, slot->meta, sizeof(slot->meta), i * page_bytes)) return errno;
        LmdbMetaPage meta;
        memcpy(&meta, slot->meta, sizeof(meta));
        if (!is_meta(&meta) || meta.txn_id != slot->txn_id) continue;
        slot->page_bytes = page_bytes;
        return hash_roots(data_file, page_bytes, &meta, slot->roots) ? 0 : errno;
    }
    return EPROTO; // not the layout that we know
}

// Whether data.mdb has the state's first pages.
static Error find_roots(int file, const char *directory, const Slot *slot, ErrorDetail *detail,
                        bool *out_is_there)
{
    *out_is_there = false;
    LmdbMetaPage meta;
    memcpy(&meta, slot->meta, sizeof(meta));
    uint8_t roots[HASH_BYTES];
    struct stat status;
    if (fstat(file, &status) != 0 || !hash_roots(file, slot->page_bytes, &meta, roots)) {
        return fail(detail, "read", directory, "data.mdb");
    }
    *out_is_there = is_meta(&meta) && memcmp(roots, slot->roots, HASH_BYTES) == 0;
    if (*out_is_there || status.st_ino != slot->inode) return ERROR_NONE;
    return error_say(detail, ERROR_CORRUPT,
                     "%s/data.mdb lacks what was flushed to it before the power went; tine "
                     "restore-backup puts a backup in its place (if you copied one over it "
                     "yourself, remove flushed.mdb)",
                     directory);
}

// Both meta pages become the state's, each with its own number: LMDB takes the newer of them, and
// the next commit writes over one. Cut off in between, this is done again.
static bool put_back(int file, const Slot *slot)
{
    uint8_t bytes[SLOT_META_BYTES];
    memcpy(bytes, slot->meta, sizeof(bytes));
    for (uint64_t i = 0; i < META_COUNT; i++) {
        memcpy(bytes + offsetof(LmdbMetaPage, page), &i, sizeof(i));
        if (!write_at(file, bytes, sizeof(bytes), i * slot->page_bytes)) return false;
    }
    return fsync(file) == 0;
}

Error slot_restore(const SlotFile *slots, const Slot *slot, bool may_write, ErrorDetail *detail,
                   bool *out_is_set_back)
{
    int file = open_in(slots->directory, "data.mdb", O_RDWR);
    if (file < 0 && errno == ENOENT) return ERROR_NONE; // taken away since
    if (file < 0) return fail(detail, "open", slots->directory, "data.mdb");
    bool is_there;
    Error error = find_roots(file, slots->directory, slot, detail, &is_there);
    if (!error && is_there && !may_write) {
        error = error_say(detail, ERROR_UNAVAILABLE,
                          "%s was cut off from its disk; start tined on it, or run tine check",
                          slots->directory);
    } else if (!error && is_there) {
        // lock.mdb knows newer states than there are. If the machine did not go down, readers of
        // other processes may have it open: those who look find another one, and open anew.
        error = pair_remove_lock(slots->directory, detail);
        *out_is_set_back = !error;
        if (!error && !put_back(file, slot)) {
            error = fail(detail, "write", slots->directory, "data.mdb");
        }
    }
    close(file);
    return error;
}

// LMDB makes the file with both meta pages, and we flush it before anything is committed to it: so
// a meta page with a transaction's id, or a third page, says that it was finished.
Error slot_empty_unfinished(const char *directory, ErrorDetail *detail)
{
    int file = open_in(directory, "data.mdb", O_RDWR);
    if (file < 0) return ERROR_NONE; // LMDB says what is wrong with it
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    struct stat status;
    bool is_finished = fstat(file, &status) != 0 || status.st_size == 0 ||
                       (uint64_t)status.st_size > META_COUNT * page_bytes;
    for (uint64_t i = 0; !is_finished && i < META_COUNT; i++) {
        static const LmdbMetaPage ZEROS;
        LmdbMetaPage meta;
        bool is_read = read_at(file, &meta, sizeof(meta), i * page_bytes);
        bool is_blank = memcmp(&meta, &ZEROS, sizeof(meta)) == 0;
        is_finished = !is_read || !(is_blank || (is_meta(&meta) && meta.txn_id == 0));
    }
    Error error = ERROR_NONE;
    if (!is_finished && ftruncate(file, 0) != 0)
        error = fail(detail, "empty", directory, "data.mdb");
    close(file);
    return error;
}
