// Wakes the main loop for signals, and for what other threads report.

#pragma once

#include "report/error_detail.h"

typedef enum Wake {
    WAKE_TIMEOUT, // the time is up
    WAKE_STOP,    // SIGTERM, SIGINT
    WAKE_REOPEN,  // SIGHUP
    WAKE_FAILED,  // the store has closed itself
} Wake;

// Installs the handlers. Ignores SIGPIPE, because clients hang up, and SIGXFSZ, so that a limit
// makes write(2) fail instead of ending the process. Must be called before the first thread starts.
// Returns ERROR_IO; `detail` says why.
MUST_USE Error signals_start(ErrorDetail *detail);

// Wakes the main loop. May be called on any thread and in signal handlers.
void signals_wake(Wake wake);

// Waits for a wake, at most this long; -1: forever.
Wake signals_wait(int timeout_ms);
