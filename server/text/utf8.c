// UTF-8. All functions share one rule for what is well-formed (`sequence_size`). Where a rule needs
// code points, a malformed byte stands for itself.
//
// Lower case is that of the locale C.UTF-8, so it is the same in every process, whatever its
// environment says.

#include "text/utf8.h"

#include <locale.h>
#include <pthread.h>
#include <wctype.h>

#define HIGH_BITS UINT64_C(0x8080808080808080)

static size_t sequence_size(const uint8_t *bytes, size_t left);
static size_t ascii_size(const uint8_t *bytes, size_t size);
static size_t last_unit_size(Slice text);
static bool is_white_space(Slice unit);
static uint32_t decode(const uint8_t *bytes, size_t size);
static size_t fold_unit(const uint8_t *bytes, size_t left, uint8_t out[UTF8_BYTES_MAX],
                        size_t *out_size);

static bool is_continuation(uint8_t byte)
{
    return (byte & 0xC0) == 0x80;
}

static uint8_t ascii_lower(uint8_t byte)
{
    return byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte + ('a' - 'A')) : byte;
}

bool utf8_is_valid(Slice text)
{
    size_t at = 0;
    while (at < text.size) {
        if (text.bytes[at] < 0x80) {
            at += ascii_size(text.bytes + at, text.size - at);
            continue;
        }
        size_t size = sequence_size(text.bytes + at, text.size - at);
        if (size == 0) return false;
        at += size;
    }
    return true;
}

// Returns how many bytes of ASCII the text begins with.
static size_t ascii_size(const uint8_t *bytes, size_t size)
{
    size_t at = 0;
    while (size - at >= 4 * sizeof(uint64_t)) {
        uint64_t words[4];
        memcpy(words, bytes + at, sizeof words);
        if ((words[0] | words[1] | words[2] | words[3]) & HIGH_BITS) break;
        at += sizeof words;
    }
    while (size - at >= sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, bytes + at, sizeof word);
        if (word & HIGH_BITS) break;
        at += sizeof word;
    }
    while (at < size && bytes[at] < 0x80)
        at++;
    return at;
}

// Returns the size of the well-formed sequence that the bytes begin with, or 0 if they begin with
// none (Unicode 15, table 3-7).
static size_t sequence_size(const uint8_t *bytes, size_t left)
{
    uint8_t first = bytes[0];
    if (first < 0x80) return 1;
    if (first < 0xC2 || first > 0xF4) return 0;
    if (left < 2 || !is_continuation(bytes[1])) return 0;
    if (first < 0xE0) return 2;

    if (left < 3 || !is_continuation(bytes[2])) return 0;
    if (first == 0xE0 && bytes[1] < 0xA0) return 0; // overlong
    if (first == 0xED && bytes[1] > 0x9F) return 0; // a surrogate
    if (first < 0xF0) return 3;

    if (left < 4 || !is_continuation(bytes[3])) return 0;
    if (first == 0xF0 && bytes[1] < 0x90) return 0; // overlong
    if (first == 0xF4 && bytes[1] > 0x8F) return 0; // past U+10FFFF
    return 4;
}

CodePoint utf8_decode(Slice text)
{
    size_t size = sequence_size(text.bytes, text.size);
    if (size == 0) return (CodePoint){text.bytes[0], 1, false};
    return (CodePoint){decode(text.bytes, size), size, true};
}

size_t utf8_mend(Slice text, char *out)
{
    size_t written = 0;
    for (size_t at = 0; at < text.size;) {
        size_t size = sequence_size(text.bytes + at, text.size - at);
        if (size == 0) {
            written += utf8_encode(UTF8_REPLACEMENT, out + written);
            at++;
            continue;
        }
        memcpy(out + written, text.bytes + at, size);
        written += size;
        at += size;
    }
    return written;
}

Slice utf8_cut(Slice text, size_t bytes_max)
{
    if (text.size <= bytes_max) return text;
    size_t end = bytes_max;
    while (end > 0 && is_continuation(text.bytes[end]))
        end--;
    return slice(text.bytes, end);
}

Slice utf8_trim(Slice text)
{
    while (text.size > 0) {
        size_t size = sequence_size(text.bytes, text.size);
        if (size == 0 || !is_white_space(slice(text.bytes, size))) break;
        text = slice_skip(text, size);
    }
    while (text.size > 0) {
        size_t size = last_unit_size(text);
        if (!is_white_space(slice(text.bytes + text.size - size, size))) break;
        text.size -= size;
    }
    return text;
}

// Returns the size of the last code point, 1 for a malformed byte.
static size_t last_unit_size(Slice text)
{
    for (size_t size = 1; size <= UTF8_BYTES_MAX && size <= text.size; size++) {
        const uint8_t *unit = text.bytes + text.size - size;
        if (is_continuation(*unit)) continue;
        return sequence_size(unit, size) == size ? size : 1;
    }
    return 1;
}

static bool is_white_space(Slice unit)
{
    uint8_t first = unit.bytes[0];
    if (first < 0x80) return first == ' ' || (first >= '\t' && first <= '\r');
    if (unit.size == 1) return false;
    uint32_t code_point = decode(unit.bytes, unit.size);
    return code_point == 0x85 || code_point == 0xA0 || code_point == 0x1680 ||
           (code_point >= 0x2000 && code_point <= 0x200A) || code_point == 0x2028 ||
           code_point == 0x2029 || code_point == 0x202F || code_point == 0x205F ||
           code_point == 0x3000;
}

// `bytes` must be one well-formed sequence.
static uint32_t decode(const uint8_t *bytes, size_t size)
{
    if (size == 1) return bytes[0];
    uint32_t code_point = bytes[0] & (0x7Fu >> size);
    for (size_t i = 1; i < size; i++)
        code_point = code_point << 6 | (bytes[i] & 0x3Fu);
    return code_point;
}

size_t utf8_encode(uint32_t code_point, void *out_bytes)
{
    uint8_t *out = out_bytes;
    if (code_point < 0x80) {
        out[0] = (uint8_t)code_point;
        return 1;
    }
    size_t size = code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
    for (size_t i = size; i-- > 1;) {
        out[i] = (uint8_t)(0x80 | (code_point & 0x3F));
        code_point >>= 6;
    }
    out[0] = (uint8_t)((0xF00u >> size & 0xF0u) | code_point);
    return size;
}

enum { TWO_BYTES_FIRST = 0x80, TWO_BYTES_END = 0x800 };

static pthread_once_t lower_case_once = PTHREAD_ONCE_INIT;
static locale_t lower_case; // 0 if the host has no C.UTF-8; then only ASCII is folded

// Lower cases of the code points of two bytes (Latin, Greek, Cyrillic and others): asking the
// locale each time makes a search twice as slow. All of them are below U+10000.
static uint16_t two_bytes_lower[TWO_BYTES_END - TWO_BYTES_FIRST];

static void lower_case_open(void)
{
    lower_case = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    for (uint32_t code_point = TWO_BYTES_FIRST; code_point < TWO_BYTES_END; code_point++) {
        wint_t lower = lower_case ? towlower_l((wint_t)code_point, lower_case) : code_point;
        two_bytes_lower[code_point - TWO_BYTES_FIRST] = (uint16_t)lower;
    }
}

// The code point must not be ASCII.
static uint32_t code_point_lower(uint32_t code_point)
{
    // Chinese, Japanese, Yi and Korean have no case.
    if (code_point >= 0x2E80 && code_point <= 0xA4CF) return code_point;
    if (code_point >= 0xAC00 && code_point <= 0xD7A3) return code_point;

    pthread_once(&lower_case_once, lower_case_open);
    if (code_point < TWO_BYTES_END) return two_bytes_lower[code_point - TWO_BYTES_FIRST];
    if (!lower_case) return code_point;
    return (uint32_t)towlower_l((wint_t)code_point, lower_case);
}

// Folds the first code point of `bytes`. Returns the size it had.
static size_t fold_unit(const uint8_t *bytes, size_t left, uint8_t out[UTF8_BYTES_MAX],
                        size_t *out_size)
{
    size_t size = sequence_size(bytes, left);
    if (size <= 1) {
        out[0] = ascii_lower(bytes[0]);
        *out_size = 1;
        return 1;
    }
    *out_size = utf8_encode(code_point_lower(decode(bytes, size)), out);
    return size;
}

size_t utf8_fold(Slice text, uint8_t *out, size_t out_bytes_max)
{
    size_t written = 0;
    for (size_t at = 0; at < text.size;) {
        uint8_t folded[UTF8_BYTES_MAX];
        size_t folded_size;
        at += fold_unit(text.bytes + at, text.size - at, folded, &folded_size);
        if (folded_size > out_bytes_max - written) return SIZE_MAX;
        memcpy(out + written, folded, folded_size);
        written += folded_size;
    }
    return written;
}

// Returns whether the folded `text` starts with the needle.
static bool starts_with_folded(Slice text, Slice folded_needle)
{
    size_t at = 0;
    size_t matched = 0;
    while (matched < folded_needle.size) {
        if (at == text.size) return false;
        if (text.bytes[at] < 0x80) {
            if (ascii_lower(text.bytes[at]) != folded_needle.bytes[matched]) return false;
            at++;
            matched++;
            continue;
        }
        uint8_t folded[UTF8_BYTES_MAX];
        size_t size;
        at += fold_unit(text.bytes + at, text.size - at, folded, &size);
        if (size > folded_needle.size - matched) return false;
        if (memcmp(folded, folded_needle.bytes + matched, size) != 0) return false;
        matched += size;
    }
    return true;
}

// Returns whether the needle occurs in a haystack that is ASCII only.
static bool ascii_contains_folded(Slice haystack, Slice folded_needle)
{
    if (folded_needle.size > haystack.size) return false;
    uint8_t first = folded_needle.bytes[0];
    size_t starts = haystack.size - folded_needle.size + 1;
    for (size_t start = 0; start < starts; start++) {
        if (ascii_lower(haystack.bytes[start]) != first) continue;
        size_t at = 1;
        while (at < folded_needle.size &&
               ascii_lower(haystack.bytes[start + at]) == folded_needle.bytes[at]) {
            at++;
        }
        if (at == folded_needle.size) return true;
    }
    return false;
}

bool utf8_contains_folded(Slice haystack, Slice folded_needle)
{
    if (folded_needle.size == 0) return true;
    if (haystack.size == 0) return false;
    if (ascii_size(haystack.bytes, haystack.size) == haystack.size) {
        return ascii_contains_folded(haystack, folded_needle);
    }

    // An ASCII letter can have non-ASCII upper cases (U+212A, the Kelvin sign, folds to 'k'), so
    // every code point that is not ASCII is a possible start.
    uint8_t first = folded_needle.bytes[0];
    for (size_t at = 0; at < haystack.size;) {
        uint8_t byte = haystack.bytes[at];
        bool is_start = byte >= 0x80 || ascii_lower(byte) == first;
        if (is_start && starts_with_folded(slice_skip(haystack, at), folded_needle)) return true;
        size_t size = sequence_size(haystack.bytes + at, haystack.size - at);
        at += size > 0 ? size : 1;
    }
    return false;
}
