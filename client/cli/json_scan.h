// Reading JSON, below messages: white space, punctuation, strings and numbers of one text, and the
// sentence that says where it went wrong.

#pragma once

#include <protobuf-c/protobuf-c.h>

#include "base/error.h"
#include "base/slice.h"
#include "report/error_detail.h"

enum {
    JSON_PATH_BYTES_MAX = 256,
    JSON_MEMORY_BYTES_MAX = 256 * 1024 * 1024, // what one text may be once it is read
};

typedef struct JsonScan {
    Slice text;
    size_t at;           // the next byte
    size_t lines_before; // of a file whose one line this is
    ErrorDetail *detail;
    size_t memory_bytes;            // taken so far
    size_t path_bytes;              // of the field that is being read …
    char path[JSON_PATH_BYTES_MAX]; // … "message.parts[2].text"; cut when it is too long
} JsonScan;

// Begins at the first byte. ERROR_INVALID_ARGUMENT: not UTF-8. ERROR_TOO_LONG.
MUST_USE Error scan_begin(JsonScan *scan, Slice text, ErrorDetail *detail);

// Says what is wrong at a byte of the text: line, column, path, and this sentence.
MUST_USE Error scan_fail(JsonScan *scan, size_t at, const char *format, ...) PRINTF_LIKE(3, 4);

// Says that something else was expected at the next byte, and what stands there.
MUST_USE Error scan_fail_expected(JsonScan *scan, const char *expected);

// Zeroed memory, the caller's. NULL, said in `out_error`: over the budget, or there is none.
void *scan_alloc(JsonScan *scan, size_t size, Error *out_error);

// Goes into a field, or an element of a list; scan_leave goes back to what scan_enter returned.
size_t scan_enter(JsonScan *scan, const char *name);
size_t scan_enter_index(JsonScan *scan, size_t index);
void scan_leave(JsonScan *scan, size_t path_bytes);

// The next byte that is no white space, without taking it; 0 at the end.
char scan_peek(JsonScan *scan);

// Takes this byte if it is the next.
bool scan_take(JsonScan *scan, char expected);

// Takes a word like "null" if it is next, and whole.
bool scan_take_word(JsonScan *scan, const char *word);

// A string, decoded: the caller's, freed with free, with a NUL behind. It holds none itself.
MUST_USE Error scan_string(JsonScan *scan, char **out_text, size_t *out_bytes);

// The characters of a number, as they stand.
MUST_USE Error scan_number(JsonScan *scan, Slice *out);

// One object as a message, as json_read does it (json_read.c).
MUST_USE Error scan_message(JsonScan *scan, const ProtobufCMessageDescriptor *type,
                            ProtobufCMessage **out_message);

// After an element of a list or a member of an object: takes the comma, or what closes it.
MUST_USE Error scan_next(JsonScan *scan, char closing, bool *out_is_end);
