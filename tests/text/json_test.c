// JSON: the grammar of RFC 8259, valid and invalid texts for each rule, and the offset of errors.

#include "text/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "harness.h"
#include "os/random.h"

static bool is_valid(const char *text)
{
    return json_is_valid(slice_of(text), NULL);
}

static void check_all(const char *const *texts, size_t count, bool expected)
{
    for (size_t i = 0; i < count; i++) {
        if (is_valid(texts[i]) != expected) CHECK_STR(texts[i], expected ? "valid" : "not valid");
    }
}

#define CHECK_ALL(texts, expected) check_all(texts, sizeof texts / sizeof texts[0], expected)

// Returns SIZE_MAX for a valid text.
static size_t offset_of(const char *text)
{
    size_t offset = SIZE_MAX;
    bool is_good = json_is_valid(slice_of(text), &offset);
    CHECK_EQ(is_good, offset == SIZE_MAX);
    return offset;
}

TEST(json_values_of_every_kind_are_valid)
{
    static const char *const TEXTS[] = {
        "null",
        "true",
        "false",
        "0",
        "\"\"",
        "\"text\"",
        "[]",
        "{}",
        "[1]",
        "[1,2,3]",
        "{\"a\":1}",
        "{\"a\":1,\"b\":[{},[]]}",
        "{\"\":\"\"}",
        "{\"a\":1,\"a\":2}",
        "[null,true,false,0,\"\",[],{}]",
        "[[[[]]],{\"a\":{\"b\":{}}}]",
    };
    CHECK_ALL(TEXTS, true);
}

TEST(json_white_space_is_four_characters_around_everything)
{
    static const char *const VALID[] = {
        " 1 ", "\t\n\r 1\t\n\r ", " [ ] ", " { } ", " [ 1 , 2 ] ", " { \"a\" : 1 , \"b\" : 2 } ",
    };
    static const char *const INVALID[] = {
        "\f1",
        "1\v",
        "[\f]",
        "\xC2\xA0"
        "1",
        "\xEF\xBB\xBF"
        "1",
        "t rue",
        "1 2",
        "- 1",
        "1 .5",
    };
    CHECK_ALL(VALID, true);
    CHECK_ALL(INVALID, false);
}

TEST(json_text_is_one_value)
{
    static const char *const INVALID[] = {
        "",   " ",  "\n",  "1 1", "null null", "[] []", "{}{}", "\"a\"\"b\"",
        "1,", ",1", "[]]", "{}}", "]",         "}",     ":",    ",",
    };
    CHECK_ALL(INVALID, false);
    CHECK(!json_is_valid((Slice){0}, NULL));
    CHECK(!json_is_valid(slice("1\0", 2), NULL));
    CHECK(!json_is_valid(slice("\0", 1), NULL));
}

TEST(json_literals_are_lower_case_and_whole)
{
    static const char *const INVALID[] = {
        "nul", "nulll", "tru",       "truee", "fals",     "falsee",    "True", "NULL", "n",
        "t",   "f",     "undefined", "NaN",   "Infinity", "-Infinity", "'a'",  "a",
    };
    CHECK_ALL(INVALID, false);
}

TEST(json_numbers_follow_the_grammar)
{
    static const char *const VALID[] = {
        "0",    "-0",   "1",      "-1",      "10",    "123456789012345678901234567890",
        "0.0",  "-0.5", "1.25",   "0e0",     "1e5",   "1E5",
        "1e+5", "1e-5", "1.5e10", "-0.0E-0", "1e999", "1e05",
        "0.00",
    };
    static const char *const INVALID[] = {
        "-",     "+1",    "01",  "-01",   "00",  ".5", "1.",    "-.5", "1.e5", "1e",  "1e+", "1e-",
        "1e5.5", "1.5.5", "0x1", "1_000", "--1", "1-", "1e1e1", "0e",  "-e1",  "1+1", "1a",
    };
    CHECK_ALL(VALID, true);
    CHECK_ALL(INVALID, false);
}

TEST(json_arrays_and_objects_have_values_between_commas)
{
    static const char *const INVALID[] = {
        "[",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[,]",
        "[1 2]",
        "[1}",
        "[1,,2]",
        "[1:2]",
        "{",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,",
        "{\"a\":1,}",
        "{,}",
        "{\"a\"}",
        "{\"a\",1}",
        "{a:1}",
        "{1:1}",
        "{\"a\":1]",
        "{\"a\"::1}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":1,,\"b\":2}",
        "{null:1}",
        "{\"a\":}",
        "[{]}",
        "{[]}",
        "{\"a\":1:2}",
        "[\"a\":1]",
        "{\"a\" 1}",
        "[[1]",
        "{\"a\":{}",
    };
    CHECK_ALL(INVALID, false);
}

TEST(json_strings_take_every_escape_and_no_other)
{
    for (int letter = 1; letter < 128; letter++) {
        char text[] = "\"\\?\"";
        text[2] = (char)letter;
        // 'u' alone is not enough: see below.
        bool expected = strchr("\"\\/bfnrt", letter) != NULL;
        if (is_valid(text) != expected) CHECK_EQ(letter, 0);
    }
    CHECK(!json_is_valid(slice("\"\\\0\"", 4), NULL));
    CHECK(!is_valid("\"\\"));
    CHECK(!is_valid("\"\\\""));
}

TEST(json_unicode_escapes_have_four_hex_digits)
{
    static const char *const VALID[] = {
        "\"\\u0000\"", "\"\\uFFFF\"",  "\"\\uabcd\"",
        "\"\\u12aB\"", "\"\\u00411\"", "\"\\uD83D\\uDE00\"",
    };
    static const char *const INVALID[] = {
        "\"\\u\"",     "\"\\u1\"",    "\"\\u12\"",   "\"\\u123\"", "\"\\u123g\"", "\"\\ug123\"",
        "\"\\U0041\"", "\"\\u 123\"", "\"\\u+123\"", "\"\\u123",   "\"\\u",
    };
    CHECK_ALL(VALID, true);
    CHECK_ALL(INVALID, false);
}

TEST(json_lone_surrogate_escapes_are_in_the_grammar)
{
    CHECK(is_valid("\"\\uD800\""));
    CHECK(is_valid("\"\\uDC00\\uD800\""));
    CHECK(is_valid("{\"\\uDFFF\":\"\\ud83d!\"}"));
}

// Long strings are read in blocks of bytes, so every byte is tried at every place of a block.
TEST(json_strings_refuse_control_characters_at_every_place)
{
    for (size_t place = 0; place < 24; place++) {
        for (int byte = 0; byte < 256; byte++) {
            char text[27];
            memset(text, 'x', sizeof text);
            text[0] = '"';
            text[26] = '"';
            text[1 + place] = (char)byte;
            bool expected = byte >= 0x20 && byte != '"' && byte != '\\';
            // A backslash just before the closing quote, or an 'x' after one, is wrong as well.
            if (json_is_valid(slice(text, sizeof text), NULL) != expected) {
                CHECK_EQ(byte, 1000 + (int)place);
            }
        }
    }
}

TEST(json_strings_of_every_length_end_at_their_quote)
{
    for (size_t size = 0; size < 40; size++) {
        char text[48];
        memset(text, 'x', sizeof text);
        text[0] = '"';
        text[size + 1] = '"';
        CHECK(json_is_valid(slice(text, size + 2), NULL));
        CHECK(!json_is_valid(slice(text, size + 1), NULL));
        CHECK(!json_is_valid(slice(text, size + 3), NULL));
    }
}

TEST(json_strings_hold_any_other_text)
{
    CHECK(is_valid("\"é€😀\x7F \u2028\""));
    CHECK(is_valid("{\"ключ\":\"значение\"}"));
}

static size_t nested(char *out, size_t depth, const char *open, const char *inside, char close)
{
    size_t size = 0;
    for (size_t i = 0; i < depth; i++) {
        memcpy(out + size, open, strlen(open));
        size += strlen(open);
    }
    memcpy(out + size, inside, strlen(inside));
    size += strlen(inside);
    memset(out + size, close, depth);
    return size + depth;
}

TEST(json_depth_at_the_maximum_is_valid_and_one_more_is_not)
{
    static char text[16 * JSON_DEPTH_MAX];
    size_t size = nested(text, JSON_DEPTH_MAX, "[", "", ']');
    CHECK(json_is_valid(slice(text, size), NULL));
    size = nested(text, JSON_DEPTH_MAX, "[", "1", ']');
    CHECK(json_is_valid(slice(text, size), NULL));
    size = nested(text, JSON_DEPTH_MAX, "{\"a\":", "{}", '}');
    size_t offset = 0;
    CHECK(!json_is_valid(slice(text, size), &offset));
    CHECK_EQ(offset, 5 * JSON_DEPTH_MAX);
    size = nested(text, JSON_DEPTH_MAX, "{\"a\":", "1", '}');
    CHECK(json_is_valid(slice(text, size), NULL));
    size = nested(text, JSON_DEPTH_MAX + 1, "[", "", ']');
    CHECK(!json_is_valid(slice(text, size), &offset));
    CHECK_EQ(offset, JSON_DEPTH_MAX);
}

TEST(json_depth_counts_what_is_open_not_what_was)
{
    enum { COUNT = 10 * JSON_DEPTH_MAX };
    static char text[3 * COUNT + 2];
    size_t size = 0;
    text[size++] = '[';
    for (size_t i = 0; i < COUNT; i++) {
        memcpy(text + size, i % 2 ? "{}," : "[],", 3);
        size += 3;
    }
    text[size - 1] = ']';
    CHECK(json_is_valid(slice(text, size), NULL));
}

TEST(json_depth_remembers_arrays_and_objects_at_every_level)
{
    CHECK(is_valid("[{\"a\":[{\"b\":[[{\"c\":{\"d\":[]}}]]}]},[{}],{\"e\":[1,{}]}]"));
    CHECK(!is_valid("[{\"a\":[{\"b\":[[{\"c\":{\"d\":[]}}]]]}]}]"));
    CHECK(!is_valid("[{\"a\":[1}]]"));
}

TEST(json_a_million_open_brackets_are_refused_at_once)
{
    enum { COUNT = 1000000 };
    char *text = malloc(COUNT);
    CHECK(text != NULL);
    memset(text, '[', COUNT);
    size_t offset = 0;
    bool is_good = json_is_valid(slice(text, COUNT), &offset);
    free(text);
    CHECK(!is_good);
    CHECK_EQ(offset, JSON_DEPTH_MAX);
}

TEST(json_offset_is_where_it_went_wrong)
{
    CHECK_EQ(offset_of("[1,2]"), SIZE_MAX);
    CHECK_EQ(offset_of(""), 0);
    CHECK_EQ(offset_of("  "), 2);
    CHECK_EQ(offset_of("[1,]"), 3);
    CHECK_EQ(offset_of("{\"a\" 1}"), 5);
    CHECK_EQ(offset_of("{\"a\":1,}"), 7);
    CHECK_EQ(offset_of("nulx"), 3);
    CHECK_EQ(offset_of("01"), 1);
    CHECK_EQ(offset_of("1."), 2);
    CHECK_EQ(offset_of("\"ab\n\""), 3);
    CHECK_EQ(offset_of("\"a\\x\""), 3);
    CHECK_EQ(offset_of("\"a\\u12g4\""), 6);
    CHECK_EQ(offset_of("\"open"), 5);
    CHECK_EQ(offset_of("[] x"), 3);
    CHECK_EQ(offset_of("[1}"), 2);
}

// A second validator, by recursive descent. Returns what follows the value, NULL if it is not
// valid.
static const char *naive_value(const char *at, int depth);

static const char *naive_space(const char *at)
{
    return at + strspn(at, " \t\n\r");
}

static const char *naive_string(const char *at)
{
    if (*at++ != '"') return NULL;
    for (; *at != '"'; at++) {
        if ((unsigned char)*at < 0x20) return NULL;
        if (*at != '\\') continue;
        at++;
        if (*at == 'u') {
            if (strspn(at + 1, "0123456789abcdefABCDEF") < 4) return NULL;
            at += 4;
        } else if (!*at || !strchr("\"\\/bfnrt", *at)) {
            return NULL;
        }
    }
    return at + 1;
}

static const char *naive_number(const char *at)
{
    static const char DIGITS[] = "0123456789";
    if (*at == '-') at++;
    size_t count = *at == '0' ? 1 : strspn(at, DIGITS);
    if (count == 0) return NULL;
    at += count;
    if (*at == '.') {
        count = strspn(at + 1, DIGITS);
        if (count == 0) return NULL;
        at += 1 + count;
    }
    if (*at == 'e' || *at == 'E') {
        at++;
        if (*at == '+' || *at == '-') at++;
        count = strspn(at, DIGITS);
        if (count == 0) return NULL;
        at += count;
    }
    return at;
}

static const char *naive_items(const char *at, int depth, bool is_object)
{
    char close = is_object ? '}' : ']';
    if (depth == 0) return NULL;
    at = naive_space(at + 1);
    if (*at == close) return at + 1;
    for (;;) {
        if (is_object) {
            at = naive_string(naive_space(at));
            if (!at) return NULL;
            at = naive_space(at);
            if (*at++ != ':') return NULL;
        }
        at = naive_value(at, depth - 1);
        if (!at) return NULL;
        at = naive_space(at);
        if (*at == close) return at + 1;
        if (*at++ != ',') return NULL;
    }
}

static const char *naive_value(const char *at, int depth)
{
    at = naive_space(at);
    if (*at == '"') return naive_string(at);
    if (*at == '[' || *at == '{') return naive_items(at, depth, *at == '{');
    if (strncmp(at, "true", 4) == 0 || strncmp(at, "null", 4) == 0) return at + 4;
    if (strncmp(at, "false", 5) == 0) return at + 5;
    return naive_number(at);
}

TEST(json_agrees_with_a_recursive_validator_on_random_texts)
{
    static const char *const TOKENS[] = {"[",  "]",    "{",    "}",       ",",       ":", "\"a\"",
                                         "1",  " ",    "\"",   "\\",      "-",       "0", ".5",
                                         "e1", "true", "null", "\\u00e9", "{\"k\":", "[]"};
    Random random;
    random_seed(&random, test_seed());
    size_t valid_count = 0;
    size_t rounds = test_scaled(1000000);
    for (size_t i = 0; i < rounds; i++) {
        char text[128];
        size_t size = 0;
        for (uint64_t left = 1 + random_below(&random, 9); left > 0; left--) {
            const char *token = TOKENS[random_below(&random, sizeof TOKENS / sizeof TOKENS[0])];
            memcpy(text + size, token, strlen(token));
            size += strlen(token);
        }
        text[size] = '\0';
        const char *end = naive_value(text, JSON_DEPTH_MAX);
        bool expected = end && *naive_space(end) == '\0';
        if (is_valid(text) != expected) CHECK_STR(text, expected ? "valid" : "not valid");
        valid_count += expected;
    }
    CHECK(valid_count > rounds / 100);
}

// Both validators must agree on a valid text with one changed byte.
TEST(json_agrees_with_a_recursive_validator_on_damaged_texts)
{
    static const char WHOLE[] =
        "{\"id\":\"toolu_01\",\"input\":{\"path\":\"/a\\n\\u00e9\",\"n\":[-1.5e+3,0,true,null]},"
        "\"x\":[[],{}],\"y\":{\"z\":false}}";
    CHECK(is_valid(WHOLE));
    for (size_t at = 0; at < sizeof WHOLE - 1; at++) {
        for (int byte = 1; byte < 256; byte++) {
            char text[sizeof WHOLE];
            memcpy(text, WHOLE, sizeof WHOLE);
            text[at] = (char)byte;
            const char *end = naive_value(text, JSON_DEPTH_MAX);
            bool expected = end && *naive_space(end) == '\0';
            if (is_valid(text) != expected) CHECK_STR(text, expected ? "valid" : "not valid");
        }
        CHECK(!json_is_valid(slice(WHOLE, at), NULL));
    }
}
