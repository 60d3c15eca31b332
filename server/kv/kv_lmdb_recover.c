// What a power cut, or the death of a process, has left of a relaxed store, before LMDB opens it:
// see kv_lmdb_flush.h.

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "kv/kv_lmdb_flush.h"
#include "kv/kv_lmdb_slot.h"

// Puts back what the newest slot says, if another run of the kernel wrote it.
static Error recover(SlotFile *slots, bool may_write, ErrorDetail *detail, bool *out_found,
                     Slot *slot, bool *out_is_set_back)
{
    *out_is_set_back = false;
    Error error = slot_read(slots, out_found, slot, detail);
    if (error || !*out_found) return error;
    *out_is_set_back = slot->is_set_back;
    if (slot->state != SLOT_FLUSHED) return ERROR_NONE;
    // The same kernel still has every page that was written: a process died, nothing is lost.
    size_t size = sizeof(slots->boot_id);
    if (*slots->boot_id && memcmp(slots->boot_id, slot->boot_id, size) == 0) return ERROR_NONE;
    return slot_restore(slots, slot, may_write, detail, out_is_set_back);
}

Error flush_recover(Kv *kv, const KvOptions *options, ErrorDetail *detail)
{
    if (options->no_sync) return ERROR_NONE;
    Error error = ERROR_NONE;
    if (!options->read_only && options->owns_directory) {
        error = slot_empty_unfinished(options->directory, detail);
    }
    SlotFile slots;
    Slot slot;
    if (!error) error = slot_open(options->directory, /* create= */ false, detail, &slots);
    if (error || slots.file < 0) return error;
    bool found, is_set_back;
    slot_boot_id(options->boot_id, slots.boot_id);
    error = recover(&slots, options->owns_directory, detail, &found, &slot, &is_set_back);
    atomic_store(&kv->is_set_back, is_set_back);
    kv->was_relaxed = found && slot.state == SLOT_FLUSHED;
    slot_close(&slots);
    return error;
}

static Error flush_data(const char *directory, ErrorDetail *detail)
{
    char path[PATH_BYTES_MAX + 16];
    snprintf(path, sizeof(path), "%s/data.mdb", directory);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0 && errno == ENOENT) return ERROR_NONE;
    int code = file < 0 || fdatasync(file) != 0 ? errno : 0;
    if (file >= 0) close(file);
    if (code == 0) return ERROR_NONE;
    return error_say(detail, kv_error_of(code), "cannot flush %s: %s", path, strerror(code));
}

Error kv_settle(const char *directory, const char *boot_id, ErrorDetail *detail)
{
    SlotFile slots;
    Slot slot;
    bool found, is_set_back;
    Error error = slot_open(directory, /* create= */ false, detail, &slots);
    if (error) return error;
    if (slots.file < 0) return flush_data(directory, detail);
    slot_boot_id(boot_id, slots.boot_id);
    error = recover(&slots, /* may_write= */ true, detail, &found, &slot, &is_set_back);
    if (!error) error = flush_data(directory, detail);
    Slot clean = {.state = SLOT_CLEAN, .is_set_back = is_set_back};
    int code = !error && found && slot.state == SLOT_FLUSHED ? slot_write(&slots, &clean) : 0;
    if (code) {
        error = error_say(detail, kv_error_of(code), "cannot write %s/flushed.mdb: %s", directory,
                          strerror(code));
    }
    slot_close(&slots);
    return error;
}
