// Reads JSON with errors that name a line and a column. They are counted only for an error.

#include "json_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "text/utf8.h"

static size_t line_end(Slice text, size_t at)
{
    const void *end = at < text.size ? memchr(text.bytes + at, '\n', text.size - at) : NULL;
    return end ? (size_t)((const uint8_t *)end - text.bytes) : text.size;
}

Error json_reader_begin(JsonReader *reader, Slice text, ErrorDetail *detail)
{
    *reader = (JsonReader){.scan = {text, 0}, .detail = detail};
    if (text.size > JSON_TEXT_BYTES_MAX) {
        return error_say(detail, ERROR_TOO_LONG, "the JSON has %zu bytes; %d are allowed",
                         text.size, JSON_TEXT_BYTES_MAX);
    }
    if (utf8_is_valid(text)) return ERROR_NONE;
    size_t start = 0;
    while (utf8_is_valid(slice(text.bytes + start, line_end(text, start) - start))) {
        start = line_end(text, start) + 1;
    }
    return json_reader_fail(reader, start, "this line is not UTF-8");
}

Error json_reader_fail(JsonReader *reader, size_t at, const char *format, ...)
{
    Slice text = reader->scan.text;
    size_t line = reader->lines_before + 1, start = 0, column = 1;
    for (size_t end = line_end(text, 0); end < at; end = line_end(text, start)) {
        line++;
        start = end + 1;
    }
    for (size_t i = start; i < at && i < text.size; column++)
        i += utf8_decode(slice_skip(text, i)).size;
    char sentence[ERROR_DETAIL_BYTES_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    return error_say(reader->detail, ERROR_INVALID_ARGUMENT, "line %zu, column %zu: %s%s%s", line,
                     column, reader->path, reader->path_bytes > 0 ? ": " : "", sentence);
}

static const char *name_of_byte(char byte)
{
    switch (byte) {
    case '{': return "an object";
    case '[': return "a list";
    case '"': return "a string";
    case 't':
    case 'f': return "true or false";
    case 'n': return "null";
    default: return (byte >= '0' && byte <= '9') || byte == '-' ? "a number" : NULL;
    }
}

Error json_reader_fail_expected(JsonReader *reader, const char *expected)
{
    char byte = json_scan_peek(&reader->scan);
    size_t at = reader->scan.at;
    const char *name = name_of_byte(byte);
    if (name) return json_reader_fail(reader, at, "expected %s, not %s", expected, name);
    if (at >= reader->scan.text.size) {
        return json_reader_fail(reader, at, "expected %s, but the text ends here", expected);
    }
    if (byte > ' ' && byte < 0x7f) {
        return json_reader_fail(reader, at, "expected %s, not '%c'", expected, byte);
    }
    return json_reader_fail(reader, at, "expected %s", expected);
}

void *json_reader_alloc(JsonReader *reader, size_t size, Error *out_error)
{
    if (size > JSON_MEMORY_BYTES_MAX - reader->memory_bytes) {
        *out_error = json_reader_fail(reader, reader->scan.at,
                                      "this is too much: more than %d bytes once read",
                                      JSON_MEMORY_BYTES_MAX);
        return NULL;
    }
    reader->memory_bytes += size;
    void *memory = calloc(1, size > 0 ? size : 1);
    *out_error = memory ? ERROR_NONE : ERROR_OUT_OF_MEMORY;
    return memory;
}

static size_t path_add(JsonReader *reader, const char *piece)
{
    size_t before = reader->path_bytes, room = sizeof(reader->path) - before;
    int size = snprintf(reader->path + before, room, "%s", piece);
    if (size > 0) reader->path_bytes += (size_t)size < room ? (size_t)size : room - 1;
    return before;
}

size_t json_reader_enter(JsonReader *reader, const char *name)
{
    char piece[JSON_PATH_BYTES_MAX];
    snprintf(piece, sizeof(piece), "%s%s", reader->path_bytes > 0 ? "." : "", name);
    return path_add(reader, piece);
}

size_t json_reader_enter_index(JsonReader *reader, size_t index)
{
    char piece[32];
    snprintf(piece, sizeof(piece), "[%zu]", index);
    return path_add(reader, piece);
}

void json_reader_leave(JsonReader *reader, size_t path_bytes)
{
    reader->path_bytes = path_bytes;
    reader->path[path_bytes] = '\0';
}

static const char *fault_text(JsonFault fault)
{
    switch (fault) {
    case JSON_FAULT_NO_END: return "this string has no end";
    case JSON_FAULT_LINE_END: return "a line ends inside a string; write \\n instead";
    case JSON_FAULT_CONTROL: return "a control character inside a string; write it as \\u";
    case JSON_FAULT_ESCAPE: return "no such escape; a backslash itself is written as \\\\";
    case JSON_FAULT_HEX: return "\\u needs four hexadecimal digits";
    case JSON_FAULT_NUL: return "a text may not hold a NUL";
    case JSON_FAULT_SURROGATE: return "half of a surrogate pair alone is no character";
    case JSON_FAULT_NONE:
    default: return "";
    }
}

Error json_reader_string(JsonReader *reader, char **out_text, size_t *out_bytes)
{
    if (json_scan_peek(&reader->scan) != '"') return json_reader_fail_expected(reader, "a string");
    Slice inside = {NULL, 0};
    size_t fault_at = 0;
    JsonFault fault = json_scan_string(&reader->scan, &inside, &fault_at);
    if (fault) return json_reader_fail(reader, fault_at, "%s", fault_text(fault));
    Error error;
    char *text = json_reader_alloc(reader, inside.size + 1, &error);
    if (!text) return error;
    fault = json_string_decode(inside, text, out_bytes);
    if (fault) {
        free(text);
        fault_at = (size_t)(inside.bytes - reader->scan.text.bytes) + *out_bytes;
        return json_reader_fail(reader, fault_at, "%s", fault_text(fault));
    }
    text[*out_bytes] = '\0';
    *out_text = text;
    return ERROR_NONE;
}

Error json_reader_number(JsonReader *reader, Slice *out)
{
    if (json_scan_number(&reader->scan, out)) return ERROR_NONE;
    return json_reader_fail_expected(reader, "a number");
}

Error json_reader_next(JsonReader *reader, char closing, bool *out_is_end)
{
    *out_is_end = json_scan_take(&reader->scan, closing);
    if (*out_is_end) return ERROR_NONE;
    if (!json_scan_take(&reader->scan, ',')) {
        return json_reader_fail_expected(reader, closing == '}' ? "',' or '}'" : "',' or ']'");
    }
    if (json_scan_peek(&reader->scan) != closing) return ERROR_NONE;
    return json_reader_fail(reader, reader->scan.at, "a comma with nothing after it");
}
