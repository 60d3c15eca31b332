// The printer: what it shows by name, formats, widths and cuts, blocks.

#include "text/print.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

static void check_line(const char *text, PrintUse use, size_t columns_max, const char *expected)
{
    setlocale(LC_CTYPE, "C.UTF-8");
    char *line = print_line(text, use, columns_max);
    CHECK_STR(line, expected);
    free(line);
}

TEST(print_line_on_a_terminal_shows_what_would_act)
{
    check_line("plain é 一 🙂", PRINT_TERMINAL, 0, "plain é 一 🙂");
    check_line("\033[31m", PRINT_TERMINAL, 0, "^[[31m");
    check_line("a\tb\nc\rd", PRINT_TERMINAL, 0, "a b c d");
    check_line("\177\007", PRINT_TERMINAL, 0, "^?^G");
    check_line("\xc2\x9b", PRINT_TERMINAL, 0, "<U+009B>");
    check_line("\u202e\u2066\ufeff\U000e0041", PRINT_TERMINAL, 0,
               "<U+202E><U+2066><U+FEFF><U+E0041>");
    check_line("\xff\xc0\x80", PRINT_TERMINAL, 0, "<FF><C0><80>");
    check_line("\xe4\xb8", PRINT_TERMINAL, 0, "<E4><B8>");
    check_line("\xed\xa0\x80", PRINT_TERMINAL, 0, "<ED><A0><80>");
}

TEST(print_line_in_a_pipe_can_be_read_back)
{
    check_line("a\tb\nc\\d\re", PRINT_PLAIN, 0, "a\\tb\\nc\\\\d\\re");
    check_line("\033[31m\u202e", PRINT_PLAIN, 0, "\033[31m\u202e");
    check_line("\xff", PRINT_PLAIN, 0, "\xff");
}

TEST(print_line_is_cut_by_columns_not_by_bytes)
{
    check_line("abcdef", PRINT_TERMINAL, 6, "abcdef");
    check_line("abcdefg", PRINT_TERMINAL, 6, "abcde…");
    check_line("一二三", PRINT_TERMINAL, 6, "一二三");
    check_line("一二三四", PRINT_TERMINAL, 6, "一二…");
    check_line("一二三四", PRINT_TERMINAL, 7, "一二三…");
    check_line("ab\033cd", PRINT_TERMINAL, 4, "ab…");
    check_line("", PRINT_TERMINAL, 4, "");
    char heap[1001] = "a";
    for (size_t i = 1; i < 1000; i += 2)
        memcpy(heap + i, "\u0301", 2);
    heap[999] = '\0';
    setlocale(LC_CTYPE, "C.UTF-8");
    char *line = print_line(heap, PRINT_TERMINAL, 4);
    CHECK(strlen(line) < 100);
    free(line);
    check_line("e\u0301e\u0301e\u0301", PRINT_TERMINAL, 3, "e\u0301e\u0301e\u0301");
}

static void check_block(const char *text, PrintUse use, size_t lines_max, const char *expected)
{
    setlocale(LC_CTYPE, "C.UTF-8");
    char *block;
    size_t size;
    Printer out = {.file = open_memstream(&block, &size), .use = use};
    print_block(&out, slice_of(text), "> ", lines_max);
    fclose(out.file);
    CHECK_STR(block, expected);
    free(block);
}

TEST(print_block_is_indented_and_cut)
{
    check_block("", PRINT_TERMINAL, 0, "");
    check_block("a\n\nb", PRINT_TERMINAL, 0, "> a\n\n> b\n");
    check_block("a\r\nb\n", PRINT_TERMINAL, 0, "> a\n> b\n");
    check_block("a\033b\tc", PRINT_TERMINAL, 0, "> a^[b\tc\n");
    check_block("a\033b\r\n", PRINT_PLAIN, 0, "> a\033b\r\n");
    check_block("1\n2\n3\n4\n", PRINT_TERMINAL, 2,
                "> 1\n> 2\n> … (2 lines more; --full has all)\n");
    check_block("1\n2\n3\n4\n", PRINT_PLAIN, 2, "> 1\n> 2\n> 3\n> 4\n");
}

// Prints into memory; printed_text has it.
static char printed[4096];

static Printer memory_printer(PrintUse use, bool has_colour)
{
    setlocale(LC_CTYPE, "C.UTF-8");
    memset(printed, 0, sizeof(printed));
    return (Printer){fmemopen(printed, sizeof(printed), "w"), use, has_colour};
}

static const char *printed_text(Printer *out)
{
    CHECK_EQ(fclose(out->file), 0);
    return printed;
}

TEST(print_formats_as_printf_does)
{
    char expected[512];
    Printer out = memory_printer(PRINT_PLAIN, false);
#define FORMAT                                                                                     \
    "%d|%5d|%-5d|%05d|%i|%u|%x|%08X|%c|%ld|%lld|%llu|%zu|%jd|%" PRIu64 "|%.3f|%8.1f|%g|%.17g|%*d"  \
    "|%hhu|%+d|%%|%.2f"
#define ARGUMENTS                                                                                  \
    -1, 42, 42, 42, 7, 4000000000u, 255u, 0xBEEFu, 'z', -1L, -2LL, 3ULL, (size_t)4, (intmax_t)-5,  \
        UINT64_MAX, 1.5, 2.25, 0.1, 0.1, 6, 9, (unsigned char)200, 3, 1e300
    print(&out, FORMAT, ARGUMENTS);
    snprintf(expected, sizeof(expected), FORMAT, ARGUMENTS);
    CHECK_STR(printed_text(&out), expected);
}

TEST(print_text_arguments_are_safe_padded_and_cut_by_columns)
{
    Printer out = memory_printer(PRINT_TERMINAL, false);
    print(&out, "[%s|%6s|%-6s|%-4.4s|%.*s|%.0s|%c]\n", "\033]52;\007", "一", "é", "abcdef", -1,
          "a\nb", "gone", '\033');
    CHECK_STR(printed_text(&out), "[^[]52;^G|    一|é     |abc…|a b||^[]\n");
    out = memory_printer(PRINT_PLAIN, false);
    print(&out, "%s\t%s\n", "a\tb", "c\\");
    CHECK_STR(printed_text(&out), "a\\tb\tc\\\\\n");
    out = memory_printer(PRINT_TERMINAL, false);
    errno = ENOENT;
    print(&out, "%s: %m", "x");
    CHECK_STR(printed_text(&out), "x: No such file or directory");
}

TEST(print_styles_are_printed_only_in_colour)
{
    Printer out = memory_printer(PRINT_TERMINAL, false);
    print(&out, PRINT_BOLD "%s" PRINT_NORMAL "\r\033[K.", PRINT_YELLOW);
    CHECK_STR(printed_text(&out), "^[[33m\r\033[K.");
    out = memory_printer(PRINT_TERMINAL, true);
    print(&out, PRINT_BOLD "%s" PRINT_NORMAL ".", PRINT_YELLOW);
    CHECK_STR(printed_text(&out), "\033[1m^[[33m\033[0m.");
}

TEST(print_columns_are_those_of_the_text)
{
    setlocale(LC_CTYPE, "C.UTF-8");
    CHECK_EQ(print_columns("aé一🙂"), 6);
    CHECK_EQ(print_columns(""), 0);
}
