// Many session files of pi in one command, and how people name files and sessions.

#include <stdlib.h>

#include "harness.h"
#include "shell.h"
#include "terminal.h"

// Makes `path` a session file with one entry.
static void session_file(Shell *shell, const char *path, const char *id)
{
    shell_ok(shell,
             "printf '%%s\\n' '{\"type\":\"session\",\"version\":3,\"id\":\"%s\",\"timestamp\":"
             "\"2025-11-20T10:00:00.000Z\",\"cwd\":\"/p\"}' '{\"type\":\"message\",\"id\":\"1\","
             "\"parentId\":null,\"timestamp\":\"2025-11-20T10:00:01.000Z\",\"message\":{\"role\":"
             "\"user\",\"content\":\"hello\",\"timestamp\":1}}' >%s",
             id, path);
}

TEST(pi_file_that_is_bad_does_not_stop_the_others)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    session_file(shell, "a.jsonl", "a");
    session_file(shell, "b.jsonl", "b");
    shell_ok(shell, "touch empty.jsonl; echo '{\"no\":1}' >bad.jsonl");
    shell_fails(
        shell, 1,
        "tine --url embedded:s import pi a.jsonl empty.jsonl bad.jsonl nowhere.jsonl b.jsonl");
    shell_says(shell, "tine: empty.jsonl: ");
    shell_says(shell, "tine: bad.jsonl: line 1: ");
    shell_says(shell, "tine: cannot read nowhere.jsonl: No such file or directory");
    shell_shows(shell, "sessions: 2 new, 0 there already; entries: 2 new, 0 there already\n");
    shell_shows(shell, "files: 2 imported, 3 failed\n");
    shell_fails(shell, 1, "tine --url embedded:s import --json pi empty.jsonl a.jsonl");
    shell_shows(shell, "\"sessions_known\": 1, \"entries_new\": 0, \"entries_known\": 1, "
                       "\"files_failed\": 1}\n");
    shell_ok(shell, "tine --url embedded:s import --json pi a.jsonl");
    shell_shows(shell, "\"files_failed\": 0}\n");
}

TEST(pi_directories_are_imported_with_all_below_them)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, "mkdir -p sessions/--p-- sessions/--q--/deep other; ln -s .. sessions/loop");
    session_file(shell, "sessions/--p--/1.jsonl", "1");
    session_file(shell, "sessions/--q--/deep/2.jsonl", "2");
    session_file(shell, "sessions/3.jsonl", "3");
    session_file(shell, "sessions/not-this-one.txt", "4");
    shell_ok(shell, "tine --url embedded:s import pi sessions");
    shell_shows(shell, "sessions: 3 new, 0 there already; entries: 3 new, 0 there already\n");
    shell_fails(shell, 1, "tine --url embedded:s import pi other sessions");
    shell_says(shell, "tine: other: no *.jsonl file in it or below");
    shell_shows(shell, "sessions: 0 new, 3 there already");
}

TEST(pi_import_shows_at_a_terminal_how_many_files_are_done)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, "mkdir sessions; mkfifo sessions/wait");
    session_file(shell, "sessions/1.jsonl", "1");
    session_file(shell, "sessions/2.jsonl", "2");
    // The FIFO stops the import until the terminal has shown its progress.
    CLEANUP(terminal_close)
    Terminal *terminal = terminal_start("tine --url embedded:s import pi sessions sessions/wait "
                                        "sessions/1.jsonl",
                                        80);
    terminal_wait_for(terminal, "2 of 4 files");
    shell_ok(shell, "cat sessions/2.jsonl >sessions/wait");
    terminal_wait_for(terminal, "sessions: 2 new, 2 there already");
    CHECK_EQ(terminal_end(terminal), 0);
}

TEST(pi_sessions_are_named_by_their_own_ids)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    session_file(shell, "a.jsonl", "5b1c9a52-9f0e-4c58-a9a4-0c2f5f3f8a11");
    shell_ok(shell, "tine --url embedded:s import pi a.jsonl");
    shell_ok(shell, "tine --url embedded:s export pi 5b1c9a52-9f0e-4c58-a9a4-0c2f5f3f8a11 | "
                    "cmp - a.jsonl");
    shell_ok(shell, "tine --url embedded:s show 5b1c9a52-9f0e-4c58-a9a4-0c2f5f3f8a11");
    shell_shows(shell, "/p");
    shell_ok(shell, "tine --url embedded:s log 5b1c9a52-9f0e-4c58-a9a4-0c2f5f3f8a11");
    shell_shows(shell, "hello");
    shell_fails(shell, 3, "tine --url embedded:s show 5b1c9a52-9f0e-4c58-a9a4-0c2f5f3f8a12");
}

TEST(pi_file_that_is_imported_as_an_export_names_the_command)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    session_file(shell, "a.jsonl", "a");
    shell_fails(shell, 1, "tine --url embedded:s import a.jsonl");
    shell_says(shell, "a.jsonl is a session file of pi: tine import pi a.jsonl");
}

TEST(pi_without_files_or_sessions_says_what_to_name)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_fails(shell, 2, "tine --url embedded:s import pi");
    shell_says(shell, "name files or directories: tine import pi ~/.pi/agent/sessions");
    shell_fails(shell, 2, "tine --url embedded:s import");
    shell_says(shell, "name files: tine import FILE, or tine import pi ~/.pi/agent/sessions");
    shell_fails(shell, 2, "tine --url embedded:s export pi");
    shell_says(shell, "name one session: tine export pi SESSION");
    shell_ok(shell, "tine --url embedded:s new --slug pi --project /p");
    shell_ok(shell, "tine --url embedded:s export pi");
    shell_shows(shell, "{\"tine_export\":1}");
}
