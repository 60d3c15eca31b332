// What a commit that failed has left behind.
//
// LMDB writes pages first and the meta page last. An error before the meta page leaves the file as
// it was. An error at the meta page makes LMDB panic, and then nobody knows. A disk that fills up
// in the middle of a write makes that write short, and LMDB calls a short write EIO.

#include "kv/durable/commit_error.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "kv/durable/data_file_fields.h"
#include "kv/durable/file_names.h"
#include "kv/durable/lmdb_error.h"

enum { DISK_FULL_PROBE_BYTES = 1024 * 1024 };

static bool is_panicked(DataFile *file)
{
    MDB_txn *reader;
    int code = mdb_txn_begin(file->lmdb, NULL, MDB_RDONLY, &reader);
    if (code == 0) mdb_txn_abort(reader);
    return code == MDB_PANIC;
}

// Returns whether the file cannot grow by a little more. Reserving blocks past its end touches no
// byte of it, so this is safe whatever other processes do meanwhile.
static bool is_disk_full(DataFile *file)
{
    int data_file;
    struct stat status;
    if (mdb_env_get_fd(file->lmdb, &data_file) || fstat(data_file, &status)) return false;

    struct rlimit limit;
    rlim_t end = (rlim_t)status.st_size + DISK_FULL_PROBE_BYTES;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < end) return true;

    struct statvfs disk;
    if (fstatvfs(data_file, &disk) == 0 &&
        disk.f_bavail < DISK_FULL_PROBE_BYTES / (disk.f_frsize ? disk.f_frsize : 1)) {
        return true;
    }
    if (fallocate(data_file, FALLOC_FL_KEEP_SIZE, status.st_size, DISK_FULL_PROBE_BYTES) == 0) {
        return false;
    }
    return error_of_errno(errno) == ERROR_STORE_FULL;
}

__attribute__((cold)) Error commit_error(DataFile *file, int code, ErrorDetail *detail)
{
    bool is_unknown = is_panicked(file);
    if (code == EIO && !is_unknown && is_disk_full(file)) code = ENOSPC;
    Error error = lmdb_fail(detail, code, "commit to", file->directory, KV_FILE_DATA);
    return is_unknown ? ERROR_IO : error;
}
