// Segments: the files of a log. Each holds records from its first byte on, one behind the other.
//
// A segment is made of zeros and flushed before it is used, so a flush of records changes none of
// its metadata. Its name is its number, in hex; records go on in the segment with the next higher
// number. A segment whose records are not needed any more is used again under a new number, with
// its old bytes: these are no records of the log, because their chain does not fit.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "report/error_detail.h"

typedef struct Segment {
    uint64_t number;
    int file; // -1: not open
    uint64_t bytes;
    uint64_t used;          // by records
    uint64_t last_position; // of its records
    bool is_unflushed;
} Segment;

// Makes the path of a segment.
void segment_path(const char *directory, uint64_t number, char out[PATH_BYTES_MAX]);

// Makes a segment of zeros, and flushes it and its name. `directory` is that of the log. The caller
// closes out->file. ERROR_STORE_FULL and other errors: no file is left.
MUST_USE Error segment_make(const char *directory, uint64_t number, uint64_t bytes,
                            ErrorDetail *detail, Segment *out);

// Gives a segment, which is open, another number, and flushes its name. ERROR_IO: it has its old
// one.
MUST_USE Error segment_reuse(const char *directory, uint64_t number, ErrorDetail *detail,
                             Segment *segment);

// Closes a segment and removes its file.
void segment_remove(const char *directory, Segment *segment);

// Lists the segments in order of their numbers, not open: .bytes is the size of the file. Other
// files are left alone. The caller frees `*out_segments`. A missing directory has none. ERROR_IO,
// ERROR_OUT_OF_MEMORY.
MUST_USE Error segment_list(const char *directory, ErrorDetail *detail, Segment **out_segments,
                            size_t *out_count);
