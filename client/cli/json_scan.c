// The scanner. Positions are counted only when something is wrong.

#include "json_scan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "json.h"
#include "text/utf8.h"

static size_t line_end(Slice text, size_t at)
{
    const void *end = at < text.size ? memchr(text.bytes + at, '\n', text.size - at) : NULL;
    return end ? (size_t)((const uint8_t *)end - text.bytes) : text.size;
}

Error scan_begin(JsonScan *scan, Slice text, ErrorDetail *detail)
{
    *scan = (JsonScan){.text = text, .detail = detail};
    if (text.size > JSON_TEXT_BYTES_MAX) {
        return error_say(detail, ERROR_TOO_LONG, "the JSON has %zu bytes; %d are allowed",
                         text.size, JSON_TEXT_BYTES_MAX);
    }
    if (utf8_is_valid(text)) return ERROR_NONE;
    size_t start = 0;
    while (utf8_is_valid(slice(text.bytes + start, line_end(text, start) - start))) {
        start = line_end(text, start) + 1;
    }
    return scan_fail(scan, start, "this line is not UTF-8");
}

Error scan_fail(JsonScan *scan, size_t at, const char *format, ...)
{
    size_t line = scan->lines_before + 1, start = 0, column = 1;
    for (size_t end = line_end(scan->text, 0); end < at; end = line_end(scan->text, start)) {
        line++;
        start = end + 1;
    }
    for (size_t i = start; i < at && i < scan->text.size; i++) {
        if ((scan->text.bytes[i] & 0xc0) != 0x80) column++;
    }
    char sentence[ERROR_DETAIL_BYTES_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    return error_say(scan->detail, ERROR_INVALID_ARGUMENT, "line %zu, column %zu: %s%s%s", line,
                     column, scan->path, scan->path_bytes > 0 ? ": " : "", sentence);
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

Error scan_fail_expected(JsonScan *scan, const char *expected)
{
    char byte = scan_peek(scan);
    const char *name = name_of_byte(byte);
    if (name) return scan_fail(scan, scan->at, "expected %s, not %s", expected, name);
    if (scan->at >= scan->text.size) {
        return scan_fail(scan, scan->at, "expected %s, but the text ends here", expected);
    }
    if (byte > ' ' && byte < 0x7f) {
        return scan_fail(scan, scan->at, "expected %s, not '%c'", expected, byte);
    }
    return scan_fail(scan, scan->at, "expected %s", expected);
}

void *scan_alloc(JsonScan *scan, size_t size, Error *out_error)
{
    if (size > JSON_MEMORY_BYTES_MAX - scan->memory_bytes) {
        *out_error = scan_fail(scan, scan->at, "this is too much: more than %d bytes once read",
                               JSON_MEMORY_BYTES_MAX);
        return NULL;
    }
    scan->memory_bytes += size;
    void *memory = calloc(1, size > 0 ? size : 1);
    *out_error = memory ? ERROR_NONE : ERROR_OUT_OF_MEMORY;
    return memory;
}

static size_t path_add(JsonScan *scan, const char *piece)
{
    size_t before = scan->path_bytes, room = sizeof(scan->path) - before;
    int size = snprintf(scan->path + before, room, "%s", piece);
    if (size > 0) scan->path_bytes += (size_t)size < room ? (size_t)size : room - 1;
    return before;
}

size_t scan_enter(JsonScan *scan, const char *name)
{
    char piece[JSON_PATH_BYTES_MAX];
    snprintf(piece, sizeof(piece), "%s%s", scan->path_bytes > 0 ? "." : "", name);
    return path_add(scan, piece);
}

size_t scan_enter_index(JsonScan *scan, size_t index)
{
    char piece[32];
    snprintf(piece, sizeof(piece), "[%zu]", index);
    return path_add(scan, piece);
}

void scan_leave(JsonScan *scan, size_t path_bytes)
{
    scan->path_bytes = path_bytes;
    scan->path[path_bytes] = '\0';
}

char scan_peek(JsonScan *scan)
{
    while (scan->at < scan->text.size) {
        char byte = (char)scan->text.bytes[scan->at];
        if (byte != ' ' && byte != '\t' && byte != '\n' && byte != '\r') return byte;
        scan->at++;
    }
    return '\0';
}

bool scan_take(JsonScan *scan, char expected)
{
    if (scan_peek(scan) != expected || scan->at >= scan->text.size) return false;
    scan->at++;
    return true;
}

static bool is_word_byte(uint8_t byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_' ||
           (byte >= '0' && byte <= '9');
}

bool scan_take_word(JsonScan *scan, const char *word)
{
    (void)scan_peek(scan);
    Slice rest = slice_skip(scan->text, scan->at), wanted = slice_of(word);
    if (!slice_starts_with(rest, wanted)) return false;
    if (rest.size > wanted.size && is_word_byte(rest.bytes[wanted.size])) return false;
    scan->at += wanted.size;
    return true;
}

// Finds the closing quote: the string's raw bytes.
static Error find_string_end(JsonScan *scan, size_t *out_end)
{
    size_t start = scan->at;
    for (size_t i = start + 1; i < scan->text.size; i++) {
        uint8_t byte = scan->text.bytes[i];
        if (byte == '"') {
            *out_end = i;
            return ERROR_NONE;
        }
        if (byte == '\\') i++;
        if (byte < 0x20) {
            return scan_fail(scan, i,
                             byte == '\n' ? "a line ends inside a string; write \\n instead"
                                          : "a control character inside a string; write it as \\u");
        }
    }
    return scan_fail(scan, start, "this string has no end");
}

static bool read_hex(const JsonScan *scan, size_t at, uint32_t *out)
{
    if (scan->text.size - at < 4) return false;
    *out = 0;
    for (size_t i = 0; i < 4; i++) {
        uint8_t byte = scan->text.bytes[at + i];
        uint32_t digit = byte >= '0' && byte <= '9'   ? byte - (uint32_t)'0'
                         : byte >= 'a' && byte <= 'f' ? byte - (uint32_t)'a' + 10
                         : byte >= 'A' && byte <= 'F' ? byte - (uint32_t)'A' + 10
                                                      : 16;
        if (digit == 16) return false;
        *out = *out << 4 | digit;
    }
    return true;
}

static size_t put_code_point(char *out, uint32_t point)
{
    size_t size = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const uint8_t LEAD[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = size; i > 1; i--) {
        out[i - 1] = (char)(0x80 | (point & 0x3f));
        point >>= 6;
    }
    out[0] = (char)(LEAD[size] | point);
    return size;
}

// \uXXXX, or two of them for one code point beyond the first 65 536. `at` is at the backslash.
static Error decode_unicode(JsonScan *scan, size_t *in_out_at, uint32_t *out_point)
{
    size_t at = *in_out_at;
    uint32_t low;
    if (!read_hex(scan, at + 2, out_point)) {
        return scan_fail(scan, at, "\\u needs four hexadecimal digits");
    }
    *in_out_at = at + 6;
    if (*out_point == 0) return scan_fail(scan, at, "a text may not hold a NUL");
    if (*out_point < 0xd800 || *out_point >= 0xe000) return ERROR_NONE;
    bool is_pair = *out_point < 0xdc00 && scan->text.size - at > 12 &&
                   scan->text.bytes[at + 6] == '\\' && scan->text.bytes[at + 7] == 'u' &&
                   read_hex(scan, at + 8, &low) && low >= 0xdc00 && low < 0xe000;
    if (!is_pair) return scan_fail(scan, at, "half of a surrogate pair alone is no character");
    *out_point = 0x10000 + ((*out_point - 0xd800) << 10) + (low - 0xdc00);
    *in_out_at = at + 12;
    return ERROR_NONE;
}

static Error decode_escape(JsonScan *scan, size_t *in_out_at, uint32_t *out_point)
{
    static const char LETTERS[] = "\"\\/bfnrt", MEANT[] = "\"\\/\b\f\n\r\t";
    uint8_t letter = scan->text.bytes[*in_out_at + 1];
    if (letter == 'u') return decode_unicode(scan, in_out_at, out_point);
    const char *found = letter ? strchr(LETTERS, letter) : NULL;
    if (!found) {
        return scan_fail(scan, *in_out_at, "no such escape; a backslash itself is written as \\\\");
    }
    *out_point = (uint8_t)MEANT[found - LETTERS];
    *in_out_at += 2;
    return ERROR_NONE;
}

Error scan_string(JsonScan *scan, char **out_text, size_t *out_bytes)
{
    if (scan_peek(scan) != '"') return scan_fail_expected(scan, "a string");
    size_t end = 0;
    Error error = find_string_end(scan, &end);
    if (error) return error;
    char *text = scan_alloc(scan, end - scan->at, &error);
    if (!text) return error;
    size_t size = 0;
    for (size_t at = scan->at + 1; at < end && !error;) {
        if (scan->text.bytes[at] != '\\') {
            text[size++] = (char)scan->text.bytes[at++];
            continue;
        }
        uint32_t point = 0;
        error = decode_escape(scan, &at, &point);
        if (!error) size += put_code_point(text + size, point);
    }
    if (error) {
        free(text);
        return error;
    }
    scan->at = end + 1;
    *out_text = text;
    *out_bytes = size;
    return ERROR_NONE;
}

static bool is_number_byte(uint8_t byte)
{
    return (byte >= '0' && byte <= '9') || byte == '-' || byte == '+' || byte == '.' ||
           byte == 'e' || byte == 'E';
}

Error scan_number(JsonScan *scan, Slice *out)
{
    char first = scan_peek(scan);
    if (first != '-' && (first < '0' || first > '9')) return scan_fail_expected(scan, "a number");
    size_t start = scan->at;
    while (scan->at < scan->text.size && is_number_byte(scan->text.bytes[scan->at]))
        scan->at++;
    *out = slice(scan->text.bytes + start, scan->at - start);
    return ERROR_NONE;
}

Error scan_next(JsonScan *scan, char closing, bool *out_is_end)
{
    *out_is_end = scan_take(scan, closing);
    if (*out_is_end) return ERROR_NONE;
    if (!scan_take(scan, ',')) {
        return scan_fail_expected(scan, closing == '}' ? "',' or '}'" : "',' or ']'");
    }
    if (scan_peek(scan) != closing) return ERROR_NONE;
    return scan_fail(scan, scan->at, "a comma with nothing after it");
}
