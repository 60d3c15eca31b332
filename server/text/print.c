// The printer. Text is read one code point at a time and written as it is or by its name.

#include "text/print.h"

#include <errno.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text/display.h"
#include "text/json_write.h"
#include "text/utf8.h"

enum {
    SHOWN_BYTES_MAX = 16,  // of one code point, with a NUL
    COLUMN_BYTES_MAX = 16, // of what is shown: marks without width may be heaped up without end
    TAB_COLUMNS = 8,
    NUMBER_BYTES_MAX = 512, // a double with %f has up to 310 digits
    SPEC_BYTES_MAX = 16,
    STDOUT_BUFFER_BYTES = 64 * 1024,
};

Printer print_to_stdout(void)
{
    return (Printer){stdout, isatty(STDOUT_FILENO) ? PRINT_TERMINAL : PRINT_PLAIN, false};
}

Printer print_to_stderr(void)
{
    return (Printer){stderr, isatty(STDERR_FILENO) ? PRINT_TERMINAL : PRINT_PLAIN, false};
}

// Shows a code point of a terminal. Returns its columns.
static size_t show(CodePoint point, const uint8_t *bytes, char out[SHOWN_BYTES_MAX])
{
    int size;
    if (!point.is_valid) {
        size = snprintf(out, SHOWN_BYTES_MAX, "<%02X>", point.value);
    } else if (point.value == 0x7F) {
        size = snprintf(out, SHOWN_BYTES_MAX, "^?");
    } else if (point.value < 0x20) {
        size = snprintf(out, SHOWN_BYTES_MAX, "^%c", (char)(point.value + '@'));
    } else if (display_is_unsafe(point.value)) {
        size = snprintf(out, SHOWN_BYTES_MAX, "<U+%04X>", point.value);
    } else {
        memcpy(out, bytes, point.size);
        out[point.size] = '\0';
        return display_columns(point.value);
    }
    return (size_t)size;
}

// Shows a code point of a cell for programs, in a form that can be read back.
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
        memcpy(out, escaped, 3);
        return 2;
    }
    memcpy(out, bytes, point.size);
    out[point.size] = '\0';
    return display_columns(point.value);
}

// Shows a code point of one line. On a terminal, white space of any kind is a space.
static size_t show_in_line(CodePoint point, const uint8_t *bytes, PrintUse use,
                           char out[SHOWN_BYTES_MAX])
{
    if (use == PRINT_PLAIN) return show_plain(point, bytes, out);
    if (point.value != '\n' && point.value != '\r' && point.value != '\t') {
        return show(point, bytes, out);
    }
    memcpy(out, " ", 2);
    return 1;
}

// How much of a text is printed in so many columns.
typedef struct LineFit {
    size_t bytes;   // of the text
    size_t columns; // "…" included
    bool is_cut;    // ends with "…"
} LineFit;

static LineFit line_fit(Slice text, PrintUse use, size_t columns_max)
{
    LineFit fit = {0}, cut = {.is_cut = true, .columns = 1};
    size_t shown_bytes = 0;
    while (fit.bytes < text.size) {
        char shown[SHOWN_BYTES_MAX];
        Slice rest = slice_skip(text, fit.bytes);
        CodePoint point = utf8_decode(rest);
        size_t more = show_in_line(point, rest.bytes, use, shown);
        bool is_heap = shown_bytes >= columns_max * COLUMN_BYTES_MAX;
        if (columns_max > 0 && (fit.columns + more > columns_max || is_heap)) return cut;
        fit.bytes += point.size;
        fit.columns += more;
        shown_bytes += strlen(shown);
        if (fit.columns < columns_max) cut = (LineFit){fit.bytes, fit.columns + 1, true};
    }
    return fit;
}

static void write_line(FILE *file, Slice text, PrintUse use, LineFit fit)
{
    for (size_t at = 0; at < fit.bytes;) {
        char shown[SHOWN_BYTES_MAX];
        CodePoint point = utf8_decode(slice_skip(text, at));
        (void)show_in_line(point, text.bytes + at, use, shown);
        fputs(shown, file);
        at += point.size;
    }
    if (fit.is_cut) fputs("…", file);
}

char *print_line(const char *text, PrintUse use, size_t columns_max)
{
    char *line = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&line, &size);
    if (!file) return NULL;
    Slice whole = slice_of(text);
    write_line(file, whole, use, line_fit(whole, use, columns_max));
    if (fclose(file) == 0) return line;
    free(line);
    return NULL;
}

size_t print_columns(const char *text)
{
    size_t columns = 0;
    for (Slice rest = slice_of(text); rest.size > 0;) {
        CodePoint point = utf8_decode(rest);
        columns += display_columns(point.value);
        rest = slice_skip(rest, point.size);
    }
    return columns;
}

// One conversion of a format: "%-12.40s".
typedef struct Spec {
    char flags[8];
    int width, precision; // -1: not given
    char length;          // 'l', 'L' for ll, 'z', 'j', or 0
    char letter;
} Spec;

static int read_number(const char **at, va_list *arguments)
{
    if (**at == '*') {
        ++*at;
        return va_arg(*arguments, int);
    }
    int number = 0;
    for (; **at >= '0' && **at <= '9'; ++*at)
        number = 10 * number + (**at - '0');
    return number;
}

// Reads a conversion, behind its '%'. Returns what follows it.
static const char *spec_read(const char *at, va_list *arguments, Spec *out)
{
    *out = (Spec){.width = -1, .precision = -1};
    for (size_t i = 0; *at && strchr("-+ #0", *at) && i + 1 < sizeof(out->flags); i++)
        out->flags[i] = *at++;
    if (*at == '*' || (*at >= '0' && *at <= '9')) out->width = read_number(&at, arguments);
    if (*at == '.') {
        at++;
        out->precision = read_number(&at, arguments);
    }
    for (; *at && strchr("lzjh", *at); at++)
        out->length = *at == 'l' && out->length == 'l' ? 'L' : *at;
    out->letter = *at;
    return *at ? at + 1 : at;
}

static intmax_t signed_argument(char length, va_list *arguments)
{
    switch (length) {
    case 'l': return va_arg(*arguments, long);
    case 'L': return va_arg(*arguments, long long);
    case 'z': return va_arg(*arguments, ssize_t);
    case 'j': return va_arg(*arguments, intmax_t);
    default: return va_arg(*arguments, int); // h and hh are passed as int
    }
}

static uintmax_t unsigned_argument(char length, va_list *arguments)
{
    switch (length) {
    case 'l': return va_arg(*arguments, unsigned long);
    case 'L': return va_arg(*arguments, unsigned long long);
    case 'z': return va_arg(*arguments, size_t);
    case 'j': return va_arg(*arguments, uintmax_t);
    default: return va_arg(*arguments, unsigned);
    }
}

static void print_text(const Printer *out, const Spec *spec, const char *text)
{
    Slice whole = slice_of(text ? text : "(null)");
    LineFit fit = {0};
    if (spec->precision != 0) {
        fit = line_fit(whole, out->use, spec->precision > 0 ? (size_t)spec->precision : 0);
    }
    bool is_left = strchr(spec->flags, '-') != NULL;
    int padding = spec->width - (int)fit.columns;
    if (!is_left && padding > 0) fprintf(out->file, "%*s", padding, "");
    write_line(out->file, whole, out->use, fit);
    if (is_left && padding > 0) fprintf(out->file, "%*s", padding, "");
}

static void print_number(const Printer *out, const Spec *spec, va_list *arguments)
{
    char format[SPEC_BYTES_MAX], text[NUMBER_BYTES_MAX] = "";
    bool is_real = strchr("fFeEgG", spec->letter) != NULL;
    // A negative width or precision stands for none, as printf has it.
    snprintf(format, sizeof(format), "%%%s*.*%s%c", spec->flags, is_real ? "" : "j", spec->letter);
    int width = spec->width > 0 ? spec->width : 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (is_real) {
        snprintf(text, sizeof(text), format, width, spec->precision, va_arg(*arguments, double));
    } else if (spec->letter == 'd' || spec->letter == 'i') {
        snprintf(text, sizeof(text), format, width, spec->precision,
                 signed_argument(spec->length, arguments));
    } else {
        snprintf(text, sizeof(text), format, width, spec->precision,
                 unsigned_argument(spec->length, arguments));
    }
#pragma GCC diagnostic pop
    fputs(text, out->file);
}

// Returns the size of the style ("\033[…m") that a format begins with; 0 if it begins with none.
static size_t style_bytes(const char *at)
{
    if (at[0] != '\033' || at[1] != '[') return 0;
    size_t size = 2 + strspn(at + 2, "0123456789;");
    return at[size] == 'm' ? size + 1 : 0;
}

// Prints the first piece of a format without a conversion. Returns what follows it.
static const char *print_literal(const Printer *out, const char *at)
{
    size_t style = style_bytes(at);
    if (style > 0) {
        if (out->has_colour) fwrite(at, 1, style, out->file);
        return at + style;
    }
    size_t size = 1 + strcspn(at + 1, "%\033");
    fwrite(at, 1, size, out->file);
    return at + size;
}

void print_list(const Printer *out, const char *format, va_list arguments)
{
    va_list rest;
    va_copy(rest, arguments);
    int error = errno; // of %m
    while (*format) {
        if (*format != '%') {
            format = print_literal(out, format);
            continue;
        }
        Spec spec;
        format = spec_read(format + 1, &rest, &spec);
        char character[2] = "";
        switch (spec.letter) {
        case '%': fputc('%', out->file); break;
        case 's': print_text(out, &spec, va_arg(rest, const char *)); break;
        case 'm': print_text(out, &spec, strerror(error)); break;
        case 'c':
            character[0] = (char)va_arg(rest, int);
            print_text(out, &spec, character);
            break;
        default: print_number(out, &spec, &rest); break;
        }
    }
    va_end(rest);
}

void print(const Printer *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_list(out, format, arguments);
    va_end(arguments);
}

// A line of a block, on a terminal.
static void print_block_line(FILE *file, Slice line)
{
    size_t columns = 0, whole = line.size;
    while (line.size > 0) {
        char shown[SHOWN_BYTES_MAX];
        CodePoint point = utf8_decode(line);
        // By bytes too, for marks that take no column.
        if (columns >= PRINT_LINE_COLUMNS_MAX || whole - line.size >= PRINT_LINE_BYTES_MAX) {
            fprintf(file, "… (%zu bytes more on this line; --json and pipes have all)", line.size);
            return;
        }
        if (point.value == '\t') {
            fputc('\t', file);
            columns += TAB_COLUMNS;
        } else {
            columns += show(point, line.bytes, shown);
            fputs(shown, file);
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

void print_block(const Printer *out, Slice text, const char *indent, size_t lines_max)
{
    for (size_t count = 0; text.size > 0; count++) {
        if (out->use == PRINT_TERMINAL && lines_max > 0 && count == lines_max) {
            fprintf(out->file, "%s… (%zu lines more; --full has all)\n", indent, count_lines(text));
            return;
        }
        const uint8_t *end = memchr(text.bytes, '\n', text.size);
        size_t size = end ? (size_t)(end - text.bytes) : text.size;
        Slice line = {text.bytes, size};
        if (size > 0) fputs(indent, out->file);
        if (out->use == PRINT_PLAIN) {
            fwrite(line.bytes, 1, line.size, out->file);
        } else {
            if (size > 0 && line.bytes[size - 1] == '\r') line.size--;
            print_block_line(out->file, line);
        }
        fputc('\n', out->file);
        text = slice_skip(text, size + (end ? 1 : 0));
    }
}

void print_json_text(const Printer *out, Slice text)
{
    json_write_text(out->file, text);
}

void print_set_buffers(void)
{
    static char buffer[STDOUT_BUFFER_BYTES];
    (void)setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
    (void)setvbuf(stderr, NULL, _IOLBF, 0);
    (void)__fsetlocking(stdout, FSETLOCKING_BYCALLER);
}

bool print_flush(const Printer *out)
{
    static int first_error; // an earlier flush may have dropped what could not be written
    if (fflush(out->file) != 0 && first_error == 0) first_error = errno;
    if (!ferror(out->file)) return true;
    errno = first_error != 0 ? first_error : EIO;
    return false;
}
