// Text is read one code point at a time. What is safe goes out as it is; the rest by its name.

#include "text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <wchar.h>

typedef struct CodePoint {
    uint32_t value;
    size_t size;   // bytes it takes
    bool is_valid; // else `value` is a byte
} CodePoint;

enum { SHOWN_BYTES_MAX = 16, COLUMN_BYTES_MAX = 16 };

// The wire promises UTF-8, but arguments and files do not.
static CodePoint decode(const uint8_t *bytes, size_t size)
{
    uint8_t first = bytes[0];
    if (first < 0x80) return (CodePoint){first, 1, true};
    size_t wanted = first >= 0xf0 && first < 0xf5 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
    if (first >= 0xf5 || wanted == 0 || wanted > size) return (CodePoint){first, 1, false};
    static const uint32_t LEAST[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t value = first & (0xffu >> (wanted + 1));
    for (size_t i = 1; i < wanted; i++) {
        if ((bytes[i] & 0xc0) != 0x80) return (CodePoint){first, 1, false};
        value = value << 6 | (bytes[i] & 0x3f);
    }
    bool is_valid =
        value >= LEAST[wanted] && value <= 0x10ffff && !(value >= 0xd800 && value < 0xe000);
    return is_valid ? (CodePoint){value, wanted, true} : (CodePoint){first, 1, false};
}

// Code points that act, or hide, where they are printed.
static bool is_unsafe(uint32_t value)
{
    if (value >= ' ' && value < 0x7f) return false;
    static const struct {
        uint32_t first, last;
    } RANGES[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},       {0x61c, 0x61c},   {0x180e, 0x180e},
        {0x200b, 0x200c}, {0x200e, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f}, {0xfeff, 0xfeff},
        {0xfff9, 0xfffb}, {0xe000, 0xf8ff}, {0xe0000, 0xe0fff},
    };
    for (size_t i = 0; i < sizeof(RANGES) / sizeof(*RANGES); i++) {
        if (value >= RANGES[i].first && value <= RANGES[i].last) return true;
    }
    return false;
}

static size_t columns_of(uint32_t value)
{
    if (value >= ' ' && value < 0x7f) return 1;
    int columns = wcwidth((wchar_t)value);
    return columns > 0 ? (size_t)columns : 0;
}

// How a code point is shown on a terminal. Returns the columns.
static size_t show(CodePoint point, const uint8_t *bytes, char out[SHOWN_BYTES_MAX])
{
    int size;
    if (!point.is_valid) {
        size = snprintf(out, SHOWN_BYTES_MAX, "<%02X>", point.value);
    } else if (point.value == 0x7f) {
        size = snprintf(out, SHOWN_BYTES_MAX, "^?");
    } else if (point.value < 0x20) {
        size = snprintf(out, SHOWN_BYTES_MAX, "^%c", (char)(point.value + '@'));
    } else if (is_unsafe(point.value)) {
        size = snprintf(out, SHOWN_BYTES_MAX, "<U+%04X>", point.value);
    } else {
        memcpy(out, bytes, point.size);
        out[point.size] = '\0';
        return columns_of(point.value);
    }
    return (size_t)size;
}

// As a cell of a line for programs: one that can be read back.
static size_t show_plain(CodePoint point, const uint8_t *bytes, char out[SHOWN_BYTES_MAX])
{
    const char *escaped = NULL;
    switch (point.is_valid ? point.value : 'x') {
    case '\t': escaped = "\\t"; break;
    case '\n': escaped = "\\n"; break;
    case '\r': escaped = "\\r"; break;
    case '\\': escaped = "\\\\"; break;
    default: break;
    }
    if (escaped) {
        snprintf(out, SHOWN_BYTES_MAX, "%s", escaped);
    } else {
        memcpy(out, bytes, point.size);
        out[point.size] = '\0';
    }
    return columns_of(point.value);
}

// White space of any kind is a space in a line on a terminal.
static bool is_blank(uint32_t value)
{
    return value == '\n' || value == '\r' || value == '\t';
}

// A text that grows. After a failure it has no bytes and takes no more.
typedef struct Line {
    char *bytes;
    size_t size, capacity;
    bool is_failed;
} Line;

static void line_add(Line *line, const char *bytes, size_t size)
{
    if (line->is_failed) return;
    if (line->size + size >= line->capacity) {
        size_t capacity = 2 * (line->size + size) + SHOWN_BYTES_MAX;
        char *larger = realloc(line->bytes, capacity);
        if (!larger) {
            free(line->bytes);
            *line = (Line){.is_failed = true};
            return;
        }
        line->bytes = larger;
        line->capacity = capacity;
    }
    memcpy(line->bytes + line->size, bytes, size);
    line->size += size;
}

char *text_line(const char *text, TextUse use, size_t columns_max)
{
    static const char ELLIPSIS[] = "…";
    Line line = {0};
    Slice rest = slice_of(text);
    size_t columns = 0, before_last = 0; // `before_last`: cut there, "…" has room
    while (rest.size > 0) {
        char shown[SHOWN_BYTES_MAX] = " ";
        CodePoint point = decode(rest.bytes, rest.size);
        size_t more = 1;
        if (use == TEXT_PLAIN) {
            more = show_plain(point, rest.bytes, shown);
        } else if (!is_blank(point.value)) {
            more = show(point, rest.bytes, shown);
        }
        bool is_heap = line.size >= columns_max * COLUMN_BYTES_MAX; // of marks without width
        if (columns_max > 0 && (columns + more > columns_max || is_heap)) {
            line.size = before_last;
            line_add(&line, ELLIPSIS, strlen(ELLIPSIS));
            break;
        }
        line_add(&line, shown, strlen(shown));
        columns += more;
        if (columns < columns_max) before_last = line.size;
        rest = slice_skip(rest, point.size);
    }
    line_add(&line, "", 1);
    return line.bytes;
}

static void print_line(FILE *out, Slice line)
{
    size_t columns = 0, whole = line.size;
    while (line.size > 0) {
        char shown[SHOWN_BYTES_MAX];
        CodePoint point = decode(line.bytes, line.size);
        // By bytes too: marks that combine take no column, and may be heaped up without end.
        if (columns >= TEXT_LINE_COLUMNS_MAX || whole - line.size >= TEXT_LINE_BYTES_MAX) {
            fprintf(out, "… (%zu bytes more on this line; --json and pipes have all)", line.size);
            return;
        }
        if (point.value == '\t') {
            fputc('\t', out);
            columns += 8;
        } else {
            columns += show(point, line.bytes, shown);
            fputs(shown, out);
        }
        line = slice_skip(line, point.size);
    }
}

static size_t count_lines(Slice text)
{
    size_t count = 0;
    for (; text.size > 0; count++) {
        const uint8_t *end = memchr(text.bytes, '\n', text.size);
        text = slice_skip(text, end ? (size_t)(end - text.bytes) + 1 : text.size);
    }
    return count;
}

void text_print_block(FILE *out, Slice text, TextUse use, const char *indent, size_t lines_max)
{
    for (size_t count = 0; text.size > 0; count++) {
        if (use == TEXT_TERMINAL && lines_max > 0 && count == lines_max) {
            fprintf(out, "%s… (%zu lines more; --full has all)\n", indent, count_lines(text));
            return;
        }
        const uint8_t *end = memchr(text.bytes, '\n', text.size);
        size_t size = end ? (size_t)(end - text.bytes) : text.size;
        Slice line = {text.bytes, size};
        if (size > 0) fputs(indent, out);
        if (use == TEXT_PLAIN) {
            fwrite(line.bytes, 1, line.size, out);
        } else {
            if (size > 0 && line.bytes[size - 1] == '\r') line.size--;
            print_line(out, line);
        }
        fputc('\n', out);
        text = slice_skip(text, size + (end ? 1 : 0));
    }
}

size_t text_columns(const char *text)
{
    size_t columns = 0;
    for (Slice rest = slice_of(text); rest.size > 0;) {
        CodePoint point = decode(rest.bytes, rest.size);
        columns += columns_of(point.value);
        rest = slice_skip(rest, point.size);
    }
    return columns;
}
