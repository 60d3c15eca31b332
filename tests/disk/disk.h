// A disk that fails: fdatasync, fsync and the writes of this process, LMDB's too, go through here.
// One program has one of these; it is linked where it is used.

#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef enum DiskCall { DISK_FLUSH, DISK_WRITE } DiskCall;

// From now on such a call about a file of this name fails with `code`: the `nth`, and if
// `is_for_ever` all after it.
typedef struct DiskFault {
    DiskCall call;
    const char *name;
    int code;
    size_t nth; // from 1
    bool is_for_ever;
} DiskFault;

void disk_fail(DiskFault fault);
bool disk_has_failed(void); // since disk_fail
void disk_mend(void);       // nothing fails any more

// Remembers what the pages of a store's data.mdb are on the disk: all that was written until now.
void disk_keep(const char *store);
// The kernel drops what it could not write: the pages are what they were at disk_keep. The meta
// pages stay as they are now: they may have been written.
void disk_lose(const char *store);
