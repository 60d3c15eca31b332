// The translation of LMDB's codes, which are negative, and of errno.

#include "kv/durable/lmdb_error.h"

#include <errno.h>
#include <lmdb.h>
#include <stdio.h>

Error lmdb_error_of(int code)
{
    switch (code) {
    case 0: return ERROR_NONE;
    case MDB_MAP_FULL:
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return ERROR_STORE_FULL;
    case ENOMEM: return ERROR_OUT_OF_MEMORY;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
    case MDB_VERSION_MISMATCH:
    case MDB_INCOMPATIBLE:
        return ERROR_CORRUPT; // (the last: a table's name is taken by a plain key)
    case MDB_READERS_FULL:
    case MDB_MAP_RESIZED: return ERROR_UNAVAILABLE;
    default: return ERROR_IO;
    }
}

Error lmdb_fail(ErrorDetail *detail, int code, const char *operation, const char *directory,
                const char *name)
{
    char number[24] = "";
    if (code > 0) snprintf(number, sizeof(number), " (errno %d)", code);
    return error_say(detail, lmdb_error_of(code), "cannot %s %s/%s: %s%s", operation, directory,
                     name, mdb_strerror(code), number);
}
