// Ownership of data.mdb.
//
// LMDB numbers write transactions: the next one has the number of the last that was committed and
// had changed something, plus one. An aborted or empty one leaves no number. The last number is in
// lock.mdb, and in the newer of the two meta pages. Both are compared, because a process that made
// a lock.mdb of its own changes only the meta pages.
//
// The tricky part is which commits are our own. A commit gives up the writer lock before it
// returns, so the next transaction may begin before anybody could note that it has succeeded.
// Therefore the number is noted before the commit, and the next transaction's number tells whether
// it was committed.

#include "kv/durable/ownership.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kv/durable/data_file_fields.h"
#include "kv/durable/file_names.h"
#include "report/log.h"

enum { WHAT_BYTES_MAX = 384 };

static pthread_mutex_t loss_mutex = PTHREAD_MUTEX_INITIALIZER; // held while a cause is written

static uint64_t last_txn_in_file(DataFile *file)
{
    MDB_envinfo info = {.me_last_txnid = 0};
    (void)mdb_env_info(file->lmdb, &info);
    return info.me_last_txnid;
}

int ownership_begin(DataFile *file, const DataFileOptions *options)
{
    Ownership *ownership = &file->ownership;
    if (options->read_only) return 0;
    ownership->last_txn = last_txn_in_file(file);
    if (options->no_sync) return 0;

    ownership->directory = open(options->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (ownership->directory < 0) return errno;
    struct stat found;
    int data_file;
    int code = mdb_env_get_fd(file->lmdb, &data_file);
    if (code) return code;
    if (fstat(data_file, &found) != 0) return errno;
    atomic_store(&ownership->bytes, (uint64_t)found.st_size);
    return 0;
}

void ownership_end(DataFile *file)
{
    if (file->ownership.directory >= 0) close(file->ownership.directory);
    file->ownership.directory = -1;
}

// Returns ERROR_IO with the first cause.
__attribute__((cold)) static Error refuse(const DataFile *file, ErrorDetail *detail)
{
    return error_say(detail, ERROR_IO, "%s", file->ownership.cause.text);
}

// Notes the loss, unless another thread has. Logs it before anybody can see it noted.
__attribute__((cold)) static Error lose(DataFile *file, ErrorDetail *detail, const char *what)
{
    Ownership *ownership = &file->ownership;
    pthread_mutex_lock(&loss_mutex);
    if (!atomic_load(&ownership->is_lost)) {
        Error error =
            error_say(&ownership->cause, ERROR_IO, "%s/" KV_FILE_DATA " %s", file->directory, what);
        log_write(LOG_ERROR, "the store is closed", "error=%s detail=\"%s\"", error_name(error),
                  ownership->cause.text);
        atomic_store(&ownership->is_lost, true);
    }
    pthread_mutex_unlock(&loss_mutex);
    return refuse(file, detail);
}

__attribute__((cold)) static Error lose_name(DataFile *file, int code, ErrorDetail *detail)
{
    if (code == 0) {
        return lose(file, detail,
                    "was replaced by another file while this process had it open; this process "
                    "writes no more, because it would be lost; start again to use the new file");
    }
    if (code == ENOENT) {
        return lose(file, detail,
                    "was removed while this process had it open; this process writes no more, "
                    "because it would be lost; put a backup in its place (tine restore-backup) and "
                    "start again");
    }
    char what[WHAT_BYTES_MAX];
    snprintf(what, sizeof(what), "cannot be looked at any more: %s (errno %d)", strerror(code),
             code);
    return lose(file, detail, what);
}

__attribute__((cold)) static Error lose_end(DataFile *file, uint64_t bytes, uint64_t bytes_before,
                                            ErrorDetail *detail)
{
    char what[WHAT_BYTES_MAX];
    snprintf(what, sizeof(what),
             "was cut from %" PRIu64 " to %" PRIu64 " bytes while this process had it open; this "
             "process writes no more; run tine check, and if it finds damage put a backup in its "
             "place (tine restore-backup)",
             bytes_before, bytes);
    return lose(file, detail, what);
}

__attribute__((cold)) static Error lose_txn(DataFile *file, uint64_t last_txn, ErrorDetail *detail)
{
    char what[WHAT_BYTES_MAX];
    snprintf(what, sizeof(what),
             "was written to by another process: its last transaction is %" PRIu64 ", but the last "
             "of this process was %" PRIu64 "; this process writes no more; stop the other one, "
             "run tine check and start again",
             last_txn, file->ownership.last_txn);
    return lose(file, detail, what);
}

Error ownership_check_name(DataFile *file, ErrorDetail *detail)
{
    Ownership *ownership = &file->ownership;
    if (ownership_is_lost(file)) return refuse(file, detail);
    if (ownership->directory < 0) return ERROR_NONE;

    uint64_t bytes_before = atomic_load(&ownership->bytes);
    struct stat found;
    if (fstatat(ownership->directory, KV_FILE_DATA, &found, 0) != 0) {
        return lose_name(file, errno, detail);
    }
    FileId id = {.device = found.st_dev, .inode = found.st_ino};
    if (!file_id_equal(id, file->data_id)) return lose_name(file, 0, detail);
    uint64_t bytes = (uint64_t)found.st_size;
    if (bytes < bytes_before) return lose_end(file, bytes, bytes_before, detail);
    while (bytes > bytes_before &&
           !atomic_compare_exchange_weak(&ownership->bytes, &bytes_before, bytes))
        continue;
    return ERROR_NONE;
}

Error ownership_check_txn(DataFile *file, uint64_t txn_id, ErrorDetail *detail)
{
    Ownership *ownership = &file->ownership;
    if (ownership_is_lost(file)) return refuse(file, detail);
    uint64_t noted = atomic_exchange_explicit(&ownership->noted_txn, 0, memory_order_relaxed);
    if (noted != 0 && txn_id == noted + 1) ownership->last_txn = noted;

    if (txn_id != ownership->last_txn + 1) return lose_txn(file, txn_id - 1, detail);
    uint64_t last_txn = last_txn_in_file(file);
    return last_txn == ownership->last_txn ? ERROR_NONE : lose_txn(file, last_txn, detail);
}

Error ownership_note_commit(DataFile *file, uint64_t txn_id, ErrorDetail *detail)
{
    Error error = ownership_check_txn(file, txn_id, detail);
    if (error) return error;
    atomic_store_explicit(&file->ownership.noted_txn, txn_id, memory_order_relaxed);
    return ERROR_NONE;
}

void ownership_forget_commit(DataFile *file, uint64_t txn_id)
{
    atomic_uint_fast64_t *noted = &file->ownership.noted_txn;
    uint_fast64_t expected = txn_id;
    (void)atomic_compare_exchange_strong(noted, &expected, 0);
}

bool ownership_is_lost(const DataFile *file)
{
    return atomic_load(&file->ownership.is_lost);
}

void ownership_tell_loss(const DataFile *file, ErrorDetail *detail)
{
    *detail = file->ownership.cause;
}
