// Log lines as JSON. A quoted value may contain quotes: it ends at a quote that is followed by the
// next key or by the end of the line.

#include "report/log_json.h"

#include <stdbool.h>

#include "text/utf8.h"

static bool is_key_byte(uint8_t byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '_';
}

// Returns whether the rest is empty, or begins with a blank, a key and a '='.
static bool is_boundary(Slice rest)
{
    if (rest.size == 0) return true;
    if (rest.bytes[0] != ' ') return false;
    size_t i = 1;
    while (i < rest.size && is_key_byte(rest.bytes[i]))
        i++;
    return i > 1 && i < rest.size && rest.bytes[i] == '=';
}

static size_t put_text(char *out, Slice text, bool is_utf8)
{
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.bytes[i];
        if (byte == '"' || byte == '\\') out[size++] = '\\';
        bool is_odd = byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !is_utf8);
        out[size++] = is_odd ? '?' : (char)byte;
    }
    return size;
}

// Takes the value at the beginning of `rest`, without its quotes.
static Slice take_value(Slice *rest)
{
    bool is_quoted = rest->size > 0 && rest->bytes[0] == '"';
    size_t start = is_quoted ? 1 : 0, end = start;
    while (end < rest->size) {
        Slice after = slice_skip(*rest, is_quoted ? end + 1 : end);
        if (is_quoted ? rest->bytes[end] == '"' && is_boundary(after) : is_boundary(after)) break;
        end++;
    }
    Slice value = {rest->bytes + start, end - start};
    *rest = slice_skip(*rest, is_quoted && end < rest->size ? end + 1 : end);
    return value;
}

size_t log_json(Slice line, char *out)
{
    bool is_utf8 = utf8_is_valid(line);
    size_t size = 0;
    out[size++] = '{';
    while (line.size > 0) {
        size_t key_size = 0;
        while (key_size < line.size && is_key_byte(line.bytes[key_size]))
            key_size++;
        if (key_size == 0 || key_size == line.size || line.bytes[key_size] != '=') break;
        if (size > 1) out[size++] = ',';
        out[size++] = '"';
        size += put_text(out + size, (Slice){line.bytes, key_size}, is_utf8);
        out[size++] = '"';
        out[size++] = ':';
        out[size++] = '"';
        line = slice_skip(line, key_size + 1);
        size += put_text(out + size, take_value(&line), is_utf8);
        out[size++] = '"';
        line = slice_skip(line, 1); // the blank
    }
    out[size++] = '}';
    return size;
}
