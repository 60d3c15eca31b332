// UTF-8: validity, decoding, encoding, cutting, trimming and searching without regard to case.
//
// Text is checked once, when it arrives, but it may also come from a file, an argument or a damaged
// disk: every function except utf8_cut and utf8_contains_folded says what it does with malformed
// bytes, and none reads out of bounds on them.

#pragma once

#include "base/slice.h"

enum {
    UTF8_BYTES_MAX = 4,        // of one code point
    UTF8_REPLACEMENT = 0xFFFD, // stands for what is not a character
    UTF8_REPLACEMENT_BYTES = 3,
};

typedef struct CodePoint {
    uint32_t value; // the byte itself if `is_valid` is false
    size_t size;    // how many bytes it takes: 1 to 4
    bool is_valid;  // false: a byte that belongs to no well-formed sequence
} CodePoint;

// Returns whether the bytes are well-formed UTF-8 (no surrogates, no overlong forms, at most
// U+10FFFF). Fast on ASCII.
bool utf8_is_valid(Slice text);

// Decodes the first code point of `text`, which must not be empty.
CodePoint utf8_decode(Slice text);

// Writes a code point and returns how many bytes it takes. `out` needs room for UTF8_BYTES_MAX.
// `code_point` must be one that UTF-8 can hold: no surrogate, at most U+10FFFF.
size_t utf8_encode(uint32_t code_point, void *out);

// Copies `text` and writes U+FFFD for each malformed byte. Returns the bytes written. `out` needs
// room for UTF8_REPLACEMENT_BYTES × text.size.
size_t utf8_mend(Slice text, char *out);

// Returns the longest prefix of valid text that has at most `bytes_max` bytes and ends between code
// points.
Slice utf8_cut(Slice text, size_t bytes_max);

// Returns the text without leading and trailing Unicode white space (the White_Space property). A
// malformed byte is not white space.
Slice utf8_trim(Slice text);

// Returns whether the needle occurs in `haystack`, folded to lower case one code point at a time.
// `folded_needle` must come from utf8_fold. ASCII is compared without decoding.
bool utf8_contains_folded(Slice haystack, Slice folded_needle);

// Folds to lower case into `out` (at most `out_bytes_max` bytes); a malformed byte is copied.
// Returns the bytes written, or SIZE_MAX if they did not fit. The lower case of a code point may be
// longer than the code point itself: 3 × text.size bytes are enough.
size_t utf8_fold(Slice text, uint8_t *out, size_t out_bytes_max);
