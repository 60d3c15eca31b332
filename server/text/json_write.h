// Writing JSON strings.

#pragma once

#include <stdio.h>

#include "base/slice.h"

// Writes a text as a JSON string with its quotes. Whatever display_is_unsafe is written as \u
// escapes, so the JSON can be looked at on a terminal as it is. Bytes that are not UTF-8 become
// U+FFFD.
void json_write_text(FILE *out, Slice text);

// Writes a text as JSON.stringify does: only what JSON requires is escaped. For files of other
// programs; not for a terminal. `text` must be UTF-8.
void json_write_text_as_js(FILE *out, Slice text);

// Writes bytes in base64 with quotes.
void json_write_bytes(FILE *out, Slice bytes);

// The same without quotes, for strings that are written in pieces. Every piece but the last ends
// between two code points, or has a multiple of 3 bytes.
void json_write_text_piece(FILE *out, Slice text);
void json_write_bytes_piece(FILE *out, Slice bytes);

// Writes a JSON value on one line: white space between its tokens becomes spaces, and everything
// that is not printable ASCII becomes \u escapes, also if `json` is not valid JSON.
void json_write_value(FILE *out, Slice json);
