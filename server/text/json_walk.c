// A value is skipped by finding its end, which is easy in well-formed text: quotes pair up, and so
// do the brackets outside of strings.

#include "text/json_walk.h"

#include <stdlib.h>

#include "text/json_scan.h"
#include "text/utf8.h"

enum { NUMBER_BYTES_MAX = 64, ESCAPED_KEY_BYTES_MAX = 4096 };

static size_t skip_brackets(Slice text, size_t at)
{
    size_t depth = 0;
    while (at < text.size) {
        uint8_t byte = text.bytes[at];
        if (byte == '"') {
            at = json_string_skip(text, at);
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
    if (byte == '"') return json_string_skip(text, at);
    if (byte == '{' || byte == '[') return skip_brackets(text, at);
    while (at < text.size && !strchr(",]} \t\r\n", text.bytes[at]))
        at++;
    return at;
}

JsonWalk json_walk(Slice value)
{
    bool is_open = json_is_object(value) || json_is_list(value);
    return (JsonWalk){value, is_open ? 1 : value.size, json_is_object(value)};
}

bool json_walk_next(JsonWalk *walk, Slice *out_key, Slice *out_value)
{
    Slice text = walk->text;
    size_t at = json_skip_space(text, walk->at);
    *out_key = (Slice){text.bytes + at, 0};
    if (at + 1 >= text.size) return false; // the closing bracket
    if (walk->is_object) {
        size_t end = json_string_skip(text, at);
        *out_key = slice(text.bytes + at, end - at);
        at = json_skip_space(text, json_skip_space(text, end) + 1);
    }
    size_t end = skip_value(text, at);
    *out_value = slice(text.bytes + at, end - at);
    end = json_skip_space(text, end);
    walk->at = end < text.size && text.bytes[end] == ',' ? end + 1 : end;
    return true;
}

static bool begins_with(Slice value, uint8_t byte)
{
    return value.size > 0 && value.bytes[0] == byte;
}

bool json_is_text(Slice value)
{
    return begins_with(value, '"');
}

bool json_is_object(Slice value)
{
    return begins_with(value, '{');
}

bool json_is_list(Slice value)
{
    return begins_with(value, '[');
}

bool json_is_true(Slice value)
{
    return begins_with(value, 't');
}

bool json_is_false(Slice value)
{
    return begins_with(value, 'f');
}

char *json_text(Arena *arena, Slice value)
{
    static char empty[] = "";
    if (!json_is_text(value) || value.size < 2) return empty;
    Slice inside = slice(value.bytes + 1, value.size - 2);
    char *out = arena_alloc(arena, inside.size + 1);
    if (!out) return NULL;
    size_t size = 0;
    bool is_good = json_string_decode(inside, out, &size) == JSON_FAULT_NONE &&
                   utf8_is_valid(slice(out, size));
    if (!is_good) {
        out = arena_alloc(arena, UTF8_REPLACEMENT_BYTES * inside.size + 1);
        if (!out) return NULL;
        size = json_string_mend(inside, out);
    }
    out[size] = '\0';
    return out;
}

// Compares a key that is written with escapes.
static bool escaped_key_is(Slice key, const char *name)
{
    char decoded[ESCAPED_KEY_BYTES_MAX];
    size_t size = 0;
    if (key.size > sizeof(decoded)) return false;
    Slice inside = slice(key.bytes + 1, key.size - 2);
    if (json_string_decode(inside, decoded, &size)) return false;
    return slice_equal(slice(decoded, size), slice_of(name));
}

// Returns which of the names a key is; `count` if it is none. Most names differ in their first
// byte.
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

bool json_key_is(Slice key, const char *name)
{
    return key.size >= 2 && name_of(key, &name, 1) == 0;
}

Error json_members(Slice object, const char *const *names, size_t count, Slice *out, Buffer *rest)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (Slice){NULL, 0};
    JsonWalk walk = json_walk(object);
    Slice key, value;
    Error error = ERROR_NONE;
    while (walk.is_object && !error && json_walk_next(&walk, &key, &value)) {
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

// Reads a number that has only digits, as nearly all do. A double holds so few digits exactly.
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

double json_number(Slice value)
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

int64_t json_round(double number)
{
    if (!(number > -9e18 && number < 9e18)) return 0;
    return number < 0 ? -(int64_t)(0.5 - number) : (int64_t)(number + 0.5);
}

int64_t json_integer(Slice value)
{
    return json_round(json_number(value));
}
