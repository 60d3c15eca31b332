// Base64 (RFC 4648), both alphabets.

#pragma once

#include "base/slice.h"

typedef enum Base64Form {
    BASE64_LENIENT,   // either alphabet, padding may be missing, unused bits may be set
    BASE64_CANONICAL, // what base64_encode writes: decoding and encoding give the same text
} Base64Form;

// The characters that base64_encode writes, and the most bytes that base64_decode writes.
static inline size_t base64_encoded_bytes(size_t size)
{
    return (size + 2) / 3 * 4;
}

static inline size_t base64_decoded_bytes_max(size_t size)
{
    return size / 4 * 3 + 2;
}

// Writes base64_encoded_bytes(bytes.size) characters, padded, without a NUL.
void base64_encode(Slice bytes, char *out);

// Decodes into `out`, which has room for base64_decoded_bytes_max(text.size) bytes and may be
// `text` itself. Returns the bytes written, or SIZE_MAX if the text is not base64 of this form;
// `out` then holds anything.
size_t base64_decode(Slice text, Base64Form form, void *out);
