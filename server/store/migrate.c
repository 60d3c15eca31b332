// Migration. All rows are copied into a new file (migrate_rows.h). A store of format 1 then gets
// the rows that it lacks, in slices of sessions. The copy is flushed only once, at the end, because
// nobody needs it before the rename.

#include "store/migrate.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/limits.h"
#include "os/directory.h"
#include "report/log.h"
#include "store/files.h"
#include "store/migrate_rows.h"
#include "store/session.h"
#include "store/session_index.h"

enum {
    SLICE_SESSIONS = 1000,
    KEPT_MAX = 1000, // directories of replaced stores that are tried in turn
};

static Error make_copy(Store *store, uint64_t version, ErrorDetail *detail);
static Error check_space(Store *store, uint64_t version, ErrorDetail *detail);
static Error fill_copy(Store *store, const char *directory, uint64_t version, ErrorDetail *detail);
static Error swap(const StoreOptions *options, ErrorDetail *detail);
static Error keep_old(const char *directory, StorePath *out_kept, ErrorDetail *detail);

static Error fail(ErrorDetail *detail, const char *what, const char *path)
{
    return error_say_errno(detail, errno, "the store cannot be migrated: cannot %s %s", what, path);
}

Error migrate_store(Store *store, uint64_t version, ErrorDetail *detail)
{
    Error error = make_copy(store, version, detail);
    return error ? error : store_reopen(store, swap, detail);
}

static void tell_migrating(const Store *store)
{
    if (store_options(store)->migrating) store_options(store)->migrating();
}

static Error make_copy(Store *store, uint64_t version, ErrorDetail *detail)
{
    StorePath directory = store_path_migrating(store_options(store)->directory);
    store_files_remove(directory.text);
    Error error = check_space(store, version, detail);
    if (error) return error;
    if (mkdir(directory.text, 0700) != 0) return fail(detail, "create", directory.text);
    tell_migrating(store);
    error = fill_copy(store, directory.text, version, detail);
    tell_migrating(store);
    if (!error) error = store_files_flush(directory.text, detail);
    if (error) store_files_remove(directory.text);
    return error;
}

// The copy has no unused pages. Its rows are a little longer, and in fuller pages.
static Error check_space(Store *store, uint64_t version, ErrorDetail *detail)
{
    const char *directory = store_options(store)->directory;
    KvStats stats;
    struct statvfs disk;
    Error error = store_stats(store, detail, &stats);
    if (error) return error;
    uint64_t used = stats.used_bytes - stats.free_bytes;
    uint64_t needed_mib = ((used + used / 8) >> 20) + 1;
    if (statvfs(directory, &disk) != 0) return fail(detail, "measure the disk of", directory);
    uint64_t free_mib = (uint64_t)disk.f_bavail * disk.f_frsize >> 20;
    log_write(LOG_INFO, "migrating the store",
              "directory=\"%s\" from_format=%llu to_format=%d needed_mib=%llu free_mib=%llu",
              directory, (unsigned long long)version, STORE_FORMAT_VERSION,
              (unsigned long long)needed_mib, (unsigned long long)free_mib);
    if (free_mib >= needed_mib) return ERROR_NONE;
    return error_say(detail, ERROR_STORE_FULL,
                     "the store cannot be migrated: its copy needs %llu MiB of free space in %s, "
                     "and there are %llu",
                     (unsigned long long)needed_mib, directory, (unsigned long long)free_mib);
}

// Format 2 adds rows for active, archived, busy and retrying sessions: see SessionListing.
static Error index_states(Txn *txn, Ulid id)
{
    Session *settings, *head;
    Error error = session_settings(txn, id, &settings);
    if (!error) error = session_head(txn, id, &head);
    if (error) return error;
    return session_index_update(txn, id, (SessionIndexed){.settings = NULL},
                                (SessionIndexed){settings, head->status});
}

// Indexes at most one slice of the sessions after `*after` and moves `*after`. Sets `*out_done`
// after the last session.
static Error index_slice(Txn *txn, Ulid *after, bool *out_done)
{
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    Error error = kv_cursor_open(txn->kv, TABLE_SESSIONS, &cursor);
    for (size_t i = 0; !error && i < SLICE_SESSIONS; i++) {
        Key key = key_of_id(ulid_next(*after));
        KvRow row;
        bool found;
        error = kv_seek(cursor, key_slice(&key), &found, &row);
        if (error) return error;
        if (found && row.key.size != KEY_SESSION_BYTES) return kv_refuse_key(cursor, row.key);
        *out_done = !found;
        if (!found) return ERROR_NONE;
        *after = key_id_at(row.key, 0);
        arena_reset(txn->arena, RUN_BUDGET_BYTES);
        error = index_states(txn, *after);
    }
    return error;
}

static Error index_sessions(Store *store, ErrorDetail *detail)
{
    Ulid after = ULID_ZERO;
    bool is_done = false;
    Error error = ERROR_NONE;
    Arena arena;
    arena_init(&arena, RUN_BUDGET_BYTES);
    while (!error && !is_done) {
        Txn txn;
        error = txn_begin(store, /* is_write= */ true, &arena, detail, &txn);
        if (error) break;
        error = index_slice(&txn, &after, &is_done);
        if (!error) error = txn_commit(&txn);
        txn_abort(&txn);
    }
    arena_free(&arena);
    return error;
}

static Error fill_copy(Store *store, const char *directory, uint64_t version, ErrorDetail *detail)
{
    StoreOptions options = *store_options(store);
    options.directory = directory;
    options.is_ephemeral = true; // flushed at the end
    Store *copy = NULL;
    uint64_t format;
    Error error = store_attach(&options, detail, &copy, &format);
    if (!error) error = migrate_rows(store, copy, detail);
    if (!error) error = store_load(copy, /* is_new= */ false, detail);
    if (!error && version < 2) error = index_sessions(copy, detail);
    store_close(copy);
    return error;
}

static Error swap(const StoreOptions *options, ErrorDetail *detail)
{
    StorePath copy = store_path_migrating(options->directory), kept;
    Error error = keep_old(options->directory, &kept, detail);
    if (!error) {
        error =
            store_files_swap(options->directory, copy.text, /* removes_flushed= */ false, detail);
        if (error && store_files_bytes(copy.text) > 0) store_files_remove(kept.text);
    }
    store_files_remove(copy.text);
    if (!error || !detail) return error;
    return error_say(detail, error, "the store cannot be migrated: %s", detail->text);
}

// Keeps the old store in the first directory whose name is free.
static Error keep_old(const char *directory, StorePath *out_kept, ErrorDetail *detail)
{
    struct stat found;
    int number = 1;
    do {
        *out_kept = store_path_before_format(directory, STORE_FORMAT_VERSION, number);
    } while (lstat(out_kept->text, &found) == 0 && number++ < KEPT_MAX);
    return store_files_keep(directory, out_kept->text, /* with_flushed= */ false, detail);
}
