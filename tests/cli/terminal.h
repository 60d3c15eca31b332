// Runs a command at a pseudo-terminal that the test types into and reads from.

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

// Starts a line of bash in the home of shell.h, at a terminal with this width. For CLEANUP:
// terminal_close, which ends the command.
Terminal *terminal_start(const char *line, int columns);
void terminal_close(Terminal **terminal);

// Reads until this text was printed. The test fails if the command ends before.
void terminal_wait_for(Terminal *terminal, const char *text);

// Types keys.
void terminal_type(Terminal *terminal, const char *keys);

// Reads to the end. Returns the exit code, or the negated signal.
int terminal_end(Terminal *terminal);

// Returns whether the terminal echoes and reads lines, as a shell expects.
int terminal_is_clean(const Terminal *terminal);

// Runs a command that ends by itself and returns what it printed. The caller owns it.
Terminal *terminal_run(const char *line, int columns);
