// Bringing a store up to this program's format. Each step takes it from one format to the next, in
// slices of sessions, and the format is set with the last slice. The copy is flushed once, at its
// end: until the rename nobody needs it.

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
#include "store/session.h"
#include "store/session_index.h"

enum {
    MIGRATE_PATH_BYTES_MAX = PATH_BYTES_MAX + 64,
    SLICE_SESSIONS = 1000,
    KEPT_MAX = 1000, // directories of older files, tried one after the other
};

typedef struct FilePath {
    char text[MIGRATE_PATH_BYTES_MAX];
} FilePath;

static Error bring_up(const StoreOptions *options, const char *directory, uint64_t version,
                      ErrorDetail *detail);
static Error flush(const char *directory, ErrorDetail *detail);
static Error keep_old(const StoreOptions *options, FilePath *out_kept, ErrorDetail *detail);

// The store is open, so its own path fits; the names below it are ours, and short.
static FilePath path_in(const char *directory, const char *name)
{
    FilePath path;
    int size = snprintf(path.text, sizeof(path.text), "%s/%s", directory, name);
    assert(size > 0 && (size_t)size < sizeof(path.text));
    return path;
}

static Error fail(ErrorDetail *detail, const char *what, const char *path)
{
    Error error = errno == ENOSPC || errno == EDQUOT ? ERROR_STORE_FULL : ERROR_IO;
    return error_say(detail, error, "the store cannot be migrated: cannot %s %s: %s", what, path,
                     strerror(errno));
}

static void remove_copy(const char *directory)
{
    static const char *const NAMES[] = {"data.mdb", "lock.mdb", "lock.pair", "tine.lock"};
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(*NAMES); i++) {
        (void)unlink(path_in(directory, NAMES[i]).text);
    }
    (void)rmdir(directory);
}

Error migrate_copy(const StoreOptions *options, Kv *kv, uint64_t version, ErrorDetail *detail)
{
    FilePath directory = path_in(options->directory, "migrating");
    log_write(LOG_INFO, "migrating the store", "directory=%s from_format=%llu to_format=%d",
              options->directory, (unsigned long long)version, STORE_FORMAT_VERSION);
    remove_copy(directory.text);
    if (mkdir(directory.text, 0700) != 0) return fail(detail, "make", directory.text);
    FilePath path = path_in(directory.text, "data.mdb");
    int file = open(path.text, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    Error error = file < 0 ? fail(detail, "make", path.text)
                           : kv_copy(kv, file, /* is_compact= */ false, detail);
    if (file >= 0 && close(file) != 0 && !error) error = fail(detail, "close", path.text);
    if (!error) error = bring_up(options, directory.text, version, detail);
    if (!error) error = flush(directory.text, detail);
    if (error) remove_copy(directory.text);
    return error;
}

// Format 2 lists sessions that are active, archived, busy and retrying: SessionListing.
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

// What takes each session of a format to the next.
static const MigrateSession STEPS[STORE_FORMAT_VERSION] = {[1] = index_states};

// Visits the sessions after `after`, at most a slice; *out_done: these were the last.
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
        if (found && row.key.size != KEY_SESSION_BYTES) return ERROR_CORRUPT;
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
    Error error = store_open(&copy_options, detail, &store);
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
    FilePath path = path_in(directory, "data.mdb");
    int file = open(path.text, O_RDWR | O_CLOEXEC);
    if (file < 0) return fail(detail, "open", path.text);
    Error error = fsync(file) != 0 ? fail(detail, "flush", path.text) : ERROR_NONE;
    close(file);
    return error ? error : directory_flush(directory, detail);
}

Error migrate_swap(const StoreOptions *options, ErrorDetail *detail)
{
    FilePath directory = path_in(options->directory, "migrating"), kept;
    FilePath from = path_in(directory.text, "data.mdb");
    FilePath to = path_in(options->directory, "data.mdb");
    Error error = keep_old(options, &kept, detail);
    if (!error && rename(from.text, to.text) != 0) {
        error = fail(detail, "rename the copy to", to.text);
        remove_copy(kept.text);
    }
    if (!error) {
        (void)unlink(path_in(options->directory, "lock.mdb").text); // the old file's
        error = directory_flush(options->directory, detail);
    }
    remove_copy(directory.text);
    return error;
}

// Gives the old file its second name, in a directory of its own, and makes that name last.
static Error keep_old(const StoreOptions *options, FilePath *out_kept, ErrorDetail *detail)
{
    char name[64];
    snprintf(name, sizeof(name), "before-format-%d", STORE_FORMAT_VERSION);
    *out_kept = path_in(options->directory, name);
    for (int i = 2; mkdir(out_kept->text, 0700) != 0; i++) {
        if (errno != EEXIST || i > KEPT_MAX) return fail(detail, "make", out_kept->text);
        snprintf(name, sizeof(name), "before-format-%d-%d", STORE_FORMAT_VERSION, i);
        *out_kept = path_in(options->directory, name);
    }
    FilePath kept = path_in(out_kept->text, "data.mdb");
    Error error = ERROR_NONE;
    if (link(path_in(options->directory, "data.mdb").text, kept.text) != 0) {
        error = fail(detail, "keep the old store as", kept.text);
    }
    if (!error) error = directory_flush(out_kept->text, detail);
    if (!error) error = directory_flush(options->directory, detail);
    if (error) remove_copy(out_kept->text);
    return error;
}
