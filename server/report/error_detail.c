// Error details: formats the sentence, cuts it at a code point, and keeps it valid UTF-8.

#include "report/error_detail.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text/utf8.h"

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
