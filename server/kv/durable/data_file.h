// The store's files as LMDB opens them: data.mdb with its map, and lock.mdb.

#pragma once

#include "kv/durable/options.h"
#include "report/error_detail.h"

// Opens the files, after recovery. Before the first write the caller starts the flusher
// (flush_start). The caller closes `*out_file` with data_file_close. `detail` says what failed.
// ERROR_UNAVAILABLE: this process has the file open already (a second open would drop its locks),
// or as recovery_run and lock_pair.h. ERROR_IO: a file cannot be made or opened, or another process
// has it open and lock.mdb is on a file system that is read-only here. ERROR_CORRUPT: not a file of
// LMDB's. ERROR_INVALID_ARGUMENT: not on a local file system. ERROR_STORE_FULL,
// ERROR_OUT_OF_MEMORY.
MUST_USE Error data_file_open(const DataFileOptions *options, ErrorDetail *detail,
                              DataFile **out_file);

// Closes the files; all that was committed is on the disk then. No transaction may be open. In a
// child of the process that opened them it only frees memory. NULL is allowed.
void data_file_close(DataFile *file);

// Numbers by which another process can tell that it has the same files open.
typedef struct DataFileIds {
    uint64_t device, data_inode, lock_inode;
    uint64_t map_bytes;
} DataFileIds;

void data_file_ids(const DataFile *file, DataFileIds *out);

// Returns whether this process has either of the two files open.
bool data_file_is_open_here(const DataFileIds *ids);

// Returns whether a read transaction was refused because the writer, of another process, has a
// larger map. Closing the file and opening it with a larger map mends it.
bool data_file_is_outgrown(const DataFile *file);

// Writes the last committed state to `to`, an empty file that is open for writing. The caller
// flushes it. Any process may write to the store meanwhile. `is_compact` leaves out free pages.
// ERROR_STORE_FULL: the disk of `to` is full. ERROR_IO, ERROR_CORRUPT. ERROR_UNAVAILABLE: the store
// was opened before a fork, or no reader slot is free. `detail` says which.
MUST_USE Error data_file_copy(DataFile *file, int to, bool is_compact, ErrorDetail *detail);
