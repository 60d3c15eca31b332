// Store copies. The file is opened for reading while another process may write to it. The lock of
// the directory only keeps out a second writer, so a copy does not need it.

#include "store/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "kv/durable/recovery.h"
#include "os/directory.h"
#include "store/files.h"
#include "store/record.h"

enum { RENEW_SLICE_EVENTS = 10000 };

static Error copy_file(DataFile *from, const StoreCopy *copy, ErrorDetail *detail);

static Error fail(ErrorDetail *detail, const char *what, const char *path)
{
    return error_say_errno(detail, errno, "cannot %s %s", what, path);
}

Error store_copy(const StoreCopy *copy, ErrorDetail *detail)
{
    if (strlen(copy->from) >= PATH_BYTES_MAX || strlen(copy->to) >= PATH_BYTES_MAX) {
        return error_say(detail, ERROR_INVALID_ARGUMENT, "a path is longer than %d bytes",
                         PATH_BYTES_MAX - 1);
    }
    // LMDB follows the pages of a compact copy, and copies the bytes for any other.
    PageWalkOptions walk = {.found = NULL};
    DataFileOptions options = {
        .directory = copy->from,
        .read_only = true,
        .walk = copy->is_compact ? &walk : NULL,
        .accepts_damage = copy->accepts_damage && !copy->is_compact,
    };
    DataFile *file;
    Error error = data_file_open(&options, detail, &file);
    if (error) return error;
    if (mkdir(copy->to, 0700) != 0) {
        error = errno == EEXIST
                    ? error_say(detail, ERROR_INVALID_ARGUMENT, "%s already exists", copy->to)
                    : fail(detail, "create", copy->to);
    } else {
        error = copy_file(file, copy, detail);
        if (error) (void)rmdir(copy->to);
    }
    data_file_close(file);
    return error;
}

static Error copy_file(DataFile *from, const StoreCopy *copy, ErrorDetail *detail)
{
    StorePath data = store_path(copy->to, KV_FILE_DATA);
    const char *path = data.text;
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return fail(detail, "create", path);
    Error error = data_file_copy(from, file, copy->is_compact, detail);
    if (!error && fsync(file) != 0) error = fail(detail, "flush", path);
    if (close(file) != 0 && !error) error = fail(detail, "close", path);
    if (!error) error = directory_flush(copy->to, detail);
    if (error) (void)unlink(path);
    return error;
}

Error store_settle(const char *directory, ErrorDetail *detail)
{
    KvOptions options = {
        .file = {.directory = directory, .owns_directory = true},
        .tables = STORE_TABLE_OPTIONS,
        .table_count = TABLE_COUNT,
    };
    return kv_settle(&options, detail);
}

Error store_settle_if_due(const char *directory, ErrorDetail *detail)
{
    StoreLock lock;
    if (!recovery_is_due(directory, /* boot_id= */ NULL)) return ERROR_NONE;
    if (access(directory, W_OK) != 0) return ERROR_NONE;
    if (store_files_lock(directory, "", NULL, &lock) != ERROR_NONE) return ERROR_NONE;
    Error error = store_settle(directory, detail);
    store_files_unlock(&lock);
    return error;
}

static Error delete_events(Txn *txn)
{
    uint64_t first = txn->state.first_event_sequence, last = txn->state.last_event_sequence;
    uint64_t end = last - first >= RENEW_SLICE_EVENTS ? first + RENEW_SLICE_EVENTS : last + 1;
    for (uint64_t sequence = first; sequence < end; sequence++) {
        Key key = key_event(sequence);
        Error error = record_delete(txn, TABLE_EVENTS, &key, NULL);
        if (error) return error;
    }
    txn->state.first_event_sequence = end;
    txn->state_is_dirty = true;
    return ERROR_NONE;
}

// Works in slices, because a transaction can hold only a limited number of pages. The last one sets
// the new instance ID.
Error store_renew(Store *store, ErrorDetail *detail)
{
    bool is_done = false;
    Error error = ERROR_NONE;
    while (!error && !is_done) {
        Txn txn;
        error = txn_begin(store, /* is_write= */ true, NULL, detail, &txn);
        if (error) return error;
        is_done = txn.state.first_event_sequence > txn.state.last_event_sequence;
        error = is_done ? txn_renew_instance(&txn) : delete_events(&txn);
        if (!error) error = txn_commit(&txn);
        txn_abort(&txn);
    }
    return error;
}
