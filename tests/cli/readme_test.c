// What a newcomer does first works: `make run`, and the commands of the README.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "shell.h"

// Runs the `sh` blocks of the README. Blocks for a console are only read.
#define LINES "awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' " README " >lines"
#define README SOURCE_DIR "/README.md"
#define STOP "pid=$(cat tine/tine.sock.lock); kill $pid; tail -s 0.02 --pid=$pid -f /dev/null"

TEST(every_line_of_the_readme_works)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, LINES " && wc -l <lines && ! grep '[\\]$' lines");
    CHECK(atoi(shell->output) >= 30);
    // The environment of the reader: a build directory, and an empty home.
    shell_ok(shell, "mkdir build && ln -s " BUILD_DIR " build/release && "
                    "export TINE_IDLE_EXIT=10s && "
                    "for time in first second; do while IFS= read -r line <&3; do "
                    "echo \"$ $line\"; "
                    "eval \"$line\" </dev/null || { echo \"failed: $line\" >&2; exit 1; }; "
                    "done 3<lines; done; test -z \"$(tine ls)\"; ls; " STOP);
    CHECK(strstr(shell->errors, "tine: ") == NULL);
    shell_shows(shell, "no damage: 2 sessions, ");
    shell_shows(shell, "build\ndata\nlines\nstate\ntine\n");
}

static void check_tour(Shell *shell)
{
    CHECK_STR(shell->errors, "");
    shell_shows(shell, "  -> event 1, ");
    shell_shows(shell, ", session.created\n");
    shell_shows(shell, "  -> event 9, ");
    shell_shows(shell, ", marker.added\n");
    shell_shows(shell, "\tuser\tWhat about SQLite instead?\n");
    shell_shows(shell, "\tcompaction\tWe agreed on LMDB.\n");
    shell_shows(shell, "  other-way  fork  1 msg  $0.00\n");
    shell_shows(shell, "no damage: 2 sessions, ");
}

TEST(the_tour_works_beside_a_tined_and_twice)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_tined_start(shell);
    for (int i = 0; i < 2; i++) {
        shell_ok(shell, "TMPDIR=$PWD " SOURCE_DIR "/scripts/tour " BUILD_DIR);
        check_tour(shell);
    }
    shell_ok(shell, "tine ls; ls -d tine-tour-* 2>/dev/null || true");
    CHECK_STR(shell->output, "");
}

#define NOBODY "setpriv --reuid 65534 --regid 65534 --clear-groups"

// A user without a home, with variables that point elsewhere.
TEST(the_tour_works_for_others_than_root)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, "id -u; command -v setpriv || true");
    if (strncmp(shell->output, "0\n/", 3) != 0) SKIP("needs root, to be somebody else");
    shell_ok(shell, NOBODY " test -x " TINE " || echo no");
    if (*shell->output) SKIP("the build is in a directory for root alone");
    shell_ok(shell, "cd /; HOME=/nonexistent TINE_URL=tcp://127.0.0.1:1 "
                    "TINE_DATA=/nonexistent " NOBODY " " SOURCE_DIR "/scripts/tour " BUILD_DIR);
    check_tour(shell);
}
