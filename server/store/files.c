// Store files. The data is moved only by link and rename, so that at each moment a complete store
// is in the directory.

#include "store/files.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kv/kv.h"
#include "os/directory.h"
#include "os/lock.h"

// All files of a store.
static const char *const NAMES[STORE_FILES_COUNT] = {KV_FILE_DATA,       KV_FILE_LOCK,
                                                     KV_FILE_PAIR,       KV_FILE_FLUSHED,
                                                     KV_FILE_WALKED,     STORE_FILE_LOCK,
                                                     STORE_FILE_CRASHES, STORE_FILE_MANIFEST};

StorePath store_path(const char *directory, const char *name)
{
    StorePath path;
    int size = snprintf(path.text, sizeof(path.text), "%s/%s", directory, name);
    assert(size > 0 && (size_t)size < sizeof(path.text));
    return path;
}

StorePath store_path_migrating(const char *directory)
{
    return store_path(directory, "migrating");
}

StorePath store_path_before_format(const char *directory, int format, int number)
{
    char name[64];
    if (number == 1) {
        snprintf(name, sizeof(name), "before-format-%d", format);
    } else {
        snprintf(name, sizeof(name), "before-format-%d-%d", format, number);
    }
    return store_path(directory, name);
}

static Error fail(ErrorDetail *detail, const char *what, const char *path)
{
    return error_say_errno(detail, errno, "cannot %s %s", what, path);
}

bool store_files_exist(const char *directory)
{
    struct stat found;
    if (strlen(directory) >= PATH_BYTES_MAX) return false;
    return stat(store_path(directory, KV_FILE_DATA).text, &found) == 0;
}

uint64_t store_files_bytes(const char *directory)
{
    struct stat found;
    if (strlen(directory) >= PATH_BYTES_MAX) return 0;
    if (stat(store_path(directory, KV_FILE_DATA).text, &found) != 0) return 0;
    return (uint64_t)found.st_size;
}

Error store_files_lock(const char *directory, const char *advice, ErrorDetail *detail,
                       StoreLock *out)
{
    StorePath path = store_path(directory, STORE_FILE_LOCK);
    *out = STORE_LOCK_NONE;
    Error error = lock_take(path.text, directory, advice, detail, &out->file);
    if (!error) error = lock_take_directory(directory, advice, detail, &out->directory);
    if (!error) return ERROR_NONE;
    lock_remove(path.text, out->file); // it is new: the holder's was removed
    *out = STORE_LOCK_NONE;
    return error;
}

void store_files_unlock(StoreLock *lock)
{
    if (lock->directory >= 0) close(lock->directory);
    if (lock->file >= 0) close(lock->file);
    *lock = STORE_LOCK_NONE;
}

void store_files_paths(const char *directory, StorePath out_paths[STORE_FILES_COUNT])
{
    for (size_t i = 0; i < STORE_FILES_COUNT; i++)
        out_paths[i] = store_path(directory, NAMES[i]);
}

void store_files_clean(const char *directory)
{
    (void)unlink(store_path(directory, KV_FILE_LOCK).text);
    (void)unlink(store_path(directory, KV_FILE_PAIR).text);
    (void)unlink(store_path(directory, KV_FILE_WALKED).text);
    (void)unlink(store_path(directory, KV_FILE_FLUSHED).text);
    (void)unlink(store_path(directory, STORE_FILE_LOCK).text);
}

bool store_files_forget_crashes(const char *directory)
{
    struct stat found;
    StorePath path = store_path(directory, STORE_FILE_CRASHES);
    bool has_notes = stat(path.text, &found) == 0 && found.st_size > 0;
    return unlink(path.text) == 0 && has_notes;
}

void store_files_remove(const char *directory)
{
    kv_remove_log(directory);
    for (size_t i = 0; i < STORE_FILES_COUNT; i++)
        (void)unlink(store_path(directory, NAMES[i]).text);
    (void)rmdir(directory);
}

Error store_files_flush(const char *directory, ErrorDetail *detail)
{
    StorePath path = store_path(directory, KV_FILE_DATA);
    int file = open(path.text, O_RDWR | O_CLOEXEC);
    if (file < 0) return fail(detail, "open", path.text);
    Error error = fsync(file) != 0 ? fail(detail, "flush", path.text) : ERROR_NONE;
    close(file);
    return error ? error : directory_flush(directory, detail);
}

static Error keep_file(const char *directory, const char *kept, const char *name,
                       ErrorDetail *detail)
{
    StorePath old = store_path(directory, name), new = store_path(kept, name);
    if (link(old.text, new.text) == 0 || errno == ENOENT) return ERROR_NONE;
    return fail(detail, "keep the old store as", new.text);
}

static Error keep_log(const char *directory, const char *kept, ErrorDetail *detail)
{
    StorePath old = store_path(directory, KV_DIRECTORY_LOG);
    StorePath new = store_path(kept, KV_DIRECTORY_LOG);
    if (rename(old.text, new.text) == 0 || errno == ENOENT) return ERROR_NONE;
    return fail(detail, "keep the old log as", new.text);
}

Error store_files_keep(const char *directory, const char *kept, bool with_flushed,
                       ErrorDetail *detail)
{
    if (mkdir(kept, 0700) != 0) return fail(detail, "create", kept);
    Error error = keep_file(directory, kept, KV_FILE_DATA, detail);
    if (!error && with_flushed) error = keep_file(directory, kept, KV_FILE_FLUSHED, detail);
    if (!error && with_flushed) error = keep_log(directory, kept, detail);
    if (!error) error = directory_flush(kept, detail);
    if (!error) error = directory_flush(directory, detail);
    if (error) store_files_remove(kept);
    return error;
}

Error store_files_swap(const char *directory, const char *from, bool removes_flushed,
                       ErrorDetail *detail)
{
    StorePath to = store_path(directory, KV_FILE_DATA);
    kv_remove_log(directory); // the old data is complete without it, or was kept with it
    Error error = directory_flush(directory, detail); // beside the new data it would be another's
    if (error) return error;
    if (rename(store_path(from, KV_FILE_DATA).text, to.text) != 0) {
        return fail(detail, "rename the copy to", to.text);
    }
    // These files belong to the old data.
    (void)unlink(store_path(directory, KV_FILE_LOCK).text);
    (void)unlink(store_path(directory, STORE_FILE_CRASHES).text);
    if (removes_flushed) (void)unlink(store_path(directory, KV_FILE_FLUSHED).text);
    store_files_remove(from);
    return directory_flush(directory, detail);
}
