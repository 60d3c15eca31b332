// JSON in place. Skipping a value is finding its end, which well-formed text makes easy: quotes
// pair up, and so do brackets outside of them.

#include "importers/pi/pi_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/limits.h"
#include "text/json.h"
#include "text/utf8.h"

enum { NUMBER_BYTES_MAX = 64, REPLACEMENT = 0xfffd };

static size_t skip_space(Slice text, size_t at)
{
    while (at < text.size) {
        uint8_t byte = text.bytes[at];
        if (byte != ' ' && byte != '\t' && byte != '\n' && byte != '\r') break;
        at++;
    }
    return at;
}

// `at` is at the opening quote; returns what is behind the closing one.
static size_t skip_string(Slice text, size_t at)
{
    for (size_t from = at + 1; from < text.size;) {
        const uint8_t *quote = memchr(text.bytes + from, '"', text.size - from);
        if (!quote) break;
        size_t end = (size_t)(quote - text.bytes), escapes = 0;
        while (end - escapes > at + 1 && text.bytes[end - escapes - 1] == '\\')
            escapes++;
        if (escapes % 2 == 0) return end + 1;
        from = end + 1;
    }
    return text.size;
}

static size_t skip_brackets(Slice text, size_t at)
{
    size_t depth = 0;
    while (at < text.size) {
        uint8_t byte = text.bytes[at];
        if (byte == '"') {
            at = skip_string(text, at);
            continue;
        }
        at++;
        if (byte == '{' || byte == '[') depth++;
        if ((byte == '}' || byte == ']') && --depth == 0) return at;
    }
    return at;
}

static size_t skip_value(Slice text, size_t at)
{
    uint8_t byte = at < text.size ? text.bytes[at] : 0;
    if (byte == '"') return skip_string(text, at);
    if (byte == '{' || byte == '[') return skip_brackets(text, at);
    while (at < text.size && !strchr(",]} \t\r\n", text.bytes[at]))
        at++;
    return at;
}

PiWalk pi_walk(Slice value)
{
    bool is_open = pi_is_object(value) || pi_is_list(value);
    return (PiWalk){value, is_open ? 1 : value.size, pi_is_object(value)};
}

bool pi_walk_next(PiWalk *walk, Slice *out_key, Slice *out_value)
{
    Slice text = walk->text;
    size_t at = skip_space(text, walk->at);
    *out_key = (Slice){text.bytes + at, 0};
    if (at + 1 >= text.size) return false; // the closing bracket
    if (walk->is_object) {
        size_t end = skip_string(text, at);
        *out_key = slice(text.bytes + at, end - at);
        at = skip_space(text, skip_space(text, end) + 1);
    }
    size_t end = skip_value(text, at);
    *out_value = slice(text.bytes + at, end - at);
    end = skip_space(text, end);
    walk->at = end < text.size && text.bytes[end] == ',' ? end + 1 : end;
    return true;
}

static bool begins_with(Slice value, uint8_t byte)
{
    return value.size > 0 && value.bytes[0] == byte;
}

bool pi_is_text(Slice value)
{
    return begins_with(value, '"');
}

bool pi_is_object(Slice value)
{
    return begins_with(value, '{');
}

bool pi_is_list(Slice value)
{
    return begins_with(value, '[');
}

bool pi_is_true(Slice value)
{
    return begins_with(value, 't');
}

bool pi_is_false(Slice value)
{
    return begins_with(value, 'f');
}

static bool read_hex(Slice text, size_t at, uint32_t *out)
{
    if (text.size < at + 4) return false;
    char digits[5] = {0};
    memcpy(digits, text.bytes + at, 4);
    char *end = NULL;
    *out = (uint32_t)strtoul(digits, &end, 16);
    return end == digits + 4;
}

// What stands behind a backslash. Returns the bytes it takes, backslash included.
static size_t decode_escape(Slice text, size_t at, uint32_t *out)
{
    static const char LETTERS[] = "\"\\/bfnrt", MEANT[] = "\"\\/\b\f\n\r\t";
    uint8_t letter = at + 1 < text.size ? text.bytes[at + 1] : 0;
    const char *found = letter ? strchr(LETTERS, letter) : NULL;
    *out = found ? (uint8_t)MEANT[found - LETTERS] : REPLACEMENT;
    if (letter != 'u' || !read_hex(text, at + 2, out)) return 2;
    if (*out == 0) *out = REPLACEMENT;
    if (*out < 0xd800 || *out > 0xdfff) return 6;
    uint32_t low = 0;
    bool is_pair = *out < 0xdc00 && at + 12 <= text.size && text.bytes[at + 6] == '\\' &&
                   text.bytes[at + 7] == 'u' && read_hex(text, at + 8, &low) && low >= 0xdc00 &&
                   low <= 0xdfff;
    *out = is_pair ? 0x10000 + ((*out - 0xd800) << 10) + (low - 0xdc00) : REPLACEMENT;
    return is_pair ? 12 : 6;
}

static size_t put_point(char *out, uint32_t point)
{
    static const uint8_t LEAD[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t size = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = size; i > 1; i--) {
        out[i - 1] = (char)(0x80 | (point & 0x3f));
        point >>= 6;
    }
    out[0] = (char)(LEAD[size] | point);
    return size;
}

char *pi_mended(Arena *arena, Slice text)
{
    if (utf8_is_valid(text)) return arena_string(arena, text);
    char *out = arena_alloc(arena, 3 * text.size + 1);
    size_t size = 0;
    for (size_t at = 0; out && at < text.size;) {
        size_t good = 4 < text.size - at ? 4 : text.size - at;
        while (good > 0 && !utf8_is_valid(slice(text.bytes + at, good)))
            good--;
        if (good == 0) {
            size += put_point(out + size, REPLACEMENT);
            at++;
            continue;
        }
        memcpy(out + size, text.bytes + at, good);
        size += good;
        at += good;
    }
    if (out) out[size] = '\0';
    return out;
}

char *pi_text(Arena *arena, Slice value)
{
    static char empty[] = "";
    if (!pi_is_text(value) || value.size < 2) return empty;
    Slice inside = slice(value.bytes + 1, value.size - 2);
    if (!memchr(inside.bytes, '\\', inside.size)) return pi_mended(arena, inside);
    char *out = arena_alloc(arena, inside.size + 1);
    if (!out) return NULL;
    size_t size = 0;
    for (size_t at = 0; at < inside.size;) {
        uint32_t point = 0;
        if (inside.bytes[at] != '\\') {
            out[size++] = (char)inside.bytes[at++];
            continue;
        }
        at += decode_escape(inside, at, &point);
        size += put_point(out + size, point);
    }
    out[size] = '\0';
    return utf8_is_valid(slice(out, size)) ? out : pi_mended(arena, slice(out, size));
}

char *pi_raw(Arena *arena, Slice value)
{
    static char empty[] = "";
    char *text = pi_mended(arena, value);
    return !text || json_is_valid(slice_of(text), NULL) ? text : empty;
}

// Of a key that is written with escapes.
static bool escaped_key_is(Slice key, const char *name)
{
    if (key.size > 6 * strlen(name) + 2) return false;
    Arena arena;
    arena_init(&arena, 4096);
    const char *text = pi_text(&arena, key);
    bool is_same = text && strcmp(text, name) == 0;
    arena_free(&arena);
    return is_same;
}

// Which of the names a key is; `count` if none. Most are told apart by their first byte.
static size_t name_of(Slice key, const char *const *names, size_t count)
{
    bool is_escaped = memchr(key.bytes, '\\', key.size) != NULL;
    for (size_t i = 0; i < count; i++) {
        const char *name = names[i];
        if (is_escaped) {
            if (escaped_key_is(key, name)) return i;
        } else if (key.bytes[1] == (uint8_t)name[0]) {
            size_t size = strlen(name);
            if (key.size == size + 2 && memcmp(key.bytes + 1, name, size) == 0) return i;
        }
    }
    return count;
}

bool pi_key_is(Slice key, const char *name)
{
    return key.size >= 2 && name_of(key, &name, 1) == 0;
}

Error pi_members(Slice object, const char *const *names, size_t count, Slice *out, Buffer *rest)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (Slice){NULL, 0};
    PiWalk walk = pi_walk(object);
    Slice key, value;
    Error error = ERROR_NONE;
    while (walk.is_object && !error && pi_walk_next(&walk, &key, &value)) {
        size_t i = name_of(key, names, count);
        if (i < count) {
            out[i] = value;
        } else if (rest) {
            if (buffer_size(rest) > 0) error = buffer_append(rest, slice_of(","));
            if (!error) error = buffer_append(rest, key);
            if (!error) error = buffer_append(rest, slice_of(":"));
            if (!error) error = buffer_append(rest, value);
        }
    }
    return error;
}

// A number of digits alone, as nearly all are: a double holds each of so few exactly.
static bool read_digits(Slice text, int64_t *out)
{
    enum { EXACT_DIGITS = 15 };
    int64_t number = 0;
    if (text.size == 0 || text.size > EXACT_DIGITS) return false;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.bytes[i];
        if (byte < '0' || byte > '9') return false;
        number = 10 * number + (byte - '0');
    }
    *out = number;
    return true;
}

double pi_number(Slice value)
{
    int64_t digits;
    if (read_digits(value, &digits)) return (double)digits;
    char text[NUMBER_BYTES_MAX];
    bool is_number = value.size > 0 && value.size < sizeof(text) &&
                     (value.bytes[0] == '-' || (value.bytes[0] >= '0' && value.bytes[0] <= '9'));
    if (!is_number) return 0;
    memcpy(text, value.bytes, value.size);
    text[value.size] = '\0';
    return strtod(text, NULL);
}

int64_t pi_round(double number)
{
    if (!(number > -9e18 && number < 9e18)) return 0;
    return number < 0 ? -(int64_t)(0.5 - number) : (int64_t)(number + 0.5);
}

int64_t pi_integer(Slice value)
{
    return pi_round(pi_number(value));
}

static int64_t days_since_epoch(int64_t year, int64_t month, int64_t day)
{
    // Years that begin in March end with their leap day. See Howard Hinnant, "chrono-compatible
    // low-level date algorithms".
    if (month <= 2) year--;
    int64_t era = year / 400, of_era = year % 400;
    int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719468;
}

// A time as pi itself writes it, "2025-11-20T10:00:00.000Z", in its quotes. Each entry has one, and
// sscanf takes longer for it than the rest of the entry's numbers together.
static bool read_own_time(Slice value, int64_t *out_ms)
{
    static const char PATTERN[] = "\"dddd-dd-ddTdd:dd:dd.dddZ\"";
    enum { SIZE = sizeof(PATTERN) - 1 };
    if (value.size != SIZE) return false;
    int64_t numbers[7] = {0}; // year, month, day, hour, minute, second, millisecond
    size_t at = 0;
    for (size_t i = 1; i < SIZE - 1; i++) {
        uint8_t byte = value.bytes[i];
        if (PATTERN[i] == 'd') {
            if (byte < '0' || byte > '9') return false;
            numbers[at] = 10 * numbers[at] + (byte - '0');
        } else {
            if (byte != PATTERN[i]) return false;
            at++;
        }
    }
    bool is_date = numbers[1] >= 1 && numbers[1] <= 12 && numbers[2] >= 1 && numbers[2] <= 31;
    if (!is_date || numbers[3] > 23 || numbers[4] > 59 || numbers[5] > 59) return false;
    int64_t days = days_since_epoch(numbers[0], numbers[1], numbers[2]);
    int64_t seconds = ((days * 24 + numbers[3]) * 60 + numbers[4]) * 60 + numbers[5];
    *out_ms = seconds * 1000 + numbers[6];
    return true;
}

int64_t pi_time_ms(Slice value)
{
    char text[NUMBER_BYTES_MAX], zone[8] = "", sign;
    int64_t own_ms;
    if (read_own_time(value, &own_ms)) return own_ms > 0 ? own_ms : 0;
    if (!pi_is_text(value) || value.size >= sizeof(text)) return 0;
    memcpy(text, value.bytes + 1, value.size - 2);
    text[value.size - 2] = '\0';
    struct tm parts = {.tm_mday = 1};
    double seconds = 0;
    int hours = 0, minutes = 0;
    int read = sscanf(text, "%4d-%2d-%2dT%2d:%2d:%lf%7s", &parts.tm_year, &parts.tm_mon,
                      &parts.tm_mday, &parts.tm_hour, &parts.tm_min, &seconds, zone);
    if (read < 6 || parts.tm_mon < 1 || parts.tm_mon > 12 || parts.tm_mday < 1 ||
        parts.tm_mday > 31 || parts.tm_hour < 0 || parts.tm_hour > 24 || parts.tm_min < 0 ||
        parts.tm_min > 59 || !(seconds >= 0 && seconds < 61))
        return 0;
    parts.tm_year -= 1900;
    parts.tm_mon -= 1;
    int64_t offset = 0;
    if (zone[0] == '+' || zone[0] == '-') {
        if (sscanf(zone, "%c%2d:%2d", &sign, &hours, &minutes) != 3) return 0;
        offset = (sign == '-' ? -60 : 60) * (60 * hours + minutes);
    }
    int64_t time_ms = ((int64_t)timegm(&parts) - offset) * 1000 + pi_round(seconds * 1000);
    return time_ms > 0 && time_ms <= TIME_MS_MAX ? time_ms : 0;
}

void pi_time_write(int64_t time_ms, char out[PI_TIME_BYTES])
{
    time_t seconds = time_ms / 1000;
    struct tm parts;
    char text[PI_TIME_BYTES];
    gmtime_r(&seconds, &parts);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(out, PI_TIME_BYTES, "%.20s.%03dZ", text, (int)(time_ms % 1000));
}
