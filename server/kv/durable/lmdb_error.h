// The one translation of LMDB's codes and of errno into errors, with the cause in words.

#pragma once

#include "report/error_detail.h"

// Returns the error for a code, ERROR_NONE for 0. The caller must handle MDB_NOTFOUND itself.
Error lmdb_error_of(int code);

// The same for a code that is not 0. Writes the cause to `detail` (NULL is allowed): the operation,
// the file directory/name, and what LMDB or the kernel answered:
//
//     cannot flush /x/data.mdb: Input/output error (errno 5)
//     cannot read /x/data.mdb: MDB_CORRUPTED: Located page was wrong type
Error lmdb_fail(ErrorDetail *detail, int code, const char *operation, const char *directory,
                const char *name);
