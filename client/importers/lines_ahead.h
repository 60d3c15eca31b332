// Checks whether the lines of a long file are JSON, in a thread that runs ahead of the reader.

#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "importers/line_window.h"

enum { LINES_AHEAD_BYTES_MIN = 1024 * 1024, LINES_AHEAD_BAD_MAX = 1024 };

typedef struct LinesAhead {
    pthread_t thread;
    bool is_started;
    LineWindow window;
    uint64_t begin;            // offset of the first line that the thread checks
    atomic_uint_fast64_t done; // the lines from `begin` up to here are checked …
    uint64_t bad[LINES_AHEAD_BAD_MAX];
    atomic_size_t bad_count; // … and those at these offsets are not JSON
    size_t bad_passed;       // by the reader
    atomic_bool is_stopping;
} LinesAhead;

// `ahead` must be zeroed. `file` is borrowed until lines_ahead_stop. If no thread can be started,
// the reader checks all lines.
void lines_ahead_start(LinesAhead *ahead, int file);
void lines_ahead_stop(LinesAhead *ahead);

// Returns whether the line that begins at `offset` is well-formed JSON: the thread's answer, or, if
// the thread has not come that far, a check made now. Must be called in the order of the lines.
bool lines_ahead_is_json(LinesAhead *ahead, uint64_t offset, Slice json);
