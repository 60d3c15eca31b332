// A command at a terminal: a pseudo-terminal that the test types at and reads from.

#pragma once

#include <stddef.h>
#include <sys/types.h>

enum { TERMINAL_BYTES_MAX = 1 << 20 };

typedef struct Terminal {
    pid_t pid;
    int fd;
    size_t size;
    char text[TERMINAL_BYTES_MAX]; // all that was printed, a NUL behind it
} Terminal;

// Starts a line for bash, in the home of shell.h, at a terminal of so many columns. For CLEANUP:
// terminal_close, which ends it.
Terminal *terminal_start(const char *line, int columns);
void terminal_close(Terminal **terminal);

// Reads until this was printed. The test fails if the command ends before.
void terminal_wait_for(Terminal *terminal, const char *text);

// Types.
void terminal_type(Terminal *terminal, const char *keys);

// Reads to the end. Returns the exit code, or minus the signal.
int terminal_end(Terminal *terminal);

// Whether what is typed is shown and read line by line, as a shell wants it.
int terminal_is_clean(const Terminal *terminal);

// Start and end: what a command prints that ends by itself. Owned by the caller.
Terminal *terminal_run(const char *line, int columns);
