// Error details: the sentence that explains one error to a caller.

#pragma once

#include "base/error.h"

// Valid UTF-8. A longer sentence is cut at a code point.
enum { ERROR_DETAIL_BYTES_MAX = 512 };

typedef struct ErrorDetail {
    char text[ERROR_DETAIL_BYTES_MAX];
} ErrorDetail;

// Writes the sentence for `error` into `detail` (NULL is allowed) and returns `error`, so that
// `return error_say(detail, ERROR_TOO_LONG, …)` reads as one step.
MUST_USE Error error_say(ErrorDetail *detail, Error error, const char *format, ...)
    PRINTF_LIKE(3, 4);
