// flushed.mdb: notes which state of data.mdb was flushed last, with the meta page of that state.
// flush.h says why.

#pragma once

#include "base/hash.h"
#include "report/error_detail.h"

enum {
    FLUSH_NOTE_COUNT = 2,
    // Each note has a page of its own: a disk writes no less than a page, so it can lose no more.
    FLUSH_NOTE_PAGE_BYTES = 4096,
    FLUSH_NOTE_META_BYTES = 512,
    BOOT_ID_BYTES = 40,
};

enum {
    FLUSH_NOTE_CLEAN = 1,   // data.mdb is as it should be
    FLUSH_NOTE_FLUSHED = 2, // after a power cut, `meta` is the state to go back to
};

// A boot id that no boot has: the state counts as another boot's, so only what is on the disk is
// believed.
#define BOOT_ID_NONE "none"

typedef struct FlushNote { // as it is stored
    uint64_t magic;
    uint64_t sequence;
    uint16_t state;
    uint16_t is_relaxed;  // the newest of the log may be lost with the power
    uint32_t is_set_back; // the store was taken back to a flush, and has not dealt with it yet
    char boot_id[BOOT_ID_BYTES];
    uint64_t inode; // of data.mdb
    uint64_t page_bytes;
    uint64_t txn_id;
    uint8_t roots[HASH_BYTES]; // hash of the root pages of the state's trees: identifies the file
    uint8_t meta[FLUSH_NOTE_META_BYTES];
    uint8_t checksum[HASH_BYTES]; // of all fields above
} FlushNote;

typedef struct FlushNotes {
    int file;              // -1: there is none
    const char *directory; // borrowed
    char boot_id[BOOT_ID_BYTES];
    uint64_t inode;    // of data.mdb
    uint64_t sequence; // of the note that was read or written last
} FlushNotes;

// Copies `boot_id`, or asks the kernel if it is NULL. All zeros if the kernel does not say.
void flush_note_boot_id(const char *boot_id, char out[BOOT_ID_BYTES]);

// Opens the file. If it is missing, makes it if `create` is set, else sets .file to -1. ERROR_IO,
// ERROR_STORE_FULL. flush_note_close is allowed for -1.
MUST_USE Error flush_note_open(const char *directory, bool create, ErrorDetail *detail,
                               FlushNotes *out);
void flush_note_close(FlushNotes *notes);

// Reads the newest whole note. `*out_found` is false if none was ever written. ERROR_CORRUPT,
// ERROR_IO.
MUST_USE Error flush_note_read(FlushNotes *notes, bool *out_found, FlushNote *out,
                               ErrorDetail *detail);

// Fills in the note's sequence, boot id, inode and checksum, writes it over the older of the two,
// and flushes. Returns errno.
int flush_note_write(FlushNotes *notes, FlushNote *note);
