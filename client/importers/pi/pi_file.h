// A session file of the pi coding agent: its lines, and the tree that they make.
//
// Opening reads the file line by line, and the later ones of a long file in a second thread too
// (lines_ahead.h). It keeps about a hundred bytes for each entry; lines are read again when they
// are asked for. So a file may be larger than memory, but not a line of it.
//
// What pi tolerates is tolerated here: blank lines, CR before LF, a byte order mark, lines that are
// no JSON (a torn last one, two welded into one), further headers, ids used twice (the later one is
// meant by whoever refers to it), parents that come later or are missing, and beyond that entries
// that are their own ancestors. Files of versions 1 and 2 are seen as pi migrates them; the ids
// that version 1 lacks are made from the session's id and the entry's number, so that they are the
// same each time.

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
    PI_PROBLEMS_MAX = 20,                             // kept; all are counted
    PI_LINE_BYTES_MAX = 16 * 1024 * 1024 - 64 * 1024, // an entry's, so that a request can hold it
    PI_ENTRY_COUNT_MAX = 100 * 1000 * 1000,
};

typedef struct PiEntry {
    uint64_t offset;        // of its JSON in the file …
    uint32_t bytes;         // … without the line's end
    uint32_t line;          // from 1
    uint32_t parsed;        // its place among all parsed lines, the header being 0
    uint32_t id, parent_id; // in the file's texts
    uint32_t parent;        // an entry, or ENTRY_NONE: it begins a history
    bool is_later;          // an entry before it has its id
    bool is_shadowed;  // its id is another entry's in the store: the latest one's that has it, if
                       // pi_known found none of them there
    bool is_ahead;     // of its turn in `order`: entries of the file before it follow
    bool is_queued;    // on its way into the store, or there
    bool has_original; // the store has its bytes
    char store_id[STORE_ID_BYTES]; // what the store calls it; "": nothing yet
} PiEntry;

typedef struct PiProblem {
    size_t line; // 0: of the whole file
    const char *what;
} PiProblem;

typedef struct PiFile {
    FILE *file; // borrowed
    uint64_t bytes;
    char *header;        // the first header's JSON; owned
    uint64_t header_end; // where it ends in the file
    char *id;            // the session's; owned
    unsigned version;    // as found; 1 if it says none
    bool makes_ids;      // version 1: its entries have none

    PiEntry *entries; // in the file's order; owned
    uint32_t count;
    uint32_t *order; // of the same entries: parents before children, else as in the file; owned
    Buffer texts;    // ids, each ended by NUL
    uint32_t *slots; // a hash table of ids: the latest entry that has it; owned
    size_t slot_count;

    LineWindow window; // of the file

    PiProblem problems[PI_PROBLEMS_MAX];
    size_t problem_count;
} PiFile;

// Reads it. `file` must be seekable; it is borrowed until pi_file_close, which may be called after
// a failure too.
// ERROR_INVALID_ARGUMENT: it is no session of pi's, `detail` says why. ERROR_IO,
// ERROR_OUT_OF_MEMORY.
MUST_USE Error pi_file_open(PiFile *pi, FILE *file, ErrorDetail *detail);
void pi_file_close(PiFile *pi);

// An entry's bytes as they stand, with what follows up to the next entry; the first one's begin
// behind the header. So the header and all of these together are the file. `out` is borrowed until
// the next one is read. ERROR_IO, ERROR_OUT_OF_MEMORY.
MUST_USE Error pi_file_source(PiFile *pi, uint32_t entry, Slice *out);

// What follows the header in a file without entries. Else as pi_file_source.
MUST_USE Error pi_file_rest(PiFile *pi, Slice *out);

// The latest entry with this id; ENTRY_NONE.
uint32_t pi_file_find(const PiFile *pi, const char *id);

// Of a version 1 file: the entry that stands at this place among the parsed lines; ENTRY_NONE.
uint32_t pi_file_at_place(const PiFile *pi, int64_t place);

// The entry that begins at this line; ENTRY_NONE.
uint32_t pi_file_at_line(const PiFile *pi, unsigned long line);

const char *pi_file_id(const PiFile *pi, uint32_t entry);

// The id that entry `number` of a version 1 file is given. ERROR_OUT_OF_MEMORY.
MUST_USE Error pi_file_make_id(const PiFile *pi, uint32_t number, Arena *arena, char **out);
