// Reads JSON that a person wrote. To the tokens (text/json_scan.h) it adds the path of the current
// field, a budget of memory, and errors that name line and column.

#pragma once

#include "base/error.h"
#include "report/error_detail.h"
#include "text/json_scan.h"

enum {
    JSON_TEXT_BYTES_MAX = 128 * 1024 * 1024,
    JSON_MEMORY_BYTES_MAX = 256 * 1024 * 1024, // that one text may take once it is read
    JSON_PATH_BYTES_MAX = 256,
};

typedef struct JsonReader {
    JsonScan scan;
    size_t lines_before; // of a file of which this text is one line
    ErrorDetail *detail; // borrowed
    size_t memory_bytes; // allocated so far
    size_t path_bytes;
    char path[JSON_PATH_BYTES_MAX]; // "message.parts[2].text"; cut when it is too long
} JsonReader;

// Begins at the first byte. ERROR_INVALID_ARGUMENT: not UTF-8. ERROR_TOO_LONG: more than
// JSON_TEXT_BYTES_MAX.
MUST_USE Error json_reader_begin(JsonReader *reader, Slice text, ErrorDetail *detail);

// Returns ERROR_INVALID_ARGUMENT; the detail says line, column and path of the byte `at`, and this
// sentence.
MUST_USE Error json_reader_fail(JsonReader *reader, size_t at, const char *format, ...)
    PRINTF_LIKE(3, 4);

// The same for the next token: what was expected there, and what there is instead.
MUST_USE Error json_reader_fail_expected(JsonReader *reader, const char *expected);

// Returns zeroed memory that the caller frees, or NULL with the reason in `out_error`: past the
// budget, or ERROR_OUT_OF_MEMORY.
void *json_reader_alloc(JsonReader *reader, size_t size, Error *out_error);

// Adds a field, or an element of a list, to the path. Give the result to json_reader_leave to
// remove it again.
size_t json_reader_enter(JsonReader *reader, const char *name);
size_t json_reader_enter_index(JsonReader *reader, size_t index);
void json_reader_leave(JsonReader *reader, size_t path_bytes);

// Takes a string and decodes it. The caller frees `out_text`, which has a NUL behind it and none
// inside.
MUST_USE Error json_reader_string(JsonReader *reader, char **out_text, size_t *out_bytes);

// Takes the characters of a number.
MUST_USE Error json_reader_number(JsonReader *reader, Slice *out);

// After an element of a list or a member of an object: takes the comma or the closing bracket.
MUST_USE Error json_reader_next(JsonReader *reader, char closing, bool *out_is_end);
