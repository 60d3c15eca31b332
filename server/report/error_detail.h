// Error details: the sentence that explains one error to a caller.

#pragma once

#include "base/error.h"

// With the NUL. A longer sentence is cut at a code point.
enum { ERROR_DETAIL_BYTES_MAX = 512 };

typedef struct ErrorDetail {
    char text[ERROR_DETAIL_BYTES_MAX];
} ErrorDetail;

// Writes the sentence for `error`, as valid UTF-8, into `detail` (NULL is allowed). Returns
// `error`, so that `return error_say(detail, ERROR_TOO_LONG, …)` is one step. An argument may point
// into `detail`.
MUST_USE Error error_say(ErrorDetail *detail, Error error, const char *format, ...)
    PRINTF_LIKE(3, 4);

// Returns the error that an errno means: ERROR_STORE_FULL, ERROR_OUT_OF_MEMORY (for memory and
// descriptors) or ERROR_IO. 0: ERROR_NONE.
Error error_of_errno(int code);

// Returns error_of_errno(code) and writes the sentence with its cause into `detail` (NULL is
// allowed): "cannot open /x/log: Too many open files (errno 24)".
MUST_USE Error error_say_errno(ErrorDetail *detail, int code, const char *format, ...)
    PRINTF_LIKE(3, 4);
