// UTF-8: validity against a decoder written from the definition, cutting, trimming, folding.

#include "text/utf8.h"

#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wctype.h>

#include "harness.h"
#include "os/random.h"

// The definition, reversed: a text is valid if encoding its code points gives the text again.
static size_t naive_encode(uint32_t code_point, uint8_t *out)
{
    if (code_point < 0x80) {
        out[0] = (uint8_t)code_point;
        return 1;
    }
    if (code_point < 0x800) {
        out[0] = (uint8_t)(0xC0 + code_point / 64);
        out[1] = (uint8_t)(0x80 + code_point % 64);
        return 2;
    }
    if (code_point < 0x10000) {
        out[0] = (uint8_t)(0xE0 + code_point / 4096);
        out[1] = (uint8_t)(0x80 + code_point / 64 % 64);
        out[2] = (uint8_t)(0x80 + code_point % 64);
        return 3;
    }
    out[0] = (uint8_t)(0xF0 + code_point / 262144);
    out[1] = (uint8_t)(0x80 + code_point / 4096 % 64);
    out[2] = (uint8_t)(0x80 + code_point / 64 % 64);
    out[3] = (uint8_t)(0x80 + code_point % 64);
    return 4;
}

static bool naive_is_valid(const uint8_t *bytes, size_t size)
{
    size_t at = 0;
    while (at < size) {
        uint8_t first = bytes[at];
        size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
        if (length > size - at) return false;
        uint32_t code_point = length == 1 ? first : first % (1u << (7 - length));
        for (size_t i = 1; i < length; i++)
            code_point = code_point * 64 + bytes[at + i] % 64;
        if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point <= 0xDFFF)) return false;
        uint8_t again[4];
        if (naive_encode(code_point, again) != length) return false;
        if (memcmp(again, bytes + at, length) != 0) return false;
        at += length;
    }
    return true;
}

static void check_like_naive(const uint8_t *bytes, size_t size)
{
    bool expected = naive_is_valid(bytes, size);
    if (utf8_is_valid(slice(bytes, size)) == expected) return;
    fprintf(stderr, "utf8_is_valid is wrong on");
    for (size_t i = 0; i < size; i++)
        fprintf(stderr, " %02x", bytes[i]);
    fprintf(stderr, "\n");
    CHECK_EQ(utf8_is_valid(slice(bytes, size)), expected);
}

TEST(utf8_validity_of_all_sequences_of_one_to_three_bytes)
{
    for (uint32_t value = 0; value < 1u << 24; value++) {
        uint8_t bytes[3] = {(uint8_t)(value >> 16), (uint8_t)(value >> 8), (uint8_t)value};
        // ASCII in front leaves shorter sequences, which have their own loops.
        if (bytes[0] >= 0x80) check_like_naive(bytes, 3);
        if (value < 1u << 16) check_like_naive(bytes + 1, 2);
        if (value < 1u << 8) check_like_naive(bytes + 2, 1);
    }
}

TEST(utf8_validity_of_four_byte_sequences_at_every_boundary)
{
    static const uint8_t EDGES[] = {0x00, 0x41, 0x7F, 0x80, 0x81, 0x8F, 0x90, 0x91, 0x9F, 0xA0,
                                    0xBE, 0xBF, 0xC0, 0xC2, 0xE0, 0xED, 0xF0, 0xF4, 0xFF};
    enum { EDGE_COUNT = sizeof EDGES };
    for (unsigned first = 0x80; first < 0x100; first++) {
        for (size_t i = 0; i < (size_t)EDGE_COUNT * EDGE_COUNT * EDGE_COUNT; i++) {
            uint8_t bytes[4] = {(uint8_t)first, EDGES[i % EDGE_COUNT],
                                EDGES[i / EDGE_COUNT % EDGE_COUNT],
                                EDGES[i / EDGE_COUNT / EDGE_COUNT]};
            check_like_naive(bytes, 4);
        }
    }
}

TEST(utf8_validity_of_random_four_byte_sequences)
{
    Random random;
    random_seed(&random, test_seed());
    for (int i = 0; i < 2000000; i++) {
        uint8_t bytes[4];
        random_fill(&random, bytes, sizeof bytes);
        if (i % 2) {
            bytes[0] |= 0xF0;
            for (size_t k = 1; k < 4; k++)
                bytes[k] = (uint8_t)(0x80 | (bytes[k] & 0x3F));
        }
        check_like_naive(bytes, 4);
    }
}

TEST(utf8_every_code_point_is_valid_and_no_surrogate_is)
{
    for (uint32_t code_point = 0; code_point <= 0x110000; code_point++) {
        uint8_t bytes[4];
        size_t size = naive_encode(code_point, bytes);
        bool is_surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
        bool expected = !is_surrogate && code_point <= 0x10FFFF;
        if (utf8_is_valid(slice(bytes, size)) != expected) CHECK_EQ(code_point, 0xFFFFFFFFu);
    }
}

TEST(utf8_validity_does_not_depend_on_where_a_bad_byte_is)
{
    for (size_t size = 0; size < 40; size++) {
        uint8_t text[40];
        memset(text, 'a', sizeof text);
        CHECK(utf8_is_valid(slice(text, size)));
        for (size_t at = 0; at < size; at++) {
            text[at] = 0xFF;
            CHECK(!utf8_is_valid(slice(text, size)));
            text[at] = 0xC3;
            CHECK(!utf8_is_valid(slice(text, size)));
            if (at + 1 < size) {
                text[at + 1] = 0xA9;
                CHECK(utf8_is_valid(slice(text, size)));
                text[at + 1] = 'a';
            }
            text[at] = 'a';
        }
    }
}

TEST(utf8_empty_text_is_valid)
{
    CHECK(utf8_is_valid((Slice){0}));
    CHECK(utf8_is_valid(slice("a\0b", 3)));
}

TEST(utf8_cut_ends_on_a_code_point_at_every_length)
{
    Slice text = slice_of("aé€😀z");
    static const size_t EXPECTED[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
    for (size_t bytes_max = 0; bytes_max < sizeof EXPECTED / sizeof EXPECTED[0]; bytes_max++) {
        Slice cut = utf8_cut(text, bytes_max);
        CHECK_EQ(cut.size, EXPECTED[bytes_max]);
        CHECK(utf8_is_valid(cut));
        CHECK(slice_starts_with(text, cut));
    }
    CHECK_EQ(utf8_cut(text, SIZE_MAX).size, text.size);
    CHECK_EQ(utf8_cut((Slice){0}, 0).size, 0);
}

TEST(utf8_cut_stays_inside_malformed_text)
{
    static const uint8_t TAIL[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80};
    CHECK_EQ(utf8_cut(slice(TAIL, sizeof TAIL), 5).size, 0);
}

TEST(utf8_trim_removes_exactly_the_white_space_property)
{
    for (uint32_t code_point = 1; code_point <= 0x10FFFF; code_point++) {
        if (code_point >= 0xD800 && code_point <= 0xDFFF) continue;
        bool is_space = (code_point >= 9 && code_point <= 13) || code_point == 0x20 ||
                        code_point == 0x85 || code_point == 0xA0 || code_point == 0x1680 ||
                        (code_point >= 0x2000 && code_point <= 0x200A) || code_point == 0x2028 ||
                        code_point == 0x2029 || code_point == 0x202F || code_point == 0x205F ||
                        code_point == 0x3000;
        uint8_t text[9];
        size_t size = naive_encode(code_point, text);
        text[size] = 'x';
        memcpy(text + size + 1, text, size);
        Slice trimmed = utf8_trim(slice(text, 2 * size + 1));
        if (trimmed.size != (is_space ? 1 : 2 * size + 1)) CHECK_EQ(code_point, 0);
        if (is_space) CHECK(trimmed.bytes == text + size);
        CHECK_EQ(utf8_trim(slice(text, size)).size, is_space ? 0 : size);
    }
}

TEST(utf8_trim_keeps_the_inside_and_takes_empty_text)
{
    Slice trimmed = utf8_trim(slice_of(" \t\u3000a \u2003 b\u00A0\r\n"));
    CHECK(slice_equal(trimmed, slice_of("a \u2003 b")));
    CHECK_EQ(utf8_trim((Slice){0}).size, 0);
    CHECK_EQ(utf8_trim(slice_of(" \n ")).size, 0);
}

TEST(utf8_trim_stops_at_malformed_bytes)
{
    CHECK_EQ(utf8_trim(slice_of(" \x80 ")).size, 1);
    CHECK_EQ(utf8_trim(slice_of("\xC2")).size, 1);
    CHECK_EQ(utf8_trim(slice_of("\x80\x80\x80\x80\x80")).size, 5);
    CHECK_EQ(utf8_trim(slice_of("\xA0")).size, 1);
}

static const char *folded(const char *text)
{
    static uint8_t out[256];
    size_t size = utf8_fold(slice_of(text), out, sizeof out - 1);
    if (size == SIZE_MAX) return "(does not fit)";
    out[size] = '\0';
    return (const char *)out;
}

static bool contains(const char *haystack, const char *needle)
{
    uint8_t folded_needle[256];
    size_t size = utf8_fold(slice_of(needle), folded_needle, sizeof folded_needle);
    return utf8_contains_folded(slice_of(haystack), slice(folded_needle, size));
}

TEST(utf8_fold_lowers_ascii)
{
    for (int byte = 1; byte < 128; byte++) {
        char text[2] = {(char)byte, '\0'};
        char expected[2] = {(char)(byte >= 'A' && byte <= 'Z' ? byte + 32 : byte), '\0'};
        CHECK_STR(folded(text), expected);
    }
}

TEST(utf8_fold_lowers_other_scripts)
{
    CHECK_STR(folded("ÀÉÑß"), "àéñß");
    CHECK_STR(folded("ΑΣς"), "ασς");
    CHECK_STR(folded("ЖЁ"), "жё");
    CHECK_STR(folded("ẞ"), "ß");
    CHECK_STR(folded("日本 €😀"), "日本 €😀");
    CHECK_STR(folded("𐐀"), "𐐨");
    CHECK_STR(folded("\u212A"), "k");      // the Kelvin sign: three bytes become one
    CHECK_STR(folded("\u023A"), "\u2C65"); // two bytes become three
}

TEST(utf8_fold_of_every_code_point_is_that_of_c_utf8)
{
    locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (!locale) SKIP("this host has no C.UTF-8");
    for (uint32_t code_point = 1; code_point <= 0x10FFFF; code_point++) {
        if (code_point >= 0xD800 && code_point <= 0xDFFF) continue;
        uint8_t text[4];
        uint8_t expected[4];
        uint8_t actual[12];
        size_t size = naive_encode(code_point, text);
        uint32_t lower = (uint32_t)towlower_l((wint_t)code_point, locale);
        size_t expected_size = naive_encode(lower, expected);
        size_t actual_size = utf8_fold(slice(text, size), actual, sizeof actual);
        bool is_same = slice_equal(slice(actual, actual_size), slice(expected, expected_size));
        if (!is_same) CHECK_EQ(code_point, 0);
    }
    freelocale(locale);
}

TEST(utf8_fold_of_every_code_point_fits_three_times_and_is_stable)
{
    for (uint32_t code_point = 1; code_point <= 0x10FFFF; code_point++) {
        if (code_point >= 0xD800 && code_point <= 0xDFFF) continue;
        uint8_t text[4];
        size_t size = naive_encode(code_point, text);
        uint8_t once[12];
        size_t once_size = utf8_fold(slice(text, size), once, 3 * size);
        CHECK(once_size != SIZE_MAX);
        if (!utf8_is_valid(slice(once, once_size))) CHECK_EQ(code_point, 0);
        uint8_t twice[36];
        size_t twice_size = utf8_fold(slice(once, once_size), twice, sizeof twice);
        bool is_stable = slice_equal(slice(once, once_size), slice(twice, twice_size));
        if (!is_stable) CHECK_EQ(code_point, 0);
        if (!utf8_contains_folded(slice(text, size), slice(once, once_size))) {
            CHECK_EQ(code_point, 0);
        }
    }
}

TEST(utf8_fold_fits_exactly_or_says_so)
{
    uint8_t out[8];
    CHECK_EQ(utf8_fold(slice_of("ABÉ"), out, 4), 4);
    CHECK_EQ(utf8_fold(slice_of("ABÉ"), out, 3), SIZE_MAX);
    CHECK_EQ(utf8_fold(slice_of("A"), out, 0), SIZE_MAX);
    CHECK_EQ(utf8_fold((Slice){0}, out, 0), 0);
}

TEST(utf8_fold_copies_malformed_bytes)
{
    CHECK_STR(folded("A\xFF\xC3Z\xE2\x82"), "a\xFF\xC3z\xE2\x82");
}

TEST(utf8_contains_finds_regardless_of_case)
{
    CHECK(contains("Hello World", "lo wo"));
    CHECK(contains("HELLO", "hello"));
    CHECK(contains("hello", "HELLO"));
    CHECK(contains("CAFÉ noir", "café"));
    CHECK(contains("café noir", "É N"));
    CHECK(contains("ΟΔΥΣΣΕΥΣ", "δυσσ"));
    CHECK(contains("x Σ y", "σ"));
    CHECK(contains("prefix ЖЖЁ", "жё"));
    CHECK(contains("300 \u212A", "0 k"));
    CHECK(contains("\u212Aelvin", "kelvin"));
    CHECK(contains("日本語", "本"));
}

TEST(utf8_contains_refuses_what_is_not_there)
{
    CHECK(!contains("Hello", "hellos"));
    CHECK(!contains("hell", "hello"));
    CHECK(!contains("cafe", "é"));
    CHECK(!contains("café", "e"));
    CHECK(!contains("日本語", "韓"));
    CHECK(!contains("", "a"));
    CHECK(!contains("aab", "aaab"));
    CHECK(!contains("[", "{"));
    CHECK(!contains("@", "`"));
}

TEST(utf8_contains_everything_has_the_empty_needle)
{
    CHECK(contains("", ""));
    CHECK(contains("abc", ""));
    CHECK(utf8_contains_folded((Slice){0}, (Slice){0}));
    CHECK(!utf8_contains_folded((Slice){0}, slice_of("a")));
}

TEST(utf8_contains_reads_nothing_past_the_needle)
{
    // Memory of exactly this size, so AddressSanitizer finds reads past the end.
    uint8_t *needle = malloc(2);
    CHECK(needle != NULL);
    memcpy(needle, "é", 2);
    bool is_found = utf8_contains_folded(slice_of("€ € 😀 Ē"), slice(needle, 2));
    needle[0] = 0xE2;
    needle[1] = 0x82; // the front of '€'
    is_found |= utf8_contains_folded(slice_of("€ € 😀"), slice(needle, 2));
    free(needle);
    CHECK(!is_found);
}

TEST(utf8_contains_starts_on_code_points_only)
{
    // The needle is the second byte of 'é': no code point of the haystack.
    CHECK(!utf8_contains_folded(slice_of("é"), slice_of("\xA9")));
}

// Up to `count_max` of the first `unit_count` units, one after the other.
static void join_random(Random *random, const char *const *units, uint64_t unit_count,
                        uint64_t count_max, char out[64])
{
    size_t size = 0;
    for (uint64_t left = random_below(random, count_max + 1); left > 0; left--) {
        const char *unit = units[random_below(random, unit_count)];
        memcpy(out + size, unit, strlen(unit));
        size += strlen(unit);
    }
    out[size] = '\0';
}

TEST(utf8_contains_agrees_with_folding_the_haystack)
{
    static const char *const UNITS[] = {"a", "A", "b", "k", "\u212A", "é",      "É",
                                        "σ", "Σ", "ς", "😀", "İ",      "\u023A", "\u2C65"};
    enum { UNIT_COUNT = sizeof UNITS / sizeof UNITS[0] };
    Random random;
    random_seed(&random, test_seed());
    int found_count = 0;
    for (int i = 0; i < 50000; i++) {
        char haystack[64];
        char needle[64];
        // Every second haystack is ASCII alone: it has its own path.
        join_random(&random, UNITS, i % 2 ? UNIT_COUNT : 4, 11, haystack);
        join_random(&random, UNITS, UNIT_COUNT, 3, needle);
        char haystack_folded[256];
        snprintf(haystack_folded, sizeof haystack_folded, "%s", folded(haystack));
        // Well-formed UTF-8 is self-synchronizing: strstr finds only whole code points.
        bool expected = strstr(haystack_folded, folded(needle)) != NULL;
        CHECK_EQ(contains(haystack, needle), expected);
        found_count += expected;
    }
    CHECK(found_count > 5000);
}

static void *fold_in_a_thread(void *context)
{
    *(bool *)context = contains("CAFÉ ЖЁ", "é жё");
    return NULL;
}

// Each test is a process of its own, so here the threads race for the first use.
TEST(utf8_fold_is_opened_once_by_many_threads)
{
    enum { THREAD_COUNT = 8 };
    pthread_t threads[THREAD_COUNT];
    bool is_found[THREAD_COUNT] = {false};
    for (size_t i = 0; i < THREAD_COUNT; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, fold_in_a_thread, &is_found[i]), 0);
    }
    for (size_t i = 0; i < THREAD_COUNT; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
        CHECK(is_found[i]);
    }
}

// Listing sessions scans up to 10 000 titles for one query: some milliseconds. The bound leaves
// room for slow hosts and sanitizers.
TEST(utf8_contains_scans_ten_thousand_titles)
{
    static const char *const TITLES[] = {
        "Fix the flaky login test in the payments service!",
        "Réparer le café où l'été des élèves s'achève déjà",
        "Исправить нестабильный тест входа",
        "支払いサービスの不安定なログインテストを修正する",
    };
    static const char *const QUERIES[] = {"tests", "élan", "тестов", "テスター"};
    for (size_t k = 0; k < sizeof TITLES / sizeof TITLES[0]; k++) {
        Slice title = slice_of(TITLES[k]);
        Slice query = slice_of(QUERIES[k]);
        int found_count = 0;
        for (int i = 0; i < 10000; i++)
            found_count += utf8_contains_folded(title, query);
        CHECK_EQ(found_count, 0);
    }
}

TEST(utf8_every_code_point_is_decoded_and_encoded)
{
    for (uint32_t code_point = 0; code_point <= 0x10FFFF; code_point++) {
        if (code_point == 0xD800) code_point = 0xE000;
        uint8_t bytes[UTF8_BYTES_MAX], naive[UTF8_BYTES_MAX];
        size_t size = utf8_encode(code_point, bytes);
        if (size != naive_encode(code_point, naive) || memcmp(bytes, naive, size) != 0) {
            CHECK_EQ(code_point, 0xFFFFFFFFu);
        }
        CodePoint decoded = utf8_decode(slice(bytes, size));
        if (!decoded.is_valid || decoded.size != size || decoded.value != code_point) {
            CHECK_EQ(code_point, 0xFFFFFFFFu);
        }
    }
}

TEST(utf8_malformed_bytes_are_decoded_and_mended_one_by_one)
{
    static const char TEXT[] = "a\xff\xc0\x80\xe4\xb8\xed\xa0\x80\xf4\x90z";
    char mended[UTF8_REPLACEMENT_BYTES * sizeof(TEXT)];
    size_t size = utf8_mend(slice_of(TEXT), mended);
    CHECK_BYTES(slice(mended, size),
                slice_of("a\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffdz"));
    CodePoint point = utf8_decode(slice_of("\xe4\xb8"));
    CHECK(!point.is_valid);
    CHECK_EQ(point.size, 1);
    CHECK_EQ(point.value, 0xE4);
    CHECK_EQ(utf8_mend(slice_of("é一🙂"), mended), strlen("é一🙂"));
}
