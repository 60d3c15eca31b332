// The translation of LMDB's codes, which are negative, and of errno.

#include "kv/durable/lmdb_error.h"

#include <lmdb.h>

Error lmdb_error_of(int code)
{
    switch (code) {
    case MDB_MAP_FULL: return ERROR_STORE_FULL;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
    case MDB_VERSION_MISMATCH:
    case MDB_INCOMPATIBLE:
        return ERROR_CORRUPT; // (the last: a table's name is taken by a plain key)
    case MDB_READERS_FULL:
    case MDB_MAP_RESIZED: return ERROR_UNAVAILABLE;
    default: return error_of_errno(code);
    }
}

Error lmdb_fail(ErrorDetail *detail, int code, const char *operation, const char *directory,
                const char *name)
{
    if (code > 0)
        return error_say_errno(detail, code, "cannot %s %s/%s", operation, directory, name);
    return error_say(detail, lmdb_error_of(code), "cannot %s %s/%s: %s", operation, directory, name,
                     mdb_strerror(code));
}
