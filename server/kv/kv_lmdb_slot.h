// flushed.mdb: the meta page of the state that was flushed last. kv_lmdb_flush.h says why.

#pragma once

#include "kv/kv.h"
#include "report/error_detail.h"

enum {
    SLOT_COUNT = 2,
    SLOT_BYTES = 4096, // of its own page: disks write no less, and may lose no more
    SLOT_META_BYTES = 512,
    SLOT_BOOT_ID_BYTES = 40,
};

enum {
    SLOT_CLEAN = 1,   // data.mdb is as it should be
    SLOT_FLUSHED = 2, // after a power cut, `meta` is the truth
};

// The boot id of a state that counts as another boot's: of data.mdb only what is on the disk holds.
#define SLOT_NO_BOOT "none"

typedef struct Slot {
    uint64_t magic;
    uint64_t sequence;
    uint32_t state;
    uint32_t is_set_back; // the store was, and does not know yet
    char boot_id[SLOT_BOOT_ID_BYTES];
    uint64_t inode; // of data.mdb
    uint64_t page_bytes;
    uint64_t txn_id;
    uint8_t roots[16]; // hash of the pages that the state's trees begin at: this file is meant
    uint8_t meta[SLOT_META_BYTES];
    uint8_t checksum[16]; // of all before
} Slot;

typedef struct SlotFile {
    int file;              // -1: there is none
    const char *directory; // borrowed
    char boot_id[SLOT_BOOT_ID_BYTES];
    uint64_t inode;
    uint64_t sequence; // of the last slot that was read or written
} SlotFile;

// Asked of the kernel if `said` is NULL; all zeros if it does not know.
void slot_boot_id(const char *said, char out[SLOT_BOOT_ID_BYTES]);

// Makes the file, if it is not there and `create` is set. ERROR_IO, ERROR_STORE_FULL.
MUST_USE Error slot_open(const char *directory, bool create, ErrorDetail *detail, SlotFile *out);
void slot_close(SlotFile *slots);

// The newest slot that is whole; none, if the file was never used. ERROR_CORRUPT, ERROR_IO.
MUST_USE Error slot_read(SlotFile *slots, bool *out_found, Slot *out, ErrorDetail *detail);

// Fills the place of the older slot, and flushes. Returns errno.
int slot_write(SlotFile *slots, Slot *slot);

// Copies the meta page of the state slot->txn_id from data.mdb. Returns errno.
int slot_take_meta(int data_file, size_t page_bytes, Slot *slot);

// Makes the slot's state data.mdb's. Another file than the one that was flushed is left alone.
// ERROR_CORRUPT: it is the same file, without what was flushed. ERROR_UNAVAILABLE: it would be
// changed, and `may_write` is not set, or another process still reads what it holds (after a wait).
MUST_USE Error slot_restore(const SlotFile *slots, const Slot *slot, bool may_write,
                            ErrorDetail *detail, bool *out_is_set_back);

// Empties a data.mdb that was being made and never held a commit, as a power cut may leave it.
MUST_USE Error slot_empty_unfinished(const char *directory, ErrorDetail *detail);
