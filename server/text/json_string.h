// JSON strings: finding their end and decoding them.

#pragma once

#include "base/slice.h"

typedef enum JsonFault {
    JSON_FAULT_NONE,
    JSON_FAULT_NO_END,    // at the opening quote
    JSON_FAULT_LINE_END,  // a line feed inside the string
    JSON_FAULT_CONTROL,   // another control character inside the string
    JSON_FAULT_ESCAPE,    // a backslash that begins no escape
    JSON_FAULT_HEX,       // \u without four hexadecimal digits
    JSON_FAULT_NUL,       // \u0000: JSON allows it, our texts do not
    JSON_FAULT_SURROGATE, // half of a surrogate pair: JSON allows it, UTF-8 does not
} JsonFault;

// Finds the closing quote of the string whose opening quote is at `at`. `out_end` is the byte after
// it, or, on a fault, where the fault is. Does not look into escapes. NO_END, LINE_END, CONTROL.
JsonFault json_string_end(Slice text, size_t at, size_t *out_end);

// The same for a string of well-formed JSON: returns the byte after the closing quote.
size_t json_string_skip(Slice text, size_t at);

// Decodes what is between the quotes into `out`, which has room for `inside.size` bytes. Returns
// the first fault (ESCAPE, HEX, NUL or SURROGATE), and then `out_bytes` is where it is in `inside`.
// Bytes outside of escapes are copied as they are.
JsonFault json_string_decode(Slice inside, char *out, size_t *out_bytes);

// The same for strings of other programs: writes U+FFFD for whatever is a fault or not UTF-8, and
// returns the bytes written. `out` has room for UTF8_REPLACEMENT_BYTES × inside.size.
size_t json_string_mend(Slice inside, char *out);
