// Walks of data.mdb: when it is opened, before LMDB reads a page of it, and later, beside writers.

#pragma once

#include "kv/durable/options.h"
#include "kv/durable/page_walk_options.h"
#include "report/error_detail.h"

// Walks the newest state of a file that no process writes and this one does not have open. A file
// that is missing or empty is sound. ERROR_CORRUPT: it is damaged; `detail` says how often, and
// where first. ERROR_IO, ERROR_OUT_OF_MEMORY.
MUST_USE Error file_walk_unopened(const DataFileOptions *options, ErrorDetail *detail);

// Walks the state that LMDB reads in an open file, which other processes may write: a reader holds
// it meanwhile. Errors as above. ERROR_UNAVAILABLE also: no reader slot is free. What keeps a quick
// walk from reading is no error: LMDB meets it too, and reports it.
MUST_USE Error file_walk_opened(DataFile *file, const DataFileOptions *options,
                                ErrorDetail *detail);

// Returns whether all pages must be walked, because the machine may have gone down since they were
// (walk_note.h). Always false for a file that is not open for writing.
bool file_walk_is_due(const DataFile *file);

// Notes that the file is in use by a store that is used as it is: from now on a reset makes a walk
// due. The note is on the disk when this returns.
void file_walk_note_use(DataFile *file);

// Walks all pages of the newest state, which a reader holds meanwhile; any thread may write. Takes
// .found, .row, .context and .is_cancelled of `asked`. If it ends with no finding, no walk is due
// any more. Errors as page_walk; ERROR_UNAVAILABLE also: no reader slot is free.
MUST_USE Error file_walk_now(DataFile *file, const PageWalkOptions *asked, ErrorDetail *detail,
                             PageWalkResult *out);
