// Error details: formats the sentence, cuts it at a code point and keeps it valid UTF-8.

#include "report/error_detail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text/utf8.h"

static void say(ErrorDetail *detail, const char *format, va_list arguments)
{
    // One byte more than fits, so that the cut can see whether it falls inside a code point.
    // A second buffer also lets the arguments point into `detail` itself.
    char text[ERROR_DETAIL_BYTES_MAX + 1];
    if (vsnprintf(text, sizeof(text), format, arguments) < 0) text[0] = '\0';

    Slice said = utf8_cut(slice_of(text), ERROR_DETAIL_BYTES_MAX - 1);
    memcpy(detail->text, said.bytes, said.size);
    detail->text[said.size] = '\0';

    // Status.message is a protobuf string: one bad byte would make clients refuse the whole reply.
    if (utf8_is_valid(slice_of(detail->text))) return;
    for (char *at = detail->text; *at; at++) {
        if ((unsigned char)*at >= 0x80) *at = '?';
    }
}

Error error_say(ErrorDetail *detail, Error error, const char *format, ...)
{
    if (!detail) return error;
    va_list arguments;
    va_start(arguments, format);
    say(detail, format, arguments);
    va_end(arguments);
    return error;
}

Error error_of_errno(int code)
{
    switch (code) {
    case 0: return ERROR_NONE;
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return ERROR_STORE_FULL;
    case ENOMEM:
    case EMFILE:
    case ENFILE: return ERROR_OUT_OF_MEMORY;
    default: return ERROR_IO;
    }
}

Error error_say_errno(ErrorDetail *detail, int code, const char *format, ...)
{
    Error error = error_of_errno(code);
    if (!detail) return error;
    va_list arguments;
    va_start(arguments, format);
    say(detail, format, arguments);
    va_end(arguments);
    return error_say(detail, error, "%s: %s (errno %d)", detail->text, strerror(code), code);
}
