// Behaviour at a terminal: colour, the pager, widths, hostile text, Ctrl-C.

#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "harness.h"
#include "shell.h"
#include "terminal.h"

static Shell *open_with_session(void)
{
    Shell *shell = shell_open();
    shell_tined_start(shell);
    shell_ok(shell, "tine new -s plan; tine append plan hello");
    return shell;
}

static bool has(const Terminal *terminal, const char *text)
{
    return memmem(terminal->text, terminal->size, text, strlen(text)) != NULL;
}

TEST(colour_is_for_terminals_that_want_it)
{
    static const struct {
        const char *line;
        bool is_coloured;
    } LINES[] = {
        {"tine --no-pager log plan", true},
        {"NO_COLOR=1 tine --no-pager log plan", false},
        {"TERM=dumb tine --no-pager log plan", false},
        {"tine --no-pager --color never log plan", false},
        {"NO_COLOR=1 tine --no-pager --color=always log plan", true},
        {"tine log plan | cat", false},
        {"tine log plan --color always | cat", true},
        {"tine --no-pager ls", true},
        {"NO_COLOR=1 tine --no-pager ls", false},
        {"tine --no-pager tree", true},
        {"tine --no-pager show plan", true},
        {"tine --json log plan", false},
    };
    CLEANUP(shell_close) Shell *shell = open_with_session();
    CHECK(shell != NULL);
    for (size_t i = 0; i < sizeof(LINES) / sizeof(*LINES); i++) {
        CLEANUP(terminal_close) Terminal *terminal = terminal_run(LINES[i].line, 80);
        if (has(terminal, "\033[") != LINES[i].is_coloured) printf("%s\n", LINES[i].line);
        CHECK_EQ(has(terminal, "\033["), LINES[i].is_coloured);
        CHECK(has(terminal, "plan") || has(terminal, "hello"));
    }
}

TEST(the_pager_is_for_terminals)
{
    static const struct {
        const char *line;
        bool is_paged;
    } LINES[] = {
        {"PAGER='sed s/^/P:/' tine log plan", true},
        {"PAGER='sed s/^/P:/' tine ls", true},
        {"PAGER='sed s/^/P:/' tine help", true},
        {"TINE_PAGER='sed s/^/P:/' PAGER=false tine show plan", true},
        {"PAGER='sed s/^/P:/' tine --no-pager log plan", false},
        {"PAGER='sed s/^/P:/' tine log plan | cat", false},
        {"PAGER='sed s/^/P:/' tine log plan --json", false},
        {"PAGER=cat tine log plan", false},
        {"PAGER= tine log plan", false},
        {"PAGER='sed s/^/P:/' tine append plan more", false},
    };
    CLEANUP(shell_close) Shell *shell = open_with_session();
    CHECK(shell != NULL);
    for (size_t i = 0; i < sizeof(LINES) / sizeof(*LINES); i++) {
        CLEANUP(terminal_close) Terminal *terminal = terminal_run(LINES[i].line, 80);
        if (has(terminal, "P:") != LINES[i].is_paged) printf("%s\n", LINES[i].line);
        CHECK_EQ(has(terminal, "P:"), LINES[i].is_paged);
    }
}

TEST(a_pager_that_is_left_early_ends_tine_quietly)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "head -c 300000 /dev/zero | tr '\\0' '\\n' | sed s/^/x/ | tine append plan");
    CLEANUP(terminal_close)
    Terminal *terminal = terminal_run("PAGER='head -n 3' tine log plan; echo left", 80);
    CHECK(has(terminal, "left"));
    CHECK(!has(terminal, "tine:"));
    CHECK(!has(terminal, "Broken"));
    CHECK(terminal->size < 500);
}

TEST(less_gives_the_terminal_back)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "seq 100 | tine append plan");
    CLEANUP(terminal_close)
    Terminal *terminal = terminal_start("tine log plan; echo left $?", 80);
    terminal_wait_for(terminal, "\n    20");
    terminal_type(terminal, "q");
    terminal_wait_for(terminal, "left 0");
    CHECK(terminal_is_clean(terminal));
    CHECK_EQ(terminal_end(terminal), 0);
}

TEST(tables_fit_the_terminal)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "tine new -s 一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十");
    static const int WIDTHS[] = {36, 42, 50, 60, 70, 80, 100, 200};
    for (size_t i = 0; i < sizeof(WIDTHS) / sizeof(*WIDTHS); i++) {
        CLEANUP(terminal_close)
        Terminal *terminal = terminal_run("NO_COLOR=1 tine --no-pager ls | cat; NO_COLOR=1 tine "
                                          "--no-pager ls | wc -l; NO_COLOR=1 tine --no-pager ls",
                                          WIDTHS[i]);
        const char *table = strstr(terminal->text, "ID ");
        CHECK(table != NULL);
        CHECK(strstr(table, "NAME") != NULL);
        CHECK_EQ(strstr(table, "PROJECT") != NULL, WIDTHS[i] >= 70);
        CHECK_EQ(strstr(table, "STATE") != NULL, WIDTHS[i] >= 90);
        for (const char *line = table; *line; line += strcspn(line, "\n") + 1) {
            size_t bytes = strcspn(line, "\r\n"), columns = 0;
            for (size_t j = 0; j < bytes; j++) {
                unsigned char byte = (unsigned char)line[j];
                if (byte < 0x80) columns++;
                if (byte >= 0xe3) columns += 2; // the first byte of one of those above
                if (byte == 0xe2) columns++;    // of "…"
            }
            CHECK(columns <= (size_t)WIDTHS[i]);
        }
    }
}

TEST(text_does_not_take_over_the_terminal)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "text=$(printf 'a\\033]0;owned\\007b\\033[2Jc\\u202ed\\u2066e\\rf\\u009bg"
                    "\\u200bh\\010i\\177j'); tine rename plan \"$text\"; "
                    "tine append @last \"$text\"; tine rename @last -t \"$text\"; "
                    "tine memory add @last \"$text\"; tine todo set @last \"$text\"; "
                    "tine compact @last \"$text\"");
    static const char *const LINES[] = {
        "log @last",
        "log @last --oneline",
        "ls",
        "show @last",
        "show @last @head",
        "tree",
        "cost",
        "memory list @last",
        "todo list @last",
        "top -n 1",
        "ls --json",
        "log @last --json",
        "show \"$(printf 'x\\033[2Jy')\"",
    };
    for (size_t i = 0; i < sizeof(LINES) / sizeof(*LINES); i++) {
        char line[256];
        snprintf(line, sizeof(line), "NO_COLOR=1 tine --no-pager %s || true", LINES[i]);
        CLEANUP(terminal_close) Terminal *terminal = terminal_run(line, 200);
        bool is_top = strncmp(LINES[i], "top", 3) == 0, is_json = strstr(LINES[i], "--json");
        static const char *const ACTING[] = {"\033]",    "\007", "\033[2Jc", "\u202e", "\u2066",
                                             "\xc2\x9b", "\010", "\177",     "\rf",    "\u200b"};
        size_t count = sizeof(ACTING) / sizeof(*ACTING);
        if (is_json) count--; // what cannot be seen belongs to the text
        for (size_t j = 0; j < count; j++) {
            if (has(terminal, ACTING[j])) printf("%s lets %zu through\n", line, j);
            CHECK(!has(terminal, ACTING[j]));
        }
        CHECK(is_top || !has(terminal, "\033"));
        CHECK(terminal->size > 20);
    }
}

TEST(ten_megabytes_in_a_line_are_cut)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "head -c 10000000 /dev/zero | tr '\\0' x | tine append plan");
    CLEANUP(terminal_close) Terminal *terminal = terminal_run("tine --no-pager log plan", 80);
    CHECK(has(terminal, "bytes more on this line; --json and pipes have all"));
    CHECK(terminal->size < 8000);
    shell_ok(shell, "tine log plan -n 1 | wc -L");
    CHECK_STR(shell->output, "10000004\n");
}

TEST(heaps_of_marks_and_of_lines_are_cut)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "head -c 1000000 /dev/zero | sed 's/\\x00/\\xcc\\x81/g' | tine append plan");
    CLEANUP(terminal_close) Terminal *marks = terminal_run("tine --no-pager log plan", 80);
    CHECK(has(marks, "bytes more on this line"));
    CHECK(marks->size < 40000);
    shell_ok(shell, "head -c 1000000 /dev/zero | tr '\\0' '\\n' | tine append plan");
    CLEANUP(terminal_close) Terminal *lines = terminal_run("tine --no-pager log plan -n 1", 80);
    CHECK(has(lines, "lines more; --full has all"));
    CHECK(lines->size < 40000);
}

TEST(long_results_of_tools_are_cut)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "jq -n '[{tool_result:{tool_use_id:\"1\",tool_name:\"seq\","
                    "content:([range(100)|tostring]|join(\"\\n\"))}}]' >parts; "
                    "tine append plan -r tool --parts @parts");
    CLEANUP(terminal_close) Terminal *terminal = terminal_run("tine --no-pager log plan", 80);
    CHECK(has(terminal, "    19\r\n"));
    CHECK(has(terminal, "… (80 lines more; --full has all)"));
    CLEANUP(terminal_close) Terminal *full = terminal_run("tine --no-pager log plan --full", 80);
    CHECK(has(full, "    99\r\n"));
    shell_ok(shell, "tine log plan | grep -c '^    [0-9]'");
    CHECK_STR(shell->output, "100\n");
}

TEST(watch_shows_the_time_of_an_event_whole)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    CHECK(shell != NULL);
    CLEANUP(terminal_close) Terminal *terminal = terminal_run("tine watch --oldest -n 1", 120);
    regex_t time;
    CHECK_EQ(regcomp(&time, "  [0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}  ", REG_EXTENDED), 0);
    CHECK_EQ(regexec(&time, terminal->text, 0, NULL, 0), 0);
    regfree(&time);
}

TEST(ctrl_c_in_watch_leaves_the_terminal_clean)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    CHECK(shell != NULL);
    CLEANUP(terminal_close) Terminal *terminal = terminal_start("exec tine watch --oldest", 80);
    terminal_wait_for(terminal, "message.appended");
    terminal_type(terminal, "\003");
    CHECK_EQ(terminal_end(terminal), -SIGINT);
    CHECK(!has(terminal, "tine:"));
    CHECK(terminal_is_clean(terminal));
}

// The sequence that restores the screen: colours off, cursor on, previous content back.
static const char LEFT[] = "\033[0m\033[?25h\033[?1049l";

static void leave_top(const char *key, int code)
{
    CLEANUP(terminal_close) Terminal *terminal = terminal_start("exec tine top", 80);
    terminal_wait_for(terminal, "active in 5 min");
    CHECK(!terminal_is_clean(terminal));
    terminal_type(terminal, key);
    CHECK_EQ(terminal_end(terminal), code);
    size_t size = strlen(LEFT);
    CHECK(terminal->size > size);
    const char *end = terminal->text + terminal->size - size;
    if (memcmp(end, LEFT, size) != 0) { // but for the echo of Ctrl-C
        CHECK(has(terminal, LEFT));
    }
    CHECK(terminal_is_clean(terminal));
}

TEST(top_leaves_the_terminal_clean)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    CHECK(shell != NULL);
    leave_top("q", 0);
    leave_top("\003", -SIGINT);
    CLEANUP(terminal_close) Terminal *terminal = terminal_start("exec tine top", 80);
    terminal_wait_for(terminal, "active in 5 min");
    kill(terminal->pid, SIGTERM);
    CHECK_EQ(terminal_end(terminal), -SIGTERM);
    CHECK(has(terminal, LEFT));
    CHECK(terminal_is_clean(terminal));
}

TEST(top_gives_the_terminal_back_while_it_is_stopped)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    CHECK(shell != NULL);
    CLEANUP(terminal_close) Terminal *terminal = terminal_start("exec tine top", 80);
    terminal_wait_for(terminal, "active in 5 min");
    terminal_type(terminal, "\032");
    terminal_wait_for(terminal, LEFT);
    int status = 0;
    CHECK_EQ(waitpid(terminal->pid, &status, WUNTRACED), terminal->pid);
    CHECK(WIFSTOPPED(status));
    CHECK(terminal_is_clean(terminal));
    terminal->size = 0;
    CHECK_EQ(kill(terminal->pid, SIGCONT), 0);
    terminal_wait_for(terminal, "active in 5 min");
    terminal_type(terminal, "q");
    CHECK_EQ(terminal_end(terminal), 0);
}

TEST(top_says_that_the_server_is_away_and_goes_on)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    CLEANUP(terminal_close) Terminal *terminal = terminal_start("exec tine top -i 100", 80);
    terminal_wait_for(terminal, "active in 5 min");
    shell_tined_stop(shell);
    terminal_wait_for(terminal, "tined answers");
    terminal->size = 0;
    shell_tined_start(shell);
    terminal_wait_for(terminal, "active in 5 min");
    terminal_type(terminal, "q");
    CHECK_EQ(terminal_end(terminal), 0);
}

TEST(purge_asks_at_a_terminal)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    CLEANUP(terminal_close) Terminal *no = terminal_start("tine purge plan", 80);
    terminal_wait_for(no, "Type yes: ");
    terminal_type(no, "no\n");
    CHECK_EQ(terminal_end(no), 1);
    CHECK(has(no, "nothing was done"));
    CLEANUP(terminal_close) Terminal *yes = terminal_start("tine purge plan", 80);
    terminal_wait_for(yes, "and its 1 messages will be deleted permanently. Type yes: ");
    terminal_type(yes, "yes\n");
    CHECK_EQ(terminal_end(yes), 0);
    shell_fails(shell, 3, "tine show plan");
}

TEST(append_at_a_terminal_says_what_it_waits_for)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    CLEANUP(terminal_close) Terminal *terminal = terminal_start("tine append plan", 80);
    terminal_wait_for(terminal, "Ctrl-D");
    terminal_type(terminal, "typed\n\004");
    CHECK_EQ(terminal_end(terminal), 0);
    shell_ok(shell, "tine log plan --oneline -n 1 | cut -f3");
    CHECK_STR(shell->output, "typed\n");
}
