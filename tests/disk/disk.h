// A disk that fails: fdatasync, fsync, and the writes and allocations of this process, LMDB's too,
// go through here. One program has one of these; it is linked where it is used.

#pragma once

#include <stdbool.h>
#include <stddef.h>

// DISK_FLUSH is fsync or fdatasync, DISK_FLUSH_DATA only the latter. DISK_WRITE_PART is a write of
// which half is done, without an error.
typedef enum DiskCall {
    DISK_FLUSH,
    DISK_FLUSH_DATA,
    DISK_WRITE,
    DISK_WRITE_PART,
    DISK_ALLOCATE,
} DiskCall;

// From now on such a call about a file of this name fails with `code`: the `nth`, and if
// `is_for_ever` all after it (after a write in part: these are not done at all).
typedef struct DiskFault {
    DiskCall call;
    const char *name; // "*.log": any that ends so; "*": any
    int code;
    size_t nth; // from 1
    bool is_for_ever;
} DiskFault;

void disk_fail(DiskFault fault);
void disk_fail_also(DiskFault fault); // beside the one of disk_fail
bool disk_has_failed(void);           // since disk_fail
void disk_mend(void);                 // nothing fails any more

// Flushes only fail or succeed from now on, and do nothing: for tests whose machine stays up.
void disk_flush_nothing(void);

// Remembers what a store's data.mdb and the segments of its log are on the disk: all that was
// written until now.
void disk_keep(const char *store);
// The kernel drops what it could not write: the pages are what they were at disk_keep. The meta
// pages of data.mdb stay as they are now: they may have been written. May be called again, and for
// a copy of the store.
void disk_lose_data(const char *store);
// The same for the log. A segment that was made since then has zeros.
void disk_lose_log(const char *store);
