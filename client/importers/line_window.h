// The lines of a file, read through a window that moves along it: memory for one window, or for one
// line that is longer.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/slice.h"

enum { LINE_WINDOW_BYTES = 256 * 1024 };

// A part of a file. Begins with only `file` set.
typedef struct LineWindow {
    int file; // borrowed
    uint64_t offset;
    Buffer bytes;
} LineWindow;

void line_window_free(LineWindow *window);

// Returns at least `wanted` bytes from `offset` on, or all up to the file's end if there are fewer.
// Moves the window if it has to. `out` is borrowed until the window moves again. ERROR_IO (see
// errno), ERROR_OUT_OF_MEMORY.
MUST_USE Error line_window_at(LineWindow *window, uint64_t offset, size_t wanted, Slice *out);

// Returns the line that begins at `offset`, with its end; an empty one at the file's end. Lifetime
// and errors as above.
MUST_USE Error line_window_line(LineWindow *window, uint64_t offset, Slice *out);

// Returns a line without the white space that JSON allows around a value. If it is the first line
// that is not blank, a byte order mark before it is dropped too.
Slice line_json(Slice line, bool is_first);
