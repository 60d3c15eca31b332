// flushed.mdb: two notes that are written in turn.

#include "kv/durable/flush_note.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kv/durable/file_at.h"
#include "kv/durable/file_names.h"
#include "kv/durable/lmdb_error.h"
#include "os/directory.h"

static const uint64_t NOTE_MAGIC = UINT64_C(0x3148534c46454e54); // "TNEFLSH1"
_Static_assert(sizeof(FlushNote) <= FLUSH_NOTE_PAGE_BYTES, "a note fits its page");

void flush_note_boot_id(const char *boot_id, char out[BOOT_ID_BYTES])
{
    memset(out, 0, BOOT_ID_BYTES);
    if (boot_id) {
        snprintf(out, BOOT_ID_BYTES, "%s", boot_id);
        return;
    }
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    if (read(file, out, BOOT_ID_BYTES - 1) < 0) memset(out, 0, BOOT_ID_BYTES);
    close(file);
}

// Returns whether a note was ever written. A file without notes may lack its name on the disk,
// because the process that made it may have failed.
static bool is_used(int file)
{
    static const uint8_t ZEROS[FLUSH_NOTE_COUNT * FLUSH_NOTE_PAGE_BYTES];
    uint8_t bytes[sizeof(ZEROS)];
    return !file_at_read(file, bytes, sizeof(bytes), 0) || memcmp(bytes, ZEROS, sizeof(ZEROS)) != 0;
}

static Error fail(ErrorDetail *detail, const char *operation, const char *directory)
{
    return lmdb_fail(detail, errno, operation, directory, KV_FILE_FLUSHED);
}

// Makes both pages of zeros, and flushes them and the file's name: from then on pages are only
// written over.
static Error make_file(const char *directory, ErrorDetail *detail, int *out_file)
{
    static const uint8_t ZEROS[FLUSH_NOTE_COUNT * FLUSH_NOTE_PAGE_BYTES];
    int file = file_at_open(directory, KV_FILE_FLUSHED, O_RDWR | O_CREAT);
    if (file < 0) return fail(detail, "make", directory);
    bool is_made = file_at_write(file, ZEROS, sizeof(ZEROS), 0) && fsync(file) == 0;
    Error error = is_made ? directory_flush(directory, detail) : fail(detail, "make", directory);
    if (error) {
        close(file);
        return error;
    }
    *out_file = file;
    return ERROR_NONE;
}

Error flush_note_open(const char *directory, bool create, ErrorDetail *detail, FlushNotes *out)
{
    *out = (FlushNotes){.directory = directory};
    out->file = file_at_open(directory, KV_FILE_FLUSHED, O_RDWR);
    if (out->file < 0 && errno != ENOENT) {
        out->file = file_at_open(directory, KV_FILE_FLUSHED, O_RDONLY);
        if (out->file < 0) return fail(detail, "open", directory);
    }
    struct stat status;
    if (out->file >= 0 && fstat(out->file, &status) == 0 &&
        status.st_size >= (off_t)FLUSH_NOTE_COUNT * FLUSH_NOTE_PAGE_BYTES &&
        (!create || is_used(out->file))) {
        return ERROR_NONE;
    }
    // It is missing, or it was being made when the power went. The store was not relaxed before.
    flush_note_close(out);
    return create ? make_file(directory, detail, &out->file) : ERROR_NONE;
}

void flush_note_close(FlushNotes *notes)
{
    if (notes->file >= 0) close(notes->file);
    notes->file = -1;
}

static Hash checksum_of(const FlushNote *note)
{
    return hash_bytes(slice(note, offsetof(FlushNote, checksum)));
}

static bool is_whole(const FlushNote *note)
{
    Hash hash = checksum_of(note);
    return note->magic == NOTE_MAGIC && memcmp(note->checksum, hash.bytes, HASH_BYTES) == 0;
}

static bool is_unused(const FlushNote *note)
{
    static const FlushNote ZEROS;
    return memcmp(note, &ZEROS, sizeof(*note)) == 0;
}

Error flush_note_read(FlushNotes *notes, bool *out_found, FlushNote *out, ErrorDetail *detail)
{
    *out_found = false;
    unsigned unused_count = 0;
    for (uint64_t i = 0; i < FLUSH_NOTE_COUNT; i++) {
        FlushNote note;
        if (!file_at_read(notes->file, &note, sizeof(note), i * FLUSH_NOTE_PAGE_BYTES)) {
            return fail(detail, "read", notes->directory);
        }
        if (is_unused(&note)) unused_count++;
        if (!is_whole(&note) || (*out_found && note.sequence < out->sequence)) continue;
        *out = note;
        *out_found = true;
    }
    notes->sequence = *out_found ? out->sequence : 0;
    if (*out_found || unused_count > 0) return ERROR_NONE;
    return error_say(detail, ERROR_CORRUPT, "%s/" KV_FILE_FLUSHED " is damaged", notes->directory);
}

int flush_note_write(FlushNotes *notes, FlushNote *note)
{
    note->magic = NOTE_MAGIC;
    note->sequence = ++notes->sequence;
    if (!note->boot_id[0]) memcpy(note->boot_id, notes->boot_id, sizeof(note->boot_id));
    if (!note->inode) note->inode = notes->inode;
    Hash hash = checksum_of(note);
    memcpy(note->checksum, hash.bytes, HASH_BYTES);
    uint64_t offset = note->sequence % FLUSH_NOTE_COUNT * FLUSH_NOTE_PAGE_BYTES;
    if (!file_at_write(notes->file, note, sizeof(*note), offset)) return errno;
    return fdatasync(notes->file) != 0 ? errno : 0;
}
