// What a commit that failed has left behind.

#pragma once

#include "kv/durable/options.h"
#include "report/error_detail.h"

// Translates the code with which LMDB's commit failed, and writes the cause to `detail`.
// ERROR_STORE_FULL: nothing was written, and the next transaction may work. Any other error: the
// state on the disk is not known.
MUST_USE Error commit_error(DataFile *file, int code, ErrorDetail *detail);
