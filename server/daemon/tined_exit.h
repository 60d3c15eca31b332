// The exit codes of `tined`. Documented in `tined --help` and tined(8).

#pragma once

typedef enum TinedExit {
    TINED_EXIT_STOPPED = 0, // it was told to stop
    TINED_EXIT_FAILED = 1,  // it cannot run
    TINED_EXIT_USAGE = 2,
    TINED_EXIT_IN_USE = 3, // another process has the store or the socket
    TINED_EXIT_STORE = 4,  // the store failed or is damaged
} TinedExit;
