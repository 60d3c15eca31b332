// Room: blocks are allocated beyond the end of the file, in steps that grow with it, so that few
// commits allocate. The file's size stays LMDB's.

#include "kv/durable/room.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "kv/durable/data_file_fields.h"
#include "kv/durable/file_names.h"
#include "kv/durable/lmdb_error.h"
#include "kv/durable/reader_slots.h"

enum {
    STEP_BYTES_MIN = 256 * 1024,
    STEP_BYTES_MAX = 16 * 1024 * 1024,
    STEP_SHARE = 8, // of the file
};

// Returns errno.
static int allocate(int data_file, uint64_t begin, uint64_t end)
{
    off_t size = (off_t)(end - begin);
    if (fallocate(data_file, FALLOC_FL_KEEP_SIZE, (off_t)begin, size) == 0) return 0;
    bool is_unable = errno == EOPNOTSUPP || errno == ENOSYS;
    return is_unable ? 0 : errno; // such a file system fails in the commit, if at all
}

static uint64_t count_pages(MDB_txn *txn, uint64_t before_txn)
{
    enum { FREE_LIST = 0 }; // LMDB's handle for it, named in mdb_stat.c but not in lmdb.h
    MDB_cursor *cursor;
    MDB_val key, pages; // the transaction that freed them; their count, and their numbers
    uint64_t sum = 0;
    if (mdb_cursor_open(txn, FREE_LIST, &cursor)) return 0;
    while (mdb_cursor_get(cursor, &key, &pages, MDB_NEXT) == 0) {
        size_t freed_txn, count;
        if (key.mv_size != sizeof(freed_txn) || pages.mv_size < sizeof(count)) break;
        memcpy(&freed_txn, key.mv_data, sizeof(freed_txn));
        memcpy(&count, pages.mv_data, sizeof(count));
        if (freed_txn >= before_txn) break;
        sum += count;
    }
    mdb_cursor_close(cursor);
    return sum;
}

// Returns how many pages the open write transaction had to take before it makes the file longer:
// those that no reader and no pin needs. It is slow.
static uint64_t free_pages(DataFile *file)
{
    ReaderSlots readers;
    MDB_txn *txn;
    uint64_t pin = atomic_load(&file->pin_txn);
    reader_slots_survey(file, &readers);
    if (mdb_txn_begin(file->lmdb, NULL, MDB_RDONLY, &txn)) return 0;
    uint64_t before_txn = mdb_txn_id(txn);
    if (readers.count > 0 && readers.oldest_txn < before_txn) before_txn = readers.oldest_txn;
    if (pin > 0 && pin < before_txn) before_txn = pin;
    uint64_t pages = count_pages(txn, before_txn);
    mdb_txn_abort(txn);
    return pages;
}

Error room_reserve(DataFile *file, uint64_t bytes, ErrorDetail *detail)
{
    MDB_envinfo info;
    MDB_stat pages;
    int code = mdb_env_info(file->lmdb, &info);
    if (code == 0) code = mdb_env_stat(file->lmdb, &pages);
    uint64_t needed = code == 0 ? (info.me_last_pgno + 1) * pages.ms_psize + bytes : 0;
    if (code == 0 && needed <= file->reserved_bytes) return ERROR_NONE;

    int data_file = -1;
    struct stat status = {.st_size = 0};
    if (code == 0 && needed > info.me_mapsize) code = MDB_MAP_FULL;
    if (code == 0) code = mdb_env_get_fd(file->lmdb, &data_file);
    if (code == 0 && fstat(data_file, &status) != 0) code = errno;
    uint64_t size = (uint64_t)status.st_size;
    if (size < file->reserved_bytes) size = file->reserved_bytes;
    if (code == 0 && needed > size) {
        uint64_t step = size / STEP_SHARE;
        if (step < STEP_BYTES_MIN) step = STEP_BYTES_MIN;
        if (step > STEP_BYTES_MAX) step = STEP_BYTES_MAX;
        uint64_t end = needed + step < info.me_mapsize ? needed + step : info.me_mapsize;
        code = allocate(data_file, size, end);
        if (code) end = needed; // a nearly full disk may have room for this much
        if (code) code = allocate(data_file, size, end);
        size = end;
    }
    // `bytes` is more than most commits take. If it is not, LMDB's commit fails.
    bool is_full = lmdb_error_of(code) == ERROR_STORE_FULL;
    if (is_full && free_pages(file) * pages.ms_psize >= bytes / 2) return ERROR_NONE;
    if (code) return lmdb_fail(detail, code, "make room in", file->directory, KV_FILE_DATA);
    file->reserved_bytes = size;
    return ERROR_NONE;
}
