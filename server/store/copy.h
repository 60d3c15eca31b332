// Store copies: copies a store for a backup or for compaction, and makes a copy independent of its
// original.

#pragma once

#include "report/error_detail.h"
#include "store/store.h"

typedef struct StoreCopy {
    const char *from;    // directory of the store; a daemon may be writing to it
    const char *to;      // directory of the copy, which is created and must not exist
    bool is_compact;     // omit unused space; then the file is walked first
    bool accepts_damage; // copy a file with damaged pages, too, unless `is_compact`
} StoreCopy;

// Copies exactly what is committed at the beginning and flushes the copy to the disk. After an
// error, nothing of the copy is left.
//
// ERROR_INVALID_ARGUMENT: `to` exists, a path is too long, or `from` is not on a local file system.
// ERROR_IO: there is no store in `from`, or a file cannot be read or written. ERROR_STORE_FULL: the
// disk of `to` is full. ERROR_CORRUPT: `from` is damaged. ERROR_UNAVAILABLE: this process has
// `from` open, or all reader slots of `from` are taken. `detail` says which.
MUST_USE Error store_copy(const StoreCopy *copy, ErrorDetail *detail);

// Makes clients that watch events see a different store: removes all events, because the original
// will use their sequences for other events, and then sets a new instance ID. The store must be
// open for writing, and the caller must close it afterwards. If it is interrupted, it can be run
// again.
MUST_USE Error store_renew(Store *store, ErrorDetail *detail);

// Settles a store that was not closed before the machine went down, if nobody has it open: a reader
// would miss what only its log has. A directory that this process cannot write to is left as it is.
// Errors as store_settle.
MUST_USE Error store_settle_if_due(const char *directory, ErrorDetail *detail);

// Makes data.mdb complete without the other files, before it is renamed or linked: undoes what a
// power cut left half done, and flushes everything to the disk. The caller must hold the lock of
// the directory. ERROR_IO, ERROR_CORRUPT, ERROR_STORE_FULL.
MUST_USE Error store_settle(const char *directory, ErrorDetail *detail);
