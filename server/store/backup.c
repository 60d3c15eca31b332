// Backups. All three functions copy, check the copy, and then give it its name.

#include "store/backup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/directory.h"
#include "store/copy.h"
#include "store/manifest.h"
#include "store/open.h"
#include "store/partial.h"

static const char LOCK_ADVICE[] = "stop it first, for this changes its store";

static void hook_begin(const BackupHooks *hooks, const char *what, const char *file, uint64_t bytes)
{
    if (hooks->begin) hooks->begin(hooks->context, what, file, bytes);
}

static void hook_end(const BackupHooks *hooks)
{
    if (hooks->end) hooks->end(hooks->context);
}

static Error copy_make(const StoreCopy *copy, uint64_t bytes, const BackupHooks *hooks,
                       ErrorDetail *detail)
{
    partial_guard(copy->to);
    hook_begin(hooks, "copying", store_path(copy->to, KV_FILE_DATA).text, bytes);
    Error error = store_copy(copy, detail);
    hook_end(hooks);
    if (error) partial_guard(NULL);
    return error;
}

static Error copy_check(const char *copy, const BackupHooks *hooks, ErrorDetail *detail,
                        Verified *out)
{
    VerifyOptions options = {.directory = copy, .is_copy = true};
    Verification verification;
    Error error = verify_begin(&options, detail, &verification);
    if (!error) {
        hook_begin(hooks, "checking", NULL, 0);
        verify_end(&verification, out);
        hook_end(hooks);
    }
    partial_clean(copy);
    return error;
}

// Writes the manifest of a complete copy that nobody opens any more.
static Error copy_describe(const char *copy, const Verified *verified, const BackupHooks *hooks,
                           ErrorDetail *detail)
{
    Clock clock = clock_system();
    Manifest manifest = {
        .is_known = verified->is_read,
        .instance_id = verified->instance_id,
        .event_sequence = verified->event_sequence,
        .log_position = verified->log_position,
        .time_ms = clock_now_ms(&clock),
    };
    hook_begin(hooks, "hashing", NULL, 0);
    Error error = manifest_write(copy, &manifest, detail);
    hook_end(hooks);
    return error;
}

// Compares a backup that is about to be copied with its manifest.
static Error source_check(const char *backup, const BackupHooks *hooks, ErrorDetail *detail)
{
    if (!manifest_exists(backup)) return ERROR_NONE;
    bool found;
    hook_begin(hooks, "hashing", NULL, 0);
    Error error = manifest_verify(backup, detail, &found);
    hook_end(hooks);
    return error;
}

static Error backup_name(const char *partial, const char *to, ErrorDetail *detail)
{
    if (rename(partial, to) != 0) {
        return error_say_errno(detail, errno, "cannot rename the backup to %s", to);
    }
    partial_guard(NULL);
    return directory_flush_above(to, detail);
}

static Error backup_judge(const BackupOptions *options, const Verified *verified,
                          ErrorDetail *detail)
{
    if (!verified_is_clean(verified) && !options->accepts_damage) {
        return verified_say(verified, options->from, detail);
    }
    bool is_other = verified->is_read && *options->instance_id &&
                    strcmp(verified->instance_id, options->instance_id) != 0;
    if (!is_other) return ERROR_NONE;
    return error_say(detail, ERROR_INVALID_ARGUMENT,
                     "the store in %s does not have the instance ID %s", options->from,
                     options->instance_id);
}

Error backup_make(const BackupOptions *options, ErrorDetail *detail, Verified *out)
{
    StorePath partial;
    *out = (Verified){.is_read = false};
    if (access(options->to, F_OK) == 0) {
        return error_say(
            detail, ERROR_INVALID_ARGUMENT,
            "%s already exists; choose another path, because a backup never replaces anything",
            options->to);
    }
    Error error = partial_path(options->to, detail, &partial);
    if (!error && !options->accepts_damage) {
        error = source_check(options->from, &options->hooks, detail);
    }
    if (error) return error;
    StoreCopy copy = {
        .from = options->from,
        .to = partial.text,
        .is_compact = options->is_compact,
        .accepts_damage = options->accepts_damage,
    };
    error = store_settle_if_due(options->from, detail);
    if (error && !options->accepts_damage) return error;
    error = copy_make(&copy, store_files_bytes(options->from), &options->hooks, detail);
    if (error) return error;
    error = copy_check(partial.text, &options->hooks, detail, out);
    if (!error) error = backup_judge(options, out, detail);
    if (!error) error = copy_describe(partial.text, out, &options->hooks, detail);
    if (!error) error = backup_name(partial.text, options->to, detail);
    if (error) partial_remove(partial.text);
    return error;
}

Error backup_replace(const char *directory, const char *partial, const char *kept,
                     ErrorDetail *detail)
{
    partial_clean(partial);
    Error settled = store_settle(directory, detail);
    if (settled && !kept) return settled;
    if (kept && !store_files_exist(directory)) kept = NULL;
    Error error = kept ? store_files_keep(directory, kept, settled, detail) : ERROR_NONE;
    if (error) return error;
    error = manifest_remove(directory, detail);
    if (!error) error = store_files_swap(directory, partial, settled, detail);
    bool is_swapped = store_files_bytes(partial) == 0;
    if (kept && !is_swapped) store_files_remove(kept);
    if (is_swapped) partial_guard(NULL);
    return error;
}

// Opens the copy once, to give it a new instance ID and remove its events.
static Error renew(const char *partial, ErrorDetail *detail)
{
    StoreOptions options = {.directory = partial, .is_ephemeral = true};
    Store *store = NULL;
    Error error = store_open(&options, detail, &store);
    if (!error) error = store_renew(store, detail);
    store_close(store);
    return error ? error : store_files_flush(partial, detail);
}

static Error restore_locked(const RestoreOptions *options, ErrorDetail *detail, Verified *out,
                            bool *out_is_kept)
{
    StorePath partial;
    bool has_old = store_files_bytes(options->directory) > 0;
    partial_remove_stale(options->directory, "restore");
    Error error = partial_path(store_path(options->directory, "restore").text, detail, &partial);
    if (error) return error;
    error = source_check(options->backup, &options->hooks, detail);
    if (error) return error;
    StoreCopy copy = {.from = options->backup, .to = partial.text};
    error = copy_make(&copy, store_files_bytes(options->backup), &options->hooks, detail);
    if (error) return error;
    error = copy_check(partial.text, &options->hooks, detail, out);
    if (!error && !verified_is_clean(out)) error = verified_say(out, options->backup, detail);
    if (!error) error = renew(partial.text, detail);
    if (!error) error = backup_replace(options->directory, partial.text, options->kept, detail);
    if (error) partial_remove(partial.text);
    *out_is_kept = !error && has_old;
    return error;
}

Error backup_restore(const RestoreOptions *options, ErrorDetail *detail, Verified *out,
                     bool *out_is_kept)
{
    StoreLock lock;
    *out = (Verified){.is_read = false};
    *out_is_kept = false;
    Error error = directory_make(options->directory, detail);
    if (!error) error = store_files_lock(options->directory, LOCK_ADVICE, detail, &lock);
    if (error) return error;
    error = restore_locked(options, detail, out, out_is_kept);
    store_files_unlock(&lock);
    return error;
}

static Error compact_locked(const char *directory, const BackupHooks *hooks, ErrorDetail *detail,
                            Verified *out)
{
    StorePath partial;
    partial_remove_stale(directory, "compact");
    Error error = partial_path(store_path(directory, "compact").text, detail, &partial);
    if (error) return error;
    StoreCopy copy = {.from = directory, .to = partial.text, .is_compact = true};
    error = copy_make(&copy, 0, hooks, detail);
    if (error) return error;
    error = copy_check(partial.text, hooks, detail, out);
    if (!error && !verified_is_clean(out)) error = verified_say(out, directory, detail);
    if (!error) error = backup_replace(directory, partial.text, NULL, detail);
    if (error) partial_remove(partial.text);
    return error;
}

Error backup_compact(const char *directory, const BackupHooks *hooks, ErrorDetail *detail,
                     Verified *out)
{
    StoreLock lock;
    *out = (Verified){.is_read = false};
    Error error = store_files_lock(directory, LOCK_ADVICE, detail, &lock);
    if (error) return error;
    error = compact_locked(directory, hooks, detail, out);
    store_files_unlock(&lock);
    return error;
}
