// Backups: makes a backup of a store, restores a store from one, and compacts a store.
//
// Each function makes a copy, checks it in a separate process (store/verify.h), and only then gives
// it its final name. A signal that ends the process removes the unfinished copy (partial_guard). So
// these functions are for programs that do nothing else meanwhile. Paths are absolute.

#pragma once

#include "store/verify.h"

// Functions called before and after each long step, to show progress. Each may be NULL.
typedef struct BackupHooks {
    // `what` is "copying", "checking" or "hashing". `file` is growing to about `bytes`. NULL and 0:
    // unknown.
    void (*begin)(void *context, const char *what, const char *file, uint64_t bytes);
    void (*end)(void *context);
    void *context;
} BackupHooks;

typedef struct BackupOptions {
    const char *from;        // directory of the store; a daemon may be writing to it
    const char *to;          // directory of the backup; must not exist
    bool is_compact;         // omit unused space
    bool accepts_damage;     // keep the backup even if the store is damaged
    const char *instance_id; // the store must have this instance ID; "": any
    BackupHooks hooks;
} BackupOptions;

// Copies what is committed at the beginning, checks the copy, and writes its manifest. `out` is the
// result of the check. ERROR_CORRUPT: the store is damaged (see `out`) or unreadable, or it is
// itself a backup that is not as its manifest says. ERROR_INVALID_ARGUMENT: `to` exists, a path is
// too long, or the store is another instance (`out->is_read` is then true). Other errors: as
// store_copy. After an error, no backup is left.
MUST_USE Error backup_make(const BackupOptions *options, ErrorDetail *detail, Verified *out);

typedef struct RestoreOptions {
    const char *backup;
    const char *directory; // directory of the store; created if it does not exist
    const char *kept;      // directory to keep the old store in; must not exist
    BackupHooks hooks;
} RestoreOptions;

// Replaces a store by a copy of a backup, which must be as its manifest says, if it has one. The
// copy gets a new instance ID and has no events. `*out_is_kept` is set if there was an old store,
// which is then in `kept`. ERROR_UNAVAILABLE: a process has the store open. ERROR_CORRUPT: the
// backup is damaged, or is not as its manifest says. ERROR_INVALID_ARGUMENT: a newer tine wrote the
// manifest. ERROR_IO, ERROR_STORE_FULL. After an error, the store is unchanged.
MUST_USE Error backup_restore(const RestoreOptions *options, ErrorDetail *detail, Verified *out,
                              bool *out_is_kept);

// Rewrites the data of a store without unused space. Errors: as backup_restore.
MUST_USE Error backup_compact(const char *directory, const BackupHooks *hooks, ErrorDetail *detail,
                              Verified *out);

// The last step of backup_restore and backup_compact: replaces the store in `directory` by the copy
// `partial`. The caller holds the lock of `directory`. The old data, if there is any, is kept in
// `kept`; if `kept` is NULL, the old data is removed. Old data that cannot be settled
// (store_settle) is broken: it is kept with its flushed.mdb, or, without `kept`, not replaced.
// ERROR_IO, ERROR_STORE_FULL, ERROR_CORRUPT: the old store is still in place, unless the only
// failure was the flush of a name.
MUST_USE Error backup_replace(const char *directory, const char *partial, const char *kept,
                              ErrorDetail *detail);
