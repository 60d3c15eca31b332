// The lines of a file, seen through a window that moves along it, and whether they are JSON.

#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/slice.h"

enum {
    PI_WINDOW_BYTES = 256 * 1024, // or one line that is longer
    PI_AHEAD_BYTES_MIN = 1024 * 1024,
    PI_AHEAD_BAD_MAX = 1024,
};

// A stretch of a file.
typedef struct PiWindow {
    int file; // borrowed
    uint64_t offset;
    Buffer bytes;
} PiWindow;

void pi_window_free(PiWindow *window);

// What the window has from `offset` on, moved there first if that is less than `wanted`: fewer
// bytes than that are all up to the file's end. Borrowed until it moves again. ERROR_IO (see
// errno), ERROR_OUT_OF_MEMORY.
MUST_USE Error pi_window_at(PiWindow *window, uint64_t offset, size_t wanted, Slice *out);

// The line that begins at `offset`, with its end; of no bytes at the file's end. As above.
MUST_USE Error pi_window_line(PiWindow *window, uint64_t offset, Slice *out);

// A line without the white space that JSON allows around it, and, if it is the first one that has a
// text, a byte order mark before it.
Slice pi_line_json(Slice line, bool is_first);

// Looks at the later lines of a long file in a thread of its own, ahead of whoever reads them.
typedef struct PiAhead {
    pthread_t thread;
    bool is_started;
    PiWindow window;
    uint64_t begin;            // of the first line it looks at
    atomic_uint_fast64_t done; // the lines before here have been looked at …
    uint64_t bad[PI_AHEAD_BAD_MAX];
    atomic_size_t bad_count; // … and those that begin here are no JSON
    size_t bad_passed;       // of the reader
    atomic_bool is_stopping;
} PiAhead;

// Begins with a zeroed one. Where no thread can be started nothing is looked at.
void pi_ahead_start(PiAhead *ahead, int file);
void pi_ahead_stop(PiAhead *ahead);

// Whether the JSON of the line that begins at `offset` is well-formed: as the thread found, or
// looked at here and now if it has not come so far. Asked line by line, in order.
bool pi_ahead_is_json(PiAhead *ahead, uint64_t offset, Slice json);
