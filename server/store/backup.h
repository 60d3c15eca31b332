// Backups: makes one, puts one in the place of a store, and rewrites a store without unused space.
//
// Each makes a copy, checks it in a process of its own (store/verify.h), and only then gives it its
// name. A signal that ends the process removes the copy (partial_guard), so these functions are for
// programs that do nothing else meanwhile. Paths are absolute.

#pragma once

#include "store/verify.h"

// Called before and after each long step, for those who show progress. May be all NULL.
typedef struct BackupHooks {
    // `what` is "copying" or "checking". `file` grows up to `bytes`; NULL and 0: not known.
    void (*begin)(void *context, const char *what, const char *file, uint64_t bytes);
    void (*end)(void *context);
    void *context;
} BackupHooks;

typedef struct BackupOptions {
    const char *from;        // the store's directory; a daemon may be writing to it
    const char *to;          // the backup; must not exist
    bool is_compact;         // leave out what is free in the file
    bool accepts_damage;     // make one of a damaged store as well
    const char *instance_id; // that the store must have; "": any
    BackupHooks hooks;
} BackupOptions;

// Copies what is committed when it begins, and checks the copy. `out` says what was found.
// ERROR_CORRUPT: the store is damaged (`out` says how) or unreadable. ERROR_INVALID_ARGUMENT: `to`
// exists, a path is too long, or it is another instance (out->is_read is true then). Others as
// store_copy's. No backup is left when it fails.
MUST_USE Error backup_make(const BackupOptions *options, ErrorDetail *detail, Verified *out);

typedef struct RestoreOptions {
    const char *backup;
    const char *directory; // the store's; made if it is missing
    const char *kept;      // where the old store is kept; must not exist
    BackupHooks hooks;
} RestoreOptions;

// Puts a copy of a backup in the place of a store. It is another instance, without events.
// `out_is_kept`: there was an old store, and it is in `kept`. ERROR_UNAVAILABLE: a process has the
// store. ERROR_CORRUPT: the backup is damaged. ERROR_IO, ERROR_STORE_FULL. The store is as it was
// when it fails.
MUST_USE Error backup_restore(const RestoreOptions *options, ErrorDetail *detail, Verified *out,
                              bool *out_is_kept);

// Rewrites a store's data without unused space. Errors as backup_restore's.
MUST_USE Error backup_compact(const char *directory, const BackupHooks *hooks, ErrorDetail *detail,
                              Verified *out);

// The last step of the two above: puts the copy `partial` in the place of the store in `directory`,
// whose lock the caller holds. `kept`: where the old data goes, if there is any; NULL: it is
// removed. Old data that cannot be settled is broken: it is kept with its flushed.mdb, or, without
// `kept`, not replaced. ERROR_IO, ERROR_STORE_FULL, ERROR_CORRUPT: the old store is in its place,
// unless only a name could not be flushed.
MUST_USE Error backup_replace(const char *directory, const char *partial, const char *kept,
                              ErrorDetail *detail);
