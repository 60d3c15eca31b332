// Text that others wrote, made safe to be printed.
//
// On a terminal nothing of it may act: control characters, escape sequences, marks that turn the
// direction of writing and characters that cannot be seen are shown by name (^[, <U+202E>). All
// text that goes to a terminal passes here.

#pragma once

#include <stdio.h>

#include "base/slice.h"

typedef enum TextUse {
    TEXT_PLAIN,    // a file or a pipe, as one cell: tab, line ends and backslashes are escaped
    TEXT_TERMINAL, // a terminal
} TextUse;

enum { TEXT_LINE_COLUMNS_MAX = 4000, TEXT_LINE_BYTES_MAX = 4 * TEXT_LINE_COLUMNS_MAX };

// The text as one line of at most `columns_max` columns (0: no limit); a longer one ends with "…".
// Owned by the caller. NULL when there is no memory.
char *text_line(const char *text, TextUse use, size_t columns_max);

// Prints text of many lines, each behind `indent`, and ends with a line's end. On a terminal a line
// of more than TEXT_LINE_COLUMNS_MAX columns or TEXT_LINE_BYTES_MAX bytes is cut, and after
// `lines_max` lines (0: no limit) the rest is left out; both say how much is missing. Elsewhere
// nothing is changed.
void text_print_block(FILE *out, Slice text, TextUse use, const char *indent, size_t lines_max);

// The columns that a line takes; of what cannot be printed, none.
size_t text_columns(const char *text);
