// Text made safe.

#include "text.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "harness.h"
#include "nearest.h"

static void check_line(const char *text, TextUse use, size_t columns_max, const char *expected)
{
    setlocale(LC_CTYPE, "C.UTF-8");
    char *line = text_line(text, use, columns_max);
    CHECK_STR(line, expected);
    free(line);
}

TEST(a_line_on_a_terminal_shows_what_would_act)
{
    check_line("plain é 一 🙂", TEXT_TERMINAL, 0, "plain é 一 🙂");
    check_line("\033[31m", TEXT_TERMINAL, 0, "^[[31m");
    check_line("a\tb\nc\rd", TEXT_TERMINAL, 0, "a b c d");
    check_line("\177\007", TEXT_TERMINAL, 0, "^?^G");
    check_line("\xc2\x9b", TEXT_TERMINAL, 0, "<U+009B>");
    check_line("\u202e\u2066\ufeff\U000e0041", TEXT_TERMINAL, 0,
               "<U+202E><U+2066><U+FEFF><U+E0041>");
    check_line("\xff\xc0\x80", TEXT_TERMINAL, 0, "<FF><C0><80>");
    check_line("\xe4\xb8", TEXT_TERMINAL, 0, "<E4><B8>");
    check_line("\xed\xa0\x80", TEXT_TERMINAL, 0, "<ED><A0><80>");
}

TEST(a_cell_in_a_pipe_can_be_read_back)
{
    check_line("a\tb\nc\\d\re", TEXT_PLAIN, 0, "a\\tb\\nc\\\\d\\re");
    check_line("\033[31m\u202e", TEXT_PLAIN, 0, "\033[31m\u202e");
    check_line("\xff", TEXT_PLAIN, 0, "\xff");
}

TEST(a_line_is_cut_by_columns_not_by_bytes)
{
    check_line("abcdef", TEXT_TERMINAL, 6, "abcdef");
    check_line("abcdefg", TEXT_TERMINAL, 6, "abcde…");
    check_line("一二三", TEXT_TERMINAL, 6, "一二三");
    check_line("一二三四", TEXT_TERMINAL, 6, "一二…");
    check_line("一二三四", TEXT_TERMINAL, 7, "一二三…");
    check_line("ab\033cd", TEXT_TERMINAL, 4, "ab…");
    check_line("", TEXT_TERMINAL, 4, "");
    char heap[1001] = "a";
    for (size_t i = 1; i < 1000; i += 2)
        memcpy(heap + i, "\u0301", 2);
    heap[999] = '\0';
    setlocale(LC_CTYPE, "C.UTF-8");
    char *line = text_line(heap, TEXT_TERMINAL, 4);
    CHECK(strlen(line) < 100);
    free(line);
    check_line("e\u0301e\u0301e\u0301", TEXT_TERMINAL, 3, "e\u0301e\u0301e\u0301");
}

static void check_block(const char *text, TextUse use, size_t lines_max, const char *expected)
{
    setlocale(LC_CTYPE, "C.UTF-8");
    char *block;
    size_t size;
    FILE *out = open_memstream(&block, &size);
    text_print_block(out, slice_of(text), use, "> ", lines_max);
    fclose(out);
    CHECK_STR(block, expected);
    free(block);
}

TEST(a_block_is_indented_and_cut)
{
    check_block("", TEXT_TERMINAL, 0, "");
    check_block("a\n\nb", TEXT_TERMINAL, 0, "> a\n\n> b\n");
    check_block("a\r\nb\n", TEXT_TERMINAL, 0, "> a\n> b\n");
    check_block("a\033b\tc", TEXT_TERMINAL, 0, "> a^[b\tc\n");
    check_block("a\033b\r\n", TEXT_PLAIN, 0, "> a\033b\r\n");
    check_block("1\n2\n3\n4\n", TEXT_TERMINAL, 2, "> 1\n> 2\n> … (2 lines more; --full has all)\n");
    check_block("1\n2\n3\n4\n", TEXT_PLAIN, 2, "> 1\n> 2\n> 3\n> 4\n");
}

static const char *nearest_of(const char *wanted)
{
    Nearest nearest = nearest_begin(wanted);
    static const char *const NAMES[] = {"fork", "restore", "restore-backup", "rm", "log"};
    for (size_t i = 0; i < 5; i++)
        nearest_consider(&nearest, NAMES[i]);
    return nearest.name;
}

TEST(the_nearest_name_is_near)
{
    CHECK_STR(nearest_of("frok"), "fork");
    CHECK_STR(nearest_of("for"), "fork");
    CHECK_STR(nearest_of("restroe"), "restore");
    CHECK_STR(nearest_of("restore-bakup"), "restore-backup");
    CHECK_STR(nearest_of("zzzzzz"), NULL);
    CHECK_STR(nearest_of(""), NULL);
    CHECK_STR(nearest_of("an extremely long name that no command has at all"), NULL);
}
