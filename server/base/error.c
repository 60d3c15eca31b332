// Errors: the tables behind the list in error.h, and the sentence that explains one error.

#include "base/error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

typedef struct ErrorRow {
    StatusCode status;
    const char *reason;
    const char *text;
} ErrorRow;

// clang-format off
static const ErrorRow ERROR_ROWS[] = {
    [ERROR_NONE] = {STATUS_OK, "", ""},
#define X(name, code, reason, text) [ERROR_##name] = {STATUS_##code, reason, text},
    ERROR_LIST(X)
#undef X
};
// clang-format on

static const ErrorRow *error_row(Error error)
{
    assert((size_t)error < ERROR_COUNT);
    return &ERROR_ROWS[error];
}

StatusCode error_status(Error error)
{
    return error_row(error)->status;
}

const char *error_reason(Error error)
{
    return error_row(error)->reason;
}

const char *error_text(Error error)
{
    return error_row(error)->text;
}

bool error_is_environment(Error error)
{
    return error == ERROR_STORE_FULL || error == ERROR_OUT_OF_MEMORY || error == ERROR_IO ||
           error == ERROR_CORRUPT;
}

Error error_say(ErrorDetail *detail, Error error, const char *format, ...)
{
    if (!detail) return error;

    // One byte more than fits, so that the cut can see whether it falls inside a code point.
    // A second buffer also lets the arguments point into `detail` itself.
    char text[ERROR_DETAIL_BYTES_MAX + 1];
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (written < 0) snprintf(text, sizeof text, "%s", error_text(error));

    Slice said = utf8_cut(slice_of(text), ERROR_DETAIL_BYTES_MAX - 1);
    memcpy(detail->text, said.bytes, said.size);
    detail->text[said.size] = '\0';

    // Status.message is a protobuf string: one bad byte would make clients refuse the whole reply.
    if (utf8_is_valid(slice_of(detail->text))) return error;
    for (char *at = detail->text; *at; at++) {
        if ((unsigned char)*at >= 0x80) *at = '?';
    }
    return error;
}
