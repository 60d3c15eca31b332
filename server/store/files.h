// The files of a store: their names, and a store as a set of files that is locked, measured, moved
// and removed.
//
// A store's directory holds the files of kv/durable/file_names.h, the lock below, and for a time: a
// copy in the making (store/partial.h), a migration (store/migrate.h), and stores that were
// replaced.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/limits.h"
#include "kv/durable/file_names.h"
#include "report/error_detail.h"

#define STORE_FILE_LOCK "tine.lock" // held by the process that has the store open for writing

enum { STORE_PATH_BYTES_MAX = PATH_BYTES_MAX + 64 }; // a directory and our names below it

typedef struct StorePath {
    char text[STORE_PATH_BYTES_MAX];
} StorePath;

// Joins a directory, whose path is shorter than PATH_BYTES_MAX, and one of our names.
StorePath store_path(const char *directory, const char *name);

// Where a migration makes its copy, and where the `number`th store that a migration to `format`
// replaced is kept (from 1).
StorePath store_path_migrating(const char *directory);
StorePath store_path_before_format(const char *directory, int format, int number);

// Returns whether there is a store in `directory`, whatever state it is in.
bool store_files_exist(const char *directory);

// The bytes of a store's data. 0: there is no store in `directory`.
uint64_t store_files_bytes(const char *directory);

// Takes a store's lock. The caller closes `*out_descriptor` to give it back. ERROR_UNAVAILABLE:
// another process has it; `detail` names it, and ends with `advice`. ERROR_IO.
MUST_USE Error store_files_lock(const char *directory, const char *advice, ErrorDetail *detail,
                                int *out_descriptor);

// Removes what opening a store has left beside its data. Nobody may have it open.
void store_files_clean(const char *directory);

// Removes a store and its directory. Other files in it stay, and then the directory does.
void store_files_remove(const char *directory);

// The paths that store_files_remove removes from a directory, for a caller that cannot build them
// when it needs them, such as a signal handler.
enum { STORE_FILES_COUNT = 5 };
void store_files_paths(const char *directory, StorePath out_paths[STORE_FILES_COUNT]);

// Gives the data of the store in `directory` a second name, in the new directory `kept`, which is a
// store of its own then. Both names are on the disk when it returns. `with_flushed`: also its
// flushed.mdb, which data that is not settled (store_settle) needs. ERROR_IO, ERROR_STORE_FULL:
// nothing of `kept` is left.
MUST_USE Error store_files_keep(const char *directory, const char *kept, bool with_flushed,
                                ErrorDetail *detail);

// Puts the data of the store in `from` in the place of that in `directory`, and removes the rest of
// `from`. At each moment, and after a power cut, there is a whole store in `directory`. The caller
// holds the lock of `directory`, and has kept the old data if it is wanted. `removes_flushed`: the
// old data was not settled, so its flushed.mdb goes as well. ERROR_IO: the old data is still in its
// place, or a name could not be flushed.
MUST_USE Error store_files_swap(const char *directory, const char *from, bool removes_flushed,
                                ErrorDetail *detail);
