// Written JSON strings: escapes, what is unsafe on a terminal, and bytes.

#include "text/json_write.h"

#include <stdlib.h>

#include "harness.h"
#include "text/display.h"
#include "text/json.h"
#include "text/json_string.h"
#include "text/utf8.h"

typedef void Writer(FILE *out, Slice text);

static void check_written(Writer *writer, Slice text, const char *expected)
{
    char *written = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&written, &size);
    CHECK(out != NULL);
    writer(out, text);
    CHECK_EQ(fclose(out), 0);
    CHECK_STR(written, expected);
    free(written);
}

TEST(json_write_escapes_what_json_and_terminals_cannot_take)
{
    check_written(json_write_text, slice_of("a\"b\\c\nd\re\tf/é一🙂"),
                  "\"a\\\"b\\\\c\\nd\\re\\tf/é一🙂\"");
    check_written(json_write_text, slice_of("\b\f\001"), "\"\\b\\f\\u0001\"");
    check_written(json_write_text, slice_of("\033]52;\007\177\xc2\x9b"),
                  "\"\\u001b]52;\\u0007\\u007f\\u009b\"");
    check_written(json_write_text, slice_of("\u00ad\u200b\u202e\u2066\ufeff"),
                  "\"\\u00ad\\u200b\\u202e\\u2066\\ufeff\"");
    check_written(json_write_text, slice_of("\U000e0041"), "\"\\udb40\\udc41\"");
    check_written(json_write_text, slice("a\0b", 3), "\"a\\u0000b\"");
    check_written(json_write_text, slice_of("a\xff\xed\xa0\x80z"),
                  "\"a\ufffd\ufffd\ufffd\ufffdz\"");
    check_written(json_write_text_piece, slice_of("a\"b"), "a\\\"b");
}

TEST(json_write_as_js_escapes_what_json_requires_alone)
{
    check_written(json_write_text_as_js, slice_of("\"\\\b\f\n\r\t\001\037/\177é\u202e🙂"),
                  "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f/\177é\u202e🙂\"");
}

TEST(json_write_every_code_point_comes_back)
{
    for (uint32_t point = 1; point <= 0x10FFFF; point++) {
        if (point == 0xD800) point = 0xE000;
        char text[UTF8_BYTES_MAX], *written = NULL, back[64];
        size_t size = utf8_encode(point, text), written_bytes = 0, back_bytes = 0;
        FILE *out = open_memstream(&written, &written_bytes);
        json_write_text(out, slice(text, size));
        CHECK_EQ(fclose(out), 0);
        if (point % 64 == 0) CHECK(json_is_valid(slice(written, written_bytes), NULL));
        bool is_escaped = written[1] == '\\';
        if (display_is_unsafe(point) && !is_escaped) CHECK_EQ(point, 0);
        CHECK_EQ(json_string_decode(slice(written + 1, written_bytes - 2), back, &back_bytes), 0);
        CHECK_BYTES(slice(back, back_bytes), slice(text, size));
        free(written);
    }
}

TEST(json_write_bytes_are_base64_of_any_length)
{
    check_written(json_write_bytes, slice_of(""), "\"\"");
    check_written(json_write_bytes, slice_of("foob"), "\"Zm9vYg==\"");
    check_written(json_write_bytes_piece, slice_of("foo"), "Zm9v");

    enum { SIZE = 10000 };
    uint8_t *bytes = calloc(1, SIZE);
    char *expected = malloc(SIZE * 4 / 3 + 8), *at = expected;
    *at++ = '"';
    at = memset(at, 'A', (SIZE + 2) / 3 * 4);
    memcpy(at + (SIZE + 2) / 3 * 4 - 2, "==\"", 4); // one byte is left over: two digits
    check_written(json_write_bytes, slice(bytes, SIZE), expected);
    free(bytes);
    free(expected);
}

TEST(json_write_value_is_one_line_of_ascii)
{
    check_written(json_write_value, slice_of("{\n\t\"é\u202e🙂\": \"a\\n\177\"\r\n}"),
                  "{  \"\\u00e9\\u202e\\ud83d\\ude42\": \"a\\n\\u007f\"  }");
    // What a damaged or foreign store calls JSON reaches no terminal either.
    check_written(json_write_value, slice_of("\"\033]52;c;eA==\a\""),
                  "\"\\u001b]52;c;eA==\\u0007\"");
}
