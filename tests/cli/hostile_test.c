// Text of others cannot act on the terminal where it is shown.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "harness.h"
#include "hostile.h"
#include "shell.h"
#include "terminal.h"
#include "text/display.h"
#include "text/utf8.h"

static Shell *open_hostile(void)
{
    Shell *shell = shell_open();
    shell_tined_start(shell);
    Tine *tine;
    CHECK_EQ(tine_open_with(shell_url(), NULL, NULL, &tine), 0);
    hostile_store_fill(tine);
    tine_close(tine);
    return shell;
}

// Removes the sequences that `tine top` itself prints. Returns the new size.
static size_t without_own(char *text, size_t size)
{
    static const char *const OWN[] = {"\033[H",
                                      "\033[J",
                                      "\033[K",
                                      "\033[?1049h",
                                      "\033[?25l",
                                      "\033[2J\033[H",
                                      "\033[0m\033[?25h\033[?1049l"};
    for (size_t i = 0; i < sizeof(OWN) / sizeof(*OWN); i++) {
        size_t own_size = strlen(OWN[i]);
        char *found;
        while ((found = memmem(text, size, OWN[i], own_size))) {
            memmove(found, found + own_size, size - (size_t)(found + own_size - text));
            size -= own_size;
        }
    }
    return size;
}

static void check_harmless(const char *line, Terminal *terminal, bool may_begin_lines)
{
    size_t size = terminal->size;
    if (strstr(line, "tine top")) {
        char *taken = memmem(terminal->text, size, "\033[2J", 4); // of the screen, once
        if (taken) memcpy(taken, "\033[H\0", 3);
        size = without_own(terminal->text, size);
    }
    bool is_line_begin = true;
    for (Slice rest = slice(terminal->text, size); rest.size > 0;) {
        CodePoint point = utf8_decode(rest);
        bool is_layout = point.value == '\n' || point.value == '\t' ||
                         (point.value == '\r' && rest.size > 1 && rest.bytes[1] == '\n');
        bool is_bad = !point.is_valid || (display_is_unsafe(point.value) && !is_layout);
        if (is_line_begin && !may_begin_lines)
            is_bad |= slice_starts_with(rest, slice_of("FORGED"));
        if (is_bad) {
            printf("$ %s\nlets U+%04X through, before: %.60s\n", line, point.value,
                   (const char *)rest.bytes + 1);
        }
        CHECK(!is_bad);
        is_line_begin = point.value == '\n';
        rest = slice_skip(rest, point.size);
    }
}

// Runs a line of a shell at a terminal and checks its standard output and error.
static void check_line(const char *line, bool may_begin_lines)
{
    char whole[4096];
    snprintf(whole, sizeof(whole), "export NO_COLOR=1 PAGER=cat text=%s; { %s; } || true",
             "$(printf 'a\\033]52;c;aGk=\\007\\302\\233m\\u202e\\U000e0041\\u200b\\177\\nFORGED')",
             line);
    CLEANUP(terminal_close) Terminal *terminal = terminal_run(whole, 200);
    if (terminal->size < 15) printf("$ %s\nprints too little: %s\n", line, terminal->text);
    CHECK(terminal->size >= 15);
    check_harmless(line, terminal, may_begin_lines);
}

TEST(hostile_text_does_not_act_whatever_shows_it)
{
    static const char *const LINES[] = {
        "tine log @last --all",
        "tine log @last --all --full",
        "tine log @last --all --oneline",
        "tine log @last --all --reverse",
        "tine log @last --all -n 5",
        "tine log @last --since-marker",
        "tine log @last --all --json",
        "tine log @last --ui",
        "tine show @last",
        "tine show @last --json",
        "tine show @last @head",
        "tine show @last @head~1",
        "tine show @last @head --json",
        "tine ls",
        "tine ls --all",
        "tine ls --json",
        "tine tree",
        "tine tree @last",
        "tine tree --json",
        "tine cost",
        "tine cost --by model",
        "tine cost --by project",
        "tine cost --by session --json",
        "tine memory list @last",
        "tine memory list @last --json",
        "tine todo list @last",
        "tine todo list @last --json",
        "tine watch --oldest -n 16",
        "tine watch --oldest -n 16 --json",
        "tine top -n 1",
        "tine top -n 1 </dev/null",
        "tine top -n 1 --json",
        "tine call GetSession \"{\\\"session_id\\\": \\\"$(tine show @last | sed -n 's/^id "
        "*//p')\\\"}\"",
        "tine call ListEvents '{}'",
        "tine stats",
        "tine metrics",
        "tine export @last",
        "tine export pi @last",
        "tine __complete -- show ''",
        "tine __complete -- show h",
        "tine __complete -- show @last ''",
    };
    CLEANUP(shell_close) Shell *shell = open_hostile();
    CHECK(shell != NULL);
    for (size_t i = 0; i < sizeof(LINES) / sizeof(*LINES); i++)
        check_line(LINES[i], /* may_begin_lines= */ false);
    check_line("tine export @last --markdown", /* may_begin_lines= */ true);
}

// Lists of candidates, messages of the server, and echoed arguments.
TEST(hostile_text_does_not_act_in_messages_about_errors)
{
    static const char *const LINES[] = {
        "tine show hostile-twice",
        "tine show \"$text\"",
        "tine show \"@$text\"",
        "tine show @last \"$text\"",
        "tine \"$text\"",
        "tine log --\"$text\"",
        "tine log -\"$text\"",
        "tine log --kind \"$text\"",
        "tine log -n \"$text\"",
        "tine call \"$text\" '{}'",
        "tine call GetSession \"{\\\"session_id\\\": \\\"$(printf '\\u202e\\302\\233')\\\"}\"",
        "tine call GetSession \"{\\\"$(printf '\\u202e\\302\\233')\\\": 1}\"",
        "tine call GetSession \"@$text\"",
        "tine --socket \"$text\" --no-start ls",
        "tine --url \"$text\" --no-start ls",
        "tine --url \"embedded:/proc/$text\" ls",
        "tine --token-file \"$text\" ls",
        "tine new -p \"$text\" --parent \"$text\"",
        "tine new -m \"$text\"",
        "tine rename @last \"$text$(head -c 2000 /dev/zero | tr '\\0' x)\"",
        "tine import \"$text\"",
        "tine import <(printf '{\"tine_export\":1}\\n{\"%s\":{}}\\n' \"$text\")",
        "tine import pi <(printf '{\"type\":\"%s\"}\\n' \"$text\")",
        "tine export --all -o \"/proc/$text\"",
        "tine check \"$text\"",
        "tine restore-backup \"$text\"",
        "tine backup \"/proc/$text\"",
        "tine describe \"$text\"",
        "tine help \"$text\"",
        "tine completion \"$text\"",
        "tine watch --type \"$text\" --after x",
        "tine --color \"$text\" ls",
        "TINE_DATA=\"$text\" tine check",
    };
    CLEANUP(shell_close) Shell *shell = open_hostile();
    CHECK(shell != NULL);
    for (size_t i = 0; i < sizeof(LINES) / sizeof(*LINES); i++)
        check_line(LINES[i], /* may_begin_lines= */ false);
}
