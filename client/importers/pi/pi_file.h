// A session file of the pi coding agent: its lines, and the tree that they make.
//
// Opening a file reads it line by line; a second thread checks the later lines of a long file
// (lines_ahead.h). About a hundred bytes are kept for each entry, and a line is read again when it
// is needed. So a file may be larger than memory, but a single line may not.
//
// Everything that pi tolerates is tolerated: blank lines, CR before LF, a byte order mark, lines
// that are not JSON (the last one torn, two welded into one), more headers, IDs used twice
// (references mean the later entry), parents that come later or are missing. Entries that are their
// own ancestors are tolerated too. Files of versions 1 and 2 are read as pi migrates them. The IDs
// that version 1 lacks are made from the session's ID and the entry's number, so they are the same
// each time.

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/slice.h"
#include "importers/entry_order.h"
#include "importers/importer.h"
#include "importers/line_window.h"
#include "report/error_detail.h"

enum {
    PI_PROBLEMS_MAX = 20,                             // that are kept; all are counted
    PI_LINE_BYTES_MAX = 16 * 1024 * 1024 - 64 * 1024, // of an entry: a request can hold it
    PI_ENTRY_COUNT_MAX = 100 * 1000 * 1000,
};

typedef struct PiEntry {
    uint64_t offset;        // of its JSON in the file …
    uint32_t bytes;         // … without the line's end
    uint32_t line;          // from 1
    uint32_t parsed;        // its number among all lines that are JSON; the header is 0
    uint32_t id, parent_id; // in the file's texts
    uint32_t parent;        // an entry; ENTRY_NONE: it begins a history
    bool is_later;          // an entry before it has the same ID
    bool is_shadowed;  // in the store another entry has its ID: the latest one in the file, unless
                       // pi_known has found one of them in the store
    bool is_ahead;     // in `order` it comes before entries that are before it in the file
    bool is_queued;    // it is being stored, or is stored
    bool has_original; // the store has its bytes
    char store_id[STORE_ID_BYTES]; // its ID in the store; "": none yet
} PiEntry;

typedef struct PiProblem {
    size_t line; // 0: the whole file
    const char *what;
} PiProblem;

typedef struct PiFile {
    FILE *file; // borrowed
    uint64_t bytes;
    char *header;        // the first header's JSON; owned
    uint64_t header_end; // where it ends in the file
    char *id;            // the session's; owned
    unsigned version;    // 1 if the header has none
    bool makes_ids;      // version 1: the entries have no IDs

    PiEntry *entries; // in the file's order; owned
    uint32_t count;
    uint32_t *order; // of the entries: parents before children, otherwise as in the file; owned
    Buffer texts;    // IDs, each with a NUL after it
    uint32_t *slots; // a hash table: for each ID the latest entry that has it; owned
    size_t slot_count;

    LineWindow window; // of the file

    PiProblem problems[PI_PROBLEMS_MAX];
    size_t problem_count;
} PiFile;

// Reads a file, which must be seekable and is borrowed until pi_file_close. The caller calls
// pi_file_close even after a failure. ERROR_INVALID_ARGUMENT: it is not a session file of pi, and
// `detail` says why. ERROR_IO, ERROR_OUT_OF_MEMORY.
MUST_USE Error pi_file_open(PiFile *pi, FILE *file, ErrorDetail *detail);
void pi_file_close(PiFile *pi);

// Returns an entry's bytes and everything after them up to the next entry; those of the first entry
// begin after the header. So the header and the bytes of all entries make up the file. `out` is
// borrowed until the next call. ERROR_IO, ERROR_OUT_OF_MEMORY.
MUST_USE Error pi_file_source(PiFile *pi, uint32_t entry, Slice *out);

// Returns what follows the header in a file without entries. Lifetime and errors as above.
MUST_USE Error pi_file_rest(PiFile *pi, Slice *out);

// Each returns an entry, or ENTRY_NONE: the latest one with this ID; in version 1, the one with
// this number among the lines that are JSON; the one that begins at this line.
uint32_t pi_file_find(const PiFile *pi, const char *id);
uint32_t pi_file_at_place(const PiFile *pi, int64_t place);
uint32_t pi_file_at_line(const PiFile *pi, unsigned long line);

const char *pi_file_id(const PiFile *pi, uint32_t entry);

// Makes the ID of entry `number` of a version 1 file, in the arena. ERROR_OUT_OF_MEMORY.
MUST_USE Error pi_file_make_id(const PiFile *pi, uint32_t number, Arena *arena, char **out);
