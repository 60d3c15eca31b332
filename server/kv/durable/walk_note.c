// The note of the last walk. It is flushed only when it says more than the one before it: that an
// unclosed file is in use in this boot.

#include "kv/durable/walk_note.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "kv/durable/data_file_fields.h"
#include "kv/durable/file_names.h"
#include "kv/durable/flush.h"
#include "kv/durable/flush_note.h"

static const uint64_t NOTE_MAGIC = UINT64_C(0x314b4c57454e4954); // "TINEWLK1"

typedef struct WalkNote { // as it is stored
    uint64_t magic;
    uint64_t inode; // of data.mdb
    uint32_t is_open, is_due;
    char boot_id[BOOT_ID_BYTES];
    uint8_t checksum[HASH_BYTES]; // of all fields above
} WalkNote;

static Hash checksum_of(const WalkNote *note)
{
    return hash_bytes(slice(note, offsetof(WalkNote, checksum)));
}

// Returns whether the directory has a whole note about this file.
static bool read_note(const DataFile *file, WalkNote *out)
{
    int note_file = file_at_open(file->directory, KV_FILE_WALKED, O_RDONLY);
    if (note_file < 0) return false;
    bool is_read = file_at_read(note_file, out, sizeof(*out), 0);
    close(note_file);
    Hash hash = checksum_of(out);
    return is_read && out->magic == NOTE_MAGIC && out->inode == file->data_id.inode &&
           memcmp(out->checksum, hash.bytes, HASH_BYTES) == 0;
}

static void write_note(const DataFile *file, bool is_open, bool is_flushed)
{
    WalkNote note = {
        .magic = NOTE_MAGIC,
        .inode = file->data_id.inode,
        .is_open = is_open,
        .is_due = atomic_load(&file->is_walk_due),
    };
    memcpy(note.boot_id, file->walk_boot_id, BOOT_ID_BYTES);
    Hash hash = checksum_of(&note);
    memcpy(note.checksum, hash.bytes, HASH_BYTES);
    int note_file = file_at_open(file->directory, KV_FILE_WALKED, O_RDWR | O_CREAT);
    bool is_written = note_file >= 0 && file_at_write(note_file, &note, sizeof(note), 0) &&
                      (!is_flushed || fdatasync(note_file) == 0);
    if (note_file >= 0) close(note_file);
    if (!is_written) (void)file_at_remove(file->directory, KV_FILE_WALKED);
}

void walk_note_read(DataFile *file, const DataFileOptions *options)
{
    MDB_envinfo info;
    WalkNote note;
    if (options->no_sync || options->read_only || !options->owns_directory) return;
    flush_note_boot_id(options->boot_id, file->walk_boot_id);
    bool is_known = read_note(file, &note);
    bool is_same_boot = is_known && file->walk_boot_id[0] &&
                        memcmp(file->walk_boot_id, note.boot_id, BOOT_ID_BYTES) == 0;
    bool is_new = mdb_env_info(file->lmdb, &info) == 0 && info.me_last_txnid == 0;
    bool is_due = is_known ? note.is_due || (note.is_open && !is_same_boot) : !is_new;
    atomic_store(&file->is_walk_due, is_due);
    file->walk_note = WALK_NOTE_OTHER;
    if (!is_known) file->walk_note = WALK_NOTE_NONE;
    if (is_known && note.is_open && is_same_boot) file->walk_note = WALK_NOTE_IN_USE;
}

void walk_note_begin(DataFile *file)
{
    WalkNoteState state = file->walk_note;
    if (state == WALK_NOTE_UNWANTED || state == WALK_NOTE_IN_USE) return;
    file->walk_note = WALK_NOTE_IN_USE;
    write_note(file, /* is_open= */ true, /* is_flushed= */ state == WALK_NOTE_OTHER);
}

void walk_note_done(DataFile *file)
{
    atomic_store(&file->is_walk_due, false);
    if (file->walk_note == WALK_NOTE_IN_USE)
        write_note(file, /* is_open= */ true, /* is_flushed= */ false);
}

void walk_note_end(DataFile *file)
{
    if (file->walk_note != WALK_NOTE_IN_USE) return;
    if (flush_has_failed(file)) atomic_store(&file->is_walk_due, true); // pages may be missing
    write_note(file, /* is_open= */ false, /* is_flushed= */ false);
}
