// Copies the whole file while others write to it.
//
// LMDB holds the writer's lock for as long as it takes to copy the two meta pages, and a reader's
// snapshot for the rest: no page of it is used again meanwhile, so the file may grow.

#include "kv/kv_lmdb.h"

Error kv_copy(Kv *kv, int file, bool is_compact, ErrorDetail *detail)
{
    if (kv_is_of_parent(kv)) {
        return error_say(detail, ERROR_UNAVAILABLE, "the store was opened before a fork");
    }
    int code = mdb_env_copyfd2(kv->env, file, is_compact ? MDB_CP_COMPACT : 0);
    if (code == 0) return ERROR_NONE;
    if (code == MDB_INCOMPATIBLE && is_compact) {
        return error_say(detail, ERROR_CORRUPT,
                         "the store cannot be compacted: some of its pages belong to nothing");
    }
    return error_say(detail, kv_error_of(code), "the store cannot be copied: %s",
                     mdb_strerror(code));
}
