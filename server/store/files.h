// Store files: names the files of a store, and locks, measures, moves and removes a store as a set
// of files.
//
// The directory of a store holds the files of kv/durable/file_names.h and those below. It may also
// hold an unfinished copy (store/partial.h), an unfinished migration (store/migrate.h), and stores
// that were replaced.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/limits.h"
#include "kv/durable/file_names.h"
#include "report/error_detail.h"

#define STORE_FILE_LOCK "tine.lock"         // locked by the process that has the store open
#define STORE_FILE_CRASHES "tine.crashes"   // notes of daemon/crash_notes.h
#define STORE_FILE_MANIFEST "tine.manifest" // of a backup (store/manifest.h)

enum { STORE_PATH_BYTES_MAX = PATH_BYTES_MAX + 64 }; // a directory and a name in it

typedef struct StorePath {
    char text[STORE_PATH_BYTES_MAX];
} StorePath;

// Joins a directory and the name of a store file. The path of the directory must be shorter than
// PATH_BYTES_MAX.
StorePath store_path(const char *directory, const char *name);

// Return the directory in which a migration makes its copy, and the directory that keeps the store
// replaced by migration number `number` (from 1) to `format`.
StorePath store_path_migrating(const char *directory);
StorePath store_path_before_format(const char *directory, int format, int number);

// Returns whether there is a store in `directory`, in whatever state.
bool store_files_exist(const char *directory);

// Returns the size of the store's data file. 0: there is no store in `directory`.
uint64_t store_files_bytes(const char *directory);

// The locks of a store: of the lock file, which names the holder, and of the directory itself, so
// that removing the lock file lets nobody in.
typedef struct StoreLock {
    int file, directory; // -1: not held
} StoreLock;

#define STORE_LOCK_NONE ((StoreLock){.file = -1, .directory = -1})

// Locks a store. The caller unlocks it with store_files_unlock. ERROR_UNAVAILABLE: another process
// holds a lock; `detail` names it and ends with `advice`. ERROR_IO.
MUST_USE Error store_files_lock(const char *directory, const char *advice, ErrorDetail *detail,
                                StoreLock *out);
// Does nothing if the locks are not held.
void store_files_unlock(StoreLock *lock);

// Removes the files that opening a store adds to its data. The store must not be open.
void store_files_clean(const char *directory);

// Removes the notes of crashes, after which tined starts in safe mode. Returns whether there were
// any.
bool store_files_forget_crashes(const char *directory);

// Removes the files of a store, and its directory if nothing else is in it.
void store_files_remove(const char *directory);

// Fills in the paths that store_files_remove would remove. For callers that cannot build paths when
// they need them, such as a signal handler.
enum { STORE_FILES_COUNT = 8 };
void store_files_paths(const char *directory, StorePath out_paths[STORE_FILES_COUNT]);

// Flushes the data file of a store that nobody has open, and its name. ERROR_IO, ERROR_STORE_FULL.
MUST_USE Error store_files_flush(const char *directory, ErrorDetail *detail);

// Links the data of the store in `directory` into the new directory `kept`, which then is a store,
// too. Flushes both names to the disk. `with_flushed`: also links flushed.mdb and moves
// the log, which data needs that is not settled (store_settle). ERROR_IO, ERROR_STORE_FULL: nothing
// of `kept` is left.
MUST_USE Error store_files_keep(const char *directory, const char *kept, bool with_flushed,
                                ErrorDetail *detail);

// Moves the data of the store in `from` to `directory`, where it replaces the old data, and removes
// the rest of `from`. At each moment, and after a power cut, `directory` contains a complete store.
// The caller holds the lock of `directory` and has kept the old data if it is still needed.
// `removes_flushed`: also removes flushed.mdb, because the old data was not settled. ERROR_IO: the
// old data is still in place, or a name could not be flushed.
MUST_USE Error store_files_swap(const char *directory, const char *from, bool removes_flushed,
                                ErrorDetail *detail);
