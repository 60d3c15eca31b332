// Runs lines in a shell with `tine` and `tined` in its PATH and with its own home: the directory of
// the test, with the store in data/tine and the socket in tine/tine.sock.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

enum { SHELL_OUTPUT_BYTES_MAX = 1 << 20 };

typedef struct Shell {
    pid_t tined; // 0: does not run
    int code;    // of the last line
    char output[SHELL_OUTPUT_BYTES_MAX], errors[SHELL_OUTPUT_BYTES_MAX];
} Shell;

// Allocated, because it is large. For CLEANUP: shell_close, which ends tined.
Shell *shell_open(void);
void shell_close(Shell **shell);

// Runs one line. The test fails unless it ends with 0, or with `code`.
const char *shell_ok(Shell *shell, const char *format, ...) PRINTF_LIKE(2, 3);
void shell_fails(Shell *shell, int code, const char *format, ...) PRINTF_LIKE(3, 4);

// Checks that the output, or the errors, of the last line contain this text.
void shell_shows(const Shell *shell, const char *text);
void shell_says(const Shell *shell, const char *text);

// Starts the tined of this home and waits until it is ready; ends it with SIGTERM.
void shell_tined_start(Shell *shell);
void shell_tined_stop(Shell *shell);

// Returns the URL of the socket. Borrowed until the next call.
const char *shell_url(void);

// Moves a child process into this home. It does not see the environment of the test run.
void shell_enter_home(void);
