// lock.pair: which lock.mdb belongs to which data.mdb.
//
// lock.mdb holds more than locks: it has the number of the last commit, and LMDB believes that
// number as long as any process has the file open, such as a reader that never ends. A data.mdb
// that is moved in meanwhile (a backup put back by hand) has other numbers: its first commit would
// go to the wrong meta page and be lost. So the owner of the directory notes in lock.pair which two
// files belong together, and has lock.mdb made anew if they do not. (The inode of a file that
// somebody has open is not given to another file.)

#pragma once

#include "kv/durable/file_at.h"
#include "report/error_detail.h"

// Returns whether another process has the store open. Sets `*out_code` to an errno if that cannot
// be found out, else to 0. This process must not have either file open.
MUST_USE bool lock_pair_is_shared(const char *directory, int *out_code);

// Removes lock.mdb, so that LMDB makes a new one. A reader with a slot in the old file is not seen
// by a writer with the new one, which would reuse pages that the reader needs; so this waits until
// nobody reads. ERROR_UNAVAILABLE: after READERS_WAIT_MS_MAX somebody still reads (`detail` says
// who), and nothing was removed. ERROR_IO, ERROR_CORRUPT. This process must not have either file
// open.
MUST_USE Error lock_pair_remove_lock(const char *directory, ErrorDetail *detail);

// Removes a lock.mdb that belongs to another data.mdb. Call it before LMDB opens the files. Errors
// as above.
MUST_USE Error lock_pair_prepare(const char *directory, ErrorDetail *detail);

// Notes the two files. Call it after LMDB opened them. If this fails, the next open only makes a
// new lock.mdb.
void lock_pair_note(const char *directory, FileId data, FileId lock);
