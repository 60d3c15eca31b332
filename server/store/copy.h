// Copies of a store: for backups, and to give unused space back.

#pragma once

#include "report/error_detail.h"
#include "store/store.h"

typedef struct StoreCopy {
    const char *from; // the store's directory; a daemon may be writing to it
    const char *to;   // must not exist: it is made, and is a store of its own then
    bool is_compact;  // without what is free in the file
} StoreCopy;

// Copies what is committed when it begins, all of it and nothing half, and flushes the copy to the
// disk. When it fails, nothing of it is left.
//
// ERROR_INVALID_ARGUMENT: `to` exists, a path is too long, or `from` is not on a local file system.
// ERROR_IO: there is no store in `from`, or a file cannot be read or written. ERROR_STORE_FULL: the
// disk of `to` is full. ERROR_CORRUPT: `from` is damaged. ERROR_UNAVAILABLE: this process has
// `from` open, or all its reader slots are taken. `detail` says which.
MUST_USE Error store_copy(const StoreCopy *copy, ErrorDetail *detail);

// Makes a copy a store of its own for those who watch: with a new instance id, and without the
// events so far, whose sequences the original goes on to use. The store must be open for writing;
// to be closed after it. An interrupted one may be run again.
MUST_USE Error store_renew(Store *store, ErrorDetail *detail);

// Makes data.mdb a store by itself, before it gets another name or place: what a power cut left is
// put back, and all is on the disk. The caller has the directory's lock. ERROR_IO, ERROR_CORRUPT,
// ERROR_STORE_FULL.
MUST_USE Error store_settle(const char *directory, ErrorDetail *detail);
