// Signals, as bytes that the main loop waits for; other threads wake it the same way.

#pragma once

#include "report/error_detail.h"

typedef enum Wake {
    WAKE_TIMEOUT, // nothing has come
    WAKE_STOP,    // SIGTERM, SIGINT
    WAKE_REOPEN,  // SIGHUP
    WAKE_FAILED,  // the store has closed itself
} Wake;

// Ignores SIGPIPE, for clients that go, and SIGXFSZ, so that a limit is an error of write(2) and no
// death. Before the first thread. ERROR_IO.
MUST_USE Error signals_start(ErrorDetail *detail);

// Wakes the main loop. From any thread, and from signal handlers.
void signals_wake(Wake wake);

// Waits at most this long; -1: without end.
Wake signals_wait(int timeout_ms);
