// Recovery from a power cut.

#include "kv/durable/recovery.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kv/durable/data_file_fields.h"
#include "kv/durable/file_names.h"
#include "kv/durable/flush.h"
#include "kv/durable/flush_note.h"
#include "kv/durable/lmdb_error.h"
#include "kv/durable/lock_pair.h"
#include "kv/durable/meta_page.h"

static Error find_roots(int file, const char *directory, const FlushNote *note, ErrorDetail *detail,
                        bool *out_is_there)
{
    *out_is_there = false;
    struct stat status;
    int code = meta_page_find_roots(file, note, out_is_there);
    if (code == 0 && fstat(file, &status) != 0) code = errno;
    if (code) return lmdb_fail(detail, code, "read", directory, KV_FILE_DATA);
    // Another file than the one that was flushed is left alone.
    if (*out_is_there || status.st_ino != note->inode) return ERROR_NONE;
    return error_say(detail, ERROR_CORRUPT,
                     "%s/" KV_FILE_DATA " lacks what was flushed to it before the power went; tine "
                     "restore-backup puts a backup in its place (if you copied one over it "
                     "yourself, remove " KV_FILE_FLUSHED ")",
                     directory);
}

// Makes the note's state the state of data.mdb.
static Error restore(const FlushNotes *notes, const FlushNote *note, bool may_write,
                     ErrorDetail *detail, bool *out_is_put_back)
{
    *out_is_put_back = false;
    int file = file_at_open(notes->directory, KV_FILE_DATA, O_RDWR);
    if (file < 0 && errno == ENOENT) return ERROR_NONE; // it was removed since
    if (file < 0) return lmdb_fail(detail, errno, "open", notes->directory, KV_FILE_DATA);
    bool is_there;
    Error error = find_roots(file, notes->directory, note, detail, &is_there);
    if (!error && is_there && !may_write) {
        error = error_say(detail, ERROR_UNAVAILABLE,
                          "%s was cut off from its disk; start tined on it, or run tine check",
                          notes->directory);
    } else if (!error && is_there) {
        // lock.mdb has the numbers of newer states. If the machine did not go down, readers of
        // other processes may have it open: they will notice the new lock.mdb, and open anew.
        error = lock_pair_remove_lock(notes->directory, detail);
        *out_is_put_back = !error;
        int code = error ? 0 : meta_page_put_back(file, note);
        if (code) error = lmdb_fail(detail, code, "write", notes->directory, KV_FILE_DATA);
    }
    close(file);
    return error;
}

// The same kernel still has every page that was written: only a process died.
static bool is_of_this_boot(const FlushNotes *notes, const FlushNote *note)
{
    size_t size = sizeof(notes->boot_id);
    return *notes->boot_id && memcmp(notes->boot_id, note->boot_id, size) == 0;
}

// Puts back the state of the newest note if another run of the kernel wrote it.
static Error put_in_order(FlushNotes *notes, bool may_write, ErrorDetail *detail, bool *out_found,
                          FlushNote *note, bool *out_is_set_back)
{
    *out_is_set_back = false;
    Error error = flush_note_read(notes, out_found, note, detail);
    if (error || !*out_found) return error;
    *out_is_set_back = note->is_set_back;
    if (note->state != FLUSH_NOTE_FLUSHED) return ERROR_NONE;
    if (is_of_this_boot(notes, note)) return ERROR_NONE;
    bool is_put_back;
    error = restore(notes, note, may_write, detail, &is_put_back);
    // What the log has of a relaxed store may end before what was acknowledged.
    if (is_put_back && note->is_relaxed) *out_is_set_back = true;
    return error;
}

static Error empty_unfinished(const char *directory, ErrorDetail *detail)
{
    int file = file_at_open(directory, KV_FILE_DATA, O_RDWR);
    if (file < 0) return ERROR_NONE; // LMDB will say what is wrong with it
    bool is_emptied = !meta_page_is_unfinished(file) || ftruncate(file, 0) == 0;
    Error error =
        is_emptied ? ERROR_NONE : lmdb_fail(detail, errno, "empty", directory, KV_FILE_DATA);
    close(file);
    return error;
}

Error recovery_run(DataFile *file, const DataFileOptions *options, ErrorDetail *detail)
{
    if (options->no_sync && options->read_only) return ERROR_NONE;
    Error error = ERROR_NONE;
    if (!options->read_only && options->owns_directory) {
        error = empty_unfinished(options->directory, detail);
    }
    FlushNotes notes;
    FlushNote note;
    if (!error) error = flush_note_open(options->directory, /* create= */ false, detail, &notes);
    if (error || notes.file < 0) return error;
    bool found, is_set_back;
    flush_note_boot_id(options->boot_id, notes.boot_id);
    error = put_in_order(&notes, options->owns_directory, detail, &found, &note, &is_set_back);
    atomic_store(&file->is_set_back, is_set_back);
    // What is written without flushes must not be taken back to the flush before it.
    if (!error && options->no_sync && found) {
        FlushNote clean = {.state = FLUSH_NOTE_CLEAN, .is_set_back = is_set_back};
        int code = flush_note_write(&notes, &clean);
        if (code) error = lmdb_fail(detail, code, "write", options->directory, KV_FILE_FLUSHED);
    }
    flush_note_close(&notes);
    return error;
}

bool recovery_is_due(const char *directory, const char *boot_id)
{
    FlushNotes notes;
    FlushNote note;
    bool found = false;
    if (flush_note_open(directory, /* create= */ false, NULL, &notes) || notes.file < 0) {
        return false;
    }
    flush_note_boot_id(boot_id, notes.boot_id);
    bool is_read = flush_note_read(&notes, &found, &note, NULL) == ERROR_NONE && found;
    bool is_due = is_read && note.state == FLUSH_NOTE_FLUSHED && !is_of_this_boot(&notes, &note);
    flush_note_close(&notes);
    return is_due;
}

bool recovery_is_set_back(const DataFile *file)
{
    return atomic_load(&file->is_set_back);
}

void recovery_forget_set_back(DataFile *file, const char *directory)
{
    atomic_store(&file->is_set_back, false);
    if (file->flusher) { // a flush notes it, and has what was committed until now
        flush_again(file);
        return;
    }
    ErrorDetail detail;
    FlushNotes notes;
    FlushNote note;
    bool found;
    if (flush_note_open(directory, /* create= */ false, &detail, &notes) || notes.file < 0) return;
    // If this fails, the next open says once more that the store was set back.
    if (flush_note_read(&notes, &found, &note, &detail) == ERROR_NONE && found) {
        note.is_set_back = false;
        (void)flush_note_write(&notes, &note);
    }
    flush_note_close(&notes);
}
