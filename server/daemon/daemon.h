// The daemon: an engine, the sockets in front of it, and the life of the process around them.

#pragma once

#include "daemon/config.h"

// What the process ends with. Documented in `tined --help`.
typedef enum ExitCode {
    EXIT_CODE_STOPPED = 0, // it was told to stop
    EXIT_CODE_FAILED = 1,  // it cannot run
    EXIT_CODE_USAGE = 2,
    EXIT_CODE_IN_USE = 3, // the store or the socket is another process's
    EXIT_CODE_STORE = 4,  // the store failed or is damaged
} ExitCode;

// Runs until it is told to stop. What keeps it from starting is one line on standard error.
ExitCode daemon_run(const Config *config);

// Says on standard output what would be run, or on standard error why it would not. Touches
// nothing.
ExitCode daemon_check(const Config *config);
