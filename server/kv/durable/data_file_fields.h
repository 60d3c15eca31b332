// The fields of a DataFile, for the files of server/kv. Nothing outside server/kv may include this,
// because it includes lmdb.h.

#pragma once

#include <lmdb.h>
#include <stdatomic.h>

#include "kv/durable/file_at.h"
#include "kv/durable/flush_note.h"
#include "kv/durable/options.h"
#include "os/process.h"
#include "report/error_detail.h"

// What ownership.c compares with.
typedef struct Ownership {
    int directory;                  // of the file; -1: its name is not checked
    atomic_uint_fast64_t bytes;     // the file's size at the last check
    uint64_t last_txn;              // committed by this process; under LMDB's writer lock
    atomic_uint_fast64_t noted_txn; // was about to be committed; 0: none
    atomic_bool is_lost;
    ErrorDetail cause; // set before is_lost, and never again
} Ownership;

typedef enum WalkNoteState { // walk_note.h
    WALK_NOTE_UNWANTED,      // of a file that is not opened for writing, or that nobody keeps
    WALK_NOTE_NONE,
    WALK_NOTE_OTHER,  // it says something else than the next
    WALK_NOTE_IN_USE, // in this boot
} WalkNoteState;

struct DataFile {
    MDB_env *lmdb;
    const char *directory; // owned by `lmdb`
    Flusher *flusher;      // NULL: read-only or ephemeral
    unsigned generation;   // of the process that opened it
    bool is_read_only;
    bool is_ephemeral;
    atomic_bool is_set_back;
    atomic_bool is_outgrown; // pages are in use that the map does not reach
    uint64_t reserved_bytes; // blocks are allocated up to here; used by write transactions only
    atomic_uint_fast64_t pin_txn; // that the flusher's pin reads; 0: none
    FileId data_id, lock_id;
    WalkNoteState walk_note;
    atomic_bool is_walk_due; // all pages must be walked
    char walk_boot_id[BOOT_ID_BYTES];
    Ownership ownership;
    DataFile *next; // in the registry, under its mutex
};

// Returns whether a parent process opened the file. This process may then only close it: the locks
// and the reader slots belong to the parent.
static inline bool data_file_is_of_parent(const DataFile *file)
{
    return __builtin_expect(file->generation != process_generation(), false);
}

static inline Error data_file_refuse_child(ErrorDetail *detail)
{
    return error_say(detail, ERROR_UNAVAILABLE, "the store was opened before a fork");
}
