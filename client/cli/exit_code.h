// What `tine` ends with. Documented in `tine help` and tine(1).

#pragma once

typedef enum ExitCode {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_NOT_FOUND = 3,
    EXIT_UNAVAILABLE = 4,
} ExitCode;
