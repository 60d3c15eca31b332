// JSON strings: their end, decoding with the place of each fault, and repair.

#include "text/json_string.h"

#include "harness.h"
#include "text/utf8.h"

static void check_end(const char *text, JsonFault fault, size_t end)
{
    size_t found = 0;
    CHECK_EQ(json_string_end(slice_of(text), 1, &found), fault);
    CHECK_EQ(found, end);
    if (!fault) CHECK_EQ(json_string_skip(slice_of(text), 1), end);
}

TEST(json_string_end_is_behind_the_first_quote_that_is_not_escaped)
{
    check_end("[\"\"]", JSON_FAULT_NONE, 3);
    check_end("[\"a\\\"b\"]", JSON_FAULT_NONE, 7);
    check_end("[\"a\\\\\"\"]", JSON_FAULT_NONE, 6);
    check_end("[\"\\\\\\\"\"]", JSON_FAULT_NONE, 7);
    check_end("[\"abc", JSON_FAULT_NO_END, 1);
    check_end("[\"abc\\", JSON_FAULT_NO_END, 1);
    check_end("[\"a\nb\"]", JSON_FAULT_LINE_END, 3);
    check_end("[\"a\tb\"]", JSON_FAULT_CONTROL, 3);
}

static void check_decoded(const char *inside, const char *expected)
{
    char out[64];
    size_t size = 0;
    CHECK_EQ(json_string_decode(slice_of(inside), out, &size), JSON_FAULT_NONE);
    CHECK_BYTES(slice(out, size), slice_of(expected));
    size = json_string_mend(slice_of(inside), out);
    CHECK_BYTES(slice(out, size), slice_of(expected));
}

TEST(json_string_escapes_are_decoded)
{
    check_decoded("", "");
    check_decoded("plain é", "plain é");
    check_decoded("\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t");
    check_decoded("a\\u0041\\u00e9\\u4E00b", "aAé一b");
    check_decoded("\\ud83c\\udf31", "🌱");
    check_decoded("\\uDBFF\\uDFFF", "\U0010ffff");
}

static void check_fault(const char *inside, JsonFault fault, size_t at, const char *mended)
{
    char out[64];
    size_t found = 0;
    CHECK_EQ(json_string_decode(slice_of(inside), out, &found), fault);
    CHECK_EQ(found, at);
    size_t size = json_string_mend(slice_of(inside), out);
    CHECK_BYTES(slice(out, size), slice_of(mended));
    CHECK(size <= UTF8_REPLACEMENT_BYTES * strlen(inside));
}

TEST(json_string_faults_are_found_where_they_are_and_mended)
{
    check_fault("ab\\xc", JSON_FAULT_ESCAPE, 2, "ab\ufffdc");
    check_fault("a\\u12g4", JSON_FAULT_HEX, 1, "a\ufffd12g4");
    check_fault("a\\u12", JSON_FAULT_HEX, 1, "a\ufffd12");
    check_fault("\\u0000", JSON_FAULT_NUL, 0, "\ufffd");
    check_fault("a\\ud800b", JSON_FAULT_SURROGATE, 1, "a\ufffdb");
    check_fault("\\udc00\\ud800", JSON_FAULT_SURROGATE, 0, "\ufffd\ufffd");
    check_fault("\\ud800\\u0041", JSON_FAULT_SURROGATE, 0, "\ufffdA");
    check_fault("\\ud800\\", JSON_FAULT_SURROGATE, 0, "\ufffd\ufffd");
}

TEST(json_string_mend_replaces_bytes_that_are_not_utf8)
{
    char out[64];
    size_t size = json_string_mend(slice_of("a\xff\\n\xe4\xb8z"), out);
    CHECK_BYTES(slice(out, size), slice_of("a\ufffd\n\ufffd\ufffdz"));
}
