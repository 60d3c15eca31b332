// Writing JSON strings: what needs no escape is written in one piece.

#include "text/json_write.h"

#include "text/base64.h"
#include "text/display.h"
#include "text/utf8.h"

enum { PIECE_BYTES = 3 * 1024 }; // of bytes in base64

static void write_unit(FILE *out, uint32_t unit)
{
    fprintf(out, "\\u%04x", (unsigned)unit);
}

static void write_escape(FILE *out, uint32_t code_point)
{
    switch (code_point) {
    case '"': fputs("\\\"", out); return;
    case '\\': fputs("\\\\", out); return;
    case '\b': fputs("\\b", out); return;
    case '\f': fputs("\\f", out); return;
    case '\n': fputs("\\n", out); return;
    case '\r': fputs("\\r", out); return;
    case '\t': fputs("\\t", out); return;
    default: break;
    }
    if (code_point < 0x10000) {
        write_unit(out, code_point);
    } else {
        write_unit(out, 0xD800 + ((code_point - 0x10000) >> 10));
        write_unit(out, 0xDC00 + ((code_point - 0x10000) & 0x3FF));
    }
}

// Returns how many bytes of a text may stand in a JSON string as they are: the size of its first
// code point, or 0.
typedef size_t PlainBytes(Slice text);

static bool is_plain_ascii(uint8_t byte)
{
    return byte >= ' ' && byte != '"' && byte != '\\';
}

static size_t plain_for_terminal(Slice text)
{
    if (text.bytes[0] < 0x7F) return is_plain_ascii(text.bytes[0]);
    CodePoint point = utf8_decode(text);
    return point.is_valid && !display_is_unsafe(point.value) ? point.size : 0;
}

static size_t plain_for_json(Slice text)
{
    return is_plain_ascii(text.bytes[0]);
}

static inline void write_piece(FILE *out, Slice text, PlainBytes *plain_bytes)
{
    while (text.size > 0) {
        size_t plain = 0, size = 1;
        while (plain < text.size && size > 0) {
            size = plain_bytes(slice_skip(text, plain));
            plain += size;
        }
        fwrite(text.bytes, 1, plain, out);
        text = slice_skip(text, plain);
        if (text.size == 0) return;
        CodePoint point = utf8_decode(text);
        if (point.is_valid) {
            write_escape(out, point.value);
        } else {
            fputs("\xEF\xBF\xBD", out); // U+FFFD
        }
        text = slice_skip(text, point.size);
    }
}

void json_write_text_piece(FILE *out, Slice text)
{
    write_piece(out, text, plain_for_terminal);
}

void json_write_text_as_js(FILE *out, Slice text)
{
    putc('"', out);
    write_piece(out, text, plain_for_json);
    putc('"', out);
}

void json_write_text(FILE *out, Slice text)
{
    putc('"', out);
    json_write_text_piece(out, text);
    putc('"', out);
}

void json_write_bytes_piece(FILE *out, Slice bytes)
{
    while (bytes.size > 0) {
        char text[PIECE_BYTES / 3 * 4];
        Slice piece = slice(bytes.bytes, bytes.size < PIECE_BYTES ? bytes.size : PIECE_BYTES);
        base64_encode(piece, text);
        fwrite(text, 1, base64_encoded_bytes(piece.size), out);
        bytes = slice_skip(bytes, piece.size);
    }
}

void json_write_bytes(FILE *out, Slice bytes)
{
    putc('"', out);
    json_write_bytes_piece(out, bytes);
    putc('"', out);
}

void json_write_value(FILE *out, Slice json)
{
    while (json.size > 0) {
        CodePoint point = utf8_decode(json);
        if (point.value == '\n' || point.value == '\r' || point.value == '\t') {
            putc(' ', out);
        } else if (point.value >= ' ' && point.value < 0x7F) {
            putc((int)point.value, out);
        } else {
            write_escape(out, point.is_valid ? point.value : UTF8_REPLACEMENT);
        }
        json = slice_skip(json, point.size);
    }
}
