// Which lock.mdb belongs to which data.mdb.
//
// lock.mdb holds more than locks: the number of the last commit, which LMDB believes as long as any
// process has the file open. A reader of another process may have it open for ever. A data.mdb that
// is moved in meanwhile (a backup put back by hand) counts its commits otherwise, and the first one
// would go to the wrong meta page, and be lost. So the owner of the directory notes in lock.pair
// which files belong together, and where they do not, lock.mdb is made anew. (The inode of a file
// that somebody still has open is given to no other.)

#pragma once

#include "kv/kv_lmdb.h"
#include "report/error_detail.h"

// Whether some process has the store open. `*out_code`: why that is not known, as errno says it; 0:
// it is. This process has none of the files open.
MUST_USE bool pair_is_lock_shared(const char *directory, int *out_code);

// Removes lock.mdb, so that LMDB makes it anew. Whoever reads by the old one is not seen by whoever
// writes by the new one, who would use the pages again under him: so it waits until nobody does.
// ERROR_UNAVAILABLE: after READERS_WAIT_MS_MAX somebody (`detail` says who) still does; nothing was
// removed. This process has none of the files open. ERROR_IO, ERROR_CORRUPT.
MUST_USE Error pair_remove_lock(const char *directory, ErrorDetail *detail);

// Before LMDB opens the files: removes a lock.mdb that is of another data.mdb. Errors as above.
MUST_USE Error pair_prepare(const char *directory, ErrorDetail *detail);

// After it did. What cannot be noted costs the next opening a new lock.mdb, no more.
void pair_note(const char *directory, KvFileId data, KvFileId lock);
