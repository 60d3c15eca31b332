// What a commit that failed has left behind.

#pragma once

#include "base/error.h"
#include "kv/durable/options.h"

// Translates the code with which LMDB's commit failed. ERROR_STORE_FULL: nothing was written, and
// the next transaction may work. Any other error: the state on the disk is not known.
MUST_USE Error commit_error_of(DataFile *file, int code);
