// Prints text. This is the only code that writes text of others to a terminal.
//
// On a terminal such text must not act. Control characters, escape sequences, marks that change the
// direction of text and characters that cannot be seen (text/display.h) are shown by name instead:
// ^[, <U+202E>, <FF> for a byte that is not UTF-8. In a file or a pipe text is not changed, except
// that a text in a line (%s) stays one cell: tabs, line ends and backslashes are escaped.
//
// Programs print with these functions only. No other file names stdout or stderr.

#pragma once

#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "base/slice.h"

typedef enum PrintUse {
    PRINT_PLAIN, // a file or a pipe
    PRINT_TERMINAL,
} PrintUse;

typedef struct Printer {
    FILE *file; // borrowed
    PrintUse use;
    bool has_colour; // false: the styles below are left out
} Printer;

// Styles, for formats only: print(out, PRINT_BOLD "%s" PRINT_NORMAL "\n", name).
#define PRINT_NORMAL "\033[0m"
#define PRINT_BOLD "\033[1m"
#define PRINT_DIM "\033[2m"
#define PRINT_YELLOW "\033[33m"

enum {
    PRINT_LINE_COLUMNS_MAX = 4000,
    PRINT_LINE_BYTES_MAX = 4 * PRINT_LINE_COLUMNS_MAX,
};

// Return printers of the standard streams, without colour. `use` is set by what the stream is.
Printer print_to_stdout(void);
Printer print_to_stderr(void);

// Prints like fprintf. The format must be a literal of the program and is trusted; each %s is not:
// it is printed as one line. Its width and precision count columns, and a text that is cut ends
// with "…". %d, %i, %u, %x, %c, %f, %g, %m with their flags and lengths are known; no %n, %p, %L.
void print(const Printer *out, const char *format, ...) PRINTF_LIKE(2, 3);
void print_list(const Printer *out, const char *format, va_list arguments) PRINTF_LIKE(2, 0);

// Prints text of many lines, each behind `indent` (trusted), and ends with a line feed. Prints
// nothing for an empty text. On a terminal, a line of more than PRINT_LINE_COLUMNS_MAX columns or
// PRINT_LINE_BYTES_MAX bytes is cut, and only the first `lines_max` lines (0: all) are printed;
// both cases say how much is missing.
void print_block(const Printer *out, Slice text, const char *indent, size_t lines_max);

// Prints a text as a JSON string with its quotes.
void print_json_text(const Printer *out, Slice text);

// Buffers standard output fully, also on a terminal, and standard error by lines, so that a message
// is one write and others cannot split it. Only one thread may print to standard output then. Must
// be called before anything is printed.
void print_set_buffers(void);

// Writes what is buffered. Returns false, with errno, if that or an earlier write failed.
bool print_flush(const Printer *out);

// Returns the text as %s prints it, in at most `columns_max` columns (0: no limit). The caller
// frees it. NULL when out of memory.
char *print_line(const char *text, PrintUse use, size_t columns_max);

// Returns the columns of a line of text; 0 for what cannot be printed.
size_t print_columns(const char *text);
