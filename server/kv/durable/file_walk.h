// Walks of data.mdb when it is opened, before LMDB reads a page of it.

#pragma once

#include "kv/durable/options.h"
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
