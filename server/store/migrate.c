// Migration. Each step goes from one format to the next, in slices of sessions. The last slice of a
// step also sets the format. The copy is flushed only once, at the end, because nobody needs it
// before the rename.

#include "store/migrate.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "os/directory.h"
#include "report/log.h"
#include "store/copy.h"
#include "store/files.h"
#include "store/session.h"
#include "store/session_index.h"

enum {
    SLICE_SESSIONS = 1000,
    KEPT_MAX = 1000, // directories of replaced stores that are tried in turn
};

static Error copy_and_migrate(Store *store, uint64_t version, ErrorDetail *detail);
static Error swap(const StoreOptions *options, ErrorDetail *detail);
static Error bring_up(const StoreOptions *options, const char *directory, uint64_t version,
                      ErrorDetail *detail);
static Error flush(const char *directory, ErrorDetail *detail);
static Error keep_old(const char *directory, StorePath *out_kept, ErrorDetail *detail);

static Error fail(ErrorDetail *detail, const char *what, const char *path)
{
    return error_say_errno(detail, errno, "the store cannot be migrated: cannot %s %s", what, path);
}

Error migrate_store(Store *store, uint64_t version, ErrorDetail *detail)
{
    Error error = copy_and_migrate(store, version, detail);
    return error ? error : store_reopen(store, swap, detail);
}

static Error copy_and_migrate(Store *store, uint64_t version, ErrorDetail *detail)
{
    const StoreOptions *options = store_options(store);
    StorePath directory = store_path_migrating(options->directory);
    log_write(LOG_INFO, "migrating the store", "directory=%s from_format=%llu to_format=%d",
              options->directory, (unsigned long long)version, STORE_FORMAT_VERSION);
    store_files_remove(directory.text);
    if (mkdir(directory.text, 0700) != 0) return fail(detail, "create", directory.text);
    StorePath path = store_path(directory.text, KV_FILE_DATA);
    int file = open(path.text, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    Error error =
        file < 0 ? fail(detail, "create", path.text) : store_write_copy(store, file, detail);
    if (file >= 0 && close(file) != 0 && !error) error = fail(detail, "close", path.text);
    if (!error) error = bring_up(options, directory.text, version, detail);
    if (!error) error = flush(directory.text, detail);
    if (error) store_files_remove(directory.text);
    return error;
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

typedef Error (*MigrateSession)(Txn *txn, Ulid id);

// The function that brings a session of a format to the next format.
static const MigrateSession STEPS[STORE_FORMAT_VERSION] = {[1] = index_states};

// Visits at most one slice of the sessions after `*after` and moves `*after`. Sets `*out_done`
// after the last session.
static Error slice_visit(Txn *txn, MigrateSession visit, Ulid *after, bool *out_done)
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
        error = visit(txn, *after);
    }
    return error;
}

static Error step(Store *store, uint64_t version, Arena *arena, ErrorDetail *detail)
{
    Ulid after = ULID_ZERO;
    bool is_done = false;
    Error error = ERROR_NONE;
    while (!error && !is_done) {
        Txn txn;
        error = txn_begin(store, /* is_write= */ true, arena, detail, &txn);
        if (error) return error;
        error = slice_visit(&txn, STEPS[version], &after, &is_done);
        if (!error && is_done) error = txn_set_format(&txn, version + 1);
        if (!error) error = txn_commit(&txn);
        txn_abort(&txn);
    }
    return error;
}

static Error bring_up(const StoreOptions *options, const char *directory, uint64_t version,
                      ErrorDetail *detail)
{
    StoreOptions copy_options = *options;
    copy_options.directory = directory;
    copy_options.is_ephemeral = true; // flushed at the end
    copy_options.format = version;
    Store *store = NULL;
    uint64_t format;
    Error error = store_attach(&copy_options, detail, &store, &format);
    if (!error) error = store_load(store, /* is_new= */ false, detail);
    Arena arena;
    arena_init(&arena, RUN_BUDGET_BYTES);
    for (; !error && version < STORE_FORMAT_VERSION; version++) {
        error = step(store, version, &arena, detail);
    }
    arena_free(&arena);
    store_close(store);
    return error;
}

static Error flush(const char *directory, ErrorDetail *detail)
{
    StorePath path = store_path(directory, KV_FILE_DATA);
    int file = open(path.text, O_RDWR | O_CLOEXEC);
    if (file < 0) return fail(detail, "open", path.text);
    Error error = fsync(file) != 0 ? fail(detail, "flush", path.text) : ERROR_NONE;
    close(file);
    return error ? error : directory_flush(directory, detail);
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
