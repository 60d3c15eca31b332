// UTF-8: checked once at the edge; previews are cut on a code point.

#pragma once

#include "base/slice.h"

// Whether the bytes are well-formed UTF-8 (no surrogates, no overlong forms, at most U+10FFFF).
// Fast on ASCII (8 bytes at a time).
bool utf8_is_valid(Slice text);

// The longest prefix of valid text of at most `bytes_max` bytes that ends on a code point.
Slice utf8_cut(Slice text, size_t bytes_max);

// Without leading and trailing Unicode white space (the White_Space property).
Slice utf8_trim(Slice text);

// Whether `needle` occurs in `haystack`, both folded to lower case one code point at a time.
// `folded_needle` was made by utf8_fold. Compares ASCII without decoding.
bool utf8_contains_folded(Slice haystack, Slice folded_needle);

// Folds to lower case into `out` (at most `out_bytes_max` bytes). Returns the bytes written, or
// SIZE_MAX if they did not fit. A code point's lower case may be longer than itself: 3 × is enough.
size_t utf8_fold(Slice text, uint8_t *out, size_t out_bytes_max);
