// Starting tined when none runs.

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "os/directory.h"
#include "shell.h"
#include "start.h"

// A tined that a failed test leaves behind ends soon.
#define SOON "export TINE_IDLE_EXIT=10s; "
#define STOP "pid=$(cat tine/tine.sock.lock); kill $pid; tail -s 0.02 --pid=$pid -f /dev/null"

TEST(a_command_starts_tined_when_none_runs)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_fails(shell, 4, "tine ls --no-start");
    shell_ok(shell, SOON "tine new -s plan");
    CHECK_EQ(strlen(shell->output), 27);
    CHECK_STR(shell->errors, "");
    shell_ok(shell, "tine --no-start ls | cut -f6; grep -c ready state/tine/tined.log");
    CHECK_STR(shell->output, "plan\n1\n");
    shell_ok(shell, "stat -c %%a state/tine/tined.log state/tine data/tine");
    CHECK_STR(shell->output, "600\n700\n700\n");
    // It is detached: session, directory and descriptors are its own.
    shell_ok(shell, "pid=$(cat tine/tine.sock.lock); "
                    "test $(cut -d ' ' -f 6 /proc/$pid/stat) = $pid; "
                    "readlink /proc/$pid/cwd; readlink /proc/$pid/fd/0");
    CHECK_STR(shell->output, "/\n/dev/null\n");
    shell_ok(shell, STOP);
    shell_ok(shell, SOON "tine ls | cut -f6; " STOP);
    CHECK_STR(shell->output, "plan\n");
}

TEST(a_started_tined_that_migrates_its_store_is_waited_for)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, "mkdir -p data/tine && gzip -dc '" SOURCE_DIR
                    "/tests/store/fixtures/format-1.mdb.gz' >data/tine/data.mdb");
    shell_ok(shell, SOON "tine ls | cut -f6 | grep busy; " STOP);
    CHECK_STR(shell->output, "busy\n");
    shell_ok(shell, "grep 'migrating the store' state/tine/tined.log; ls data/tine");
    shell_shows(shell, "needed_mib=1 ");
    shell_shows(shell, "before-format-3\n");
}

TEST(twenty_at_once_start_one)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, SOON "for i in $(seq 20); do tine new -s s$i >out$i 2>&1 & done; wait; "
                         "cat out* | sort -u | wc -l; tine ls | wc -l; "
                         "grep -c ready state/tine/tined.log; " STOP);
    CHECK_STR(shell->output, "20\n20\n1\n");
}

TEST(a_socket_that_a_killed_tined_left_is_taken_over)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, SOON "tine new -s plan; pid=$(cat tine/tine.sock.lock); kill -9 $pid; "
                         "tail -s 0.02 --pid=$pid -f /dev/null; test -S tine/tine.sock; "
                         "tine ls | cut -f6; " STOP);
    shell_shows(shell, "\nplan\n");
}

// Otherwise all sessions would seem to be lost, and new ones would be stored elsewhere.
TEST(the_store_of_a_killed_tined_is_not_mistaken_for_the_default_one)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, SOON "export TINE_DATA=$PWD/mine; tine new -s plan; "
                         "pid=$(cat tine/tine.sock.lock); kill -9 $pid; "
                         "tail -s 0.02 --pid=$pid -f /dev/null");
    shell_fails(shell, 4, SOON "tine ls");
    shell_says(shell, "tined does not start: the last tined at ");
    shell_says(shell, "/tine/tine.sock kept ");
    shell_says(shell, "/mine to go on with that store, or --data ");
    shell_ok(shell, "! test -e data");
    shell_ok(shell, SOON "TINE_DATA=mine tine ls | cut -f6; " STOP);
    CHECK_STR(shell->output, "plan\n");
    shell_ok(shell, SOON "tine ls; " STOP);
    CHECK_STR(shell->output, "");
}

TEST(a_killed_tineds_store_that_is_gone_is_in_nobodys_way)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, SOON "TINE_DATA=$PWD/mine tine new -s plan; "
                         "pid=$(cat tine/tine.sock.lock); kill -9 $pid; "
                         "tail -s 0.02 --pid=$pid -f /dev/null; rm -r mine; tine ls; " STOP);
    shell_ok(shell, "! test -e mine; ! test -e tine/tine.sock.store");
}

// A tined that is stopping first answers accepted requests, and keeps its socket until then. The
// holder of the lock in this test ends when another tined has reported that the socket is in use.
TEST(a_tined_that_is_stopping_is_waited_for)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, SOON "umask 077; mkdir tine; "
                         "(exec 9>tine/tine.sock.lock; flock 9; echo $BASHPID >&9; "
                         "until grep -qs 'in use' state/tine/tined.log; do :; done) & "
                         "until test -s tine/tine.sock.lock; do :; done; "
                         "tine new -s plan && tine --no-start ls | cut -f6 && " STOP);
    shell_shows(shell, "\nplan\n");
    CHECK_STR(shell->errors, "");
}

TEST(a_store_that_another_tined_has_is_said_at_once)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_tined_start(shell);
    shell_fails(shell, 4, SOON "tine --socket other ls");
    shell_says(shell, "tined does not start: ");
    shell_says(shell, " is in use by the process with pid ");
}

TEST(a_relative_socket_is_this_directorys)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, SOON "tine --socket s ping >/dev/null; test -S s; pid=$(cat s.lock); "
                         "kill $pid; tail -s 0.02 --pid=$pid -f /dev/null");
}

TEST(why_tined_does_not_start_is_said)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_fails(shell, 4, SOON "touch file; TINE_DATA=$PWD/file/data tine ls");
    shell_says(shell, "tined does not start: cannot use ");
    CHECK_EQ(strchr(shell->errors, '\n') - shell->errors, (long)strlen(shell->errors) - 1);
    shell_fails(shell, 4, "touch file; XDG_STATE_HOME=$PWD/file tine ls");
    shell_says(shell, "for its log cannot be made");
    shell_fails(shell, 4, "mkdir alone; cp $(which tine) alone; PATH=/nowhere alone/tine ls");
    shell_says(shell, "none is installed beside tine or in PATH");
}

TEST(a_directory_is_exclusive_when_nobody_else_can_write_to_it)
{
    char path[600], link[600];
    snprintf(path, sizeof(path), "%s/d", test_dir());
    snprintf(link, sizeof(link), "%s/link", test_dir());
    CHECK(directory_is_exclusive(path));
    CHECK_EQ(mkdir(path, 0700), 0);
    CHECK(directory_is_exclusive(path));
    CHECK_EQ(symlink(path, link), 0);
    CHECK(!directory_is_exclusive(link));
    CHECK_EQ(chmod(path, 0770), 0);
    CHECK(!directory_is_exclusive(path));
    CHECK_EQ(chmod(path, 01777), 0);
    CHECK(!directory_is_exclusive(path));
    CHECK_EQ(chmod(path, 0755), 0);
    CHECK(directory_is_exclusive(path));
    if (geteuid() != 0) SKIP("only root can give a directory away");
    CHECK_EQ(chown(path, 1, 1), 0);
    CHECK(!directory_is_exclusive(path));
}

TEST(a_command_that_needs_no_tined_starts_none)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, "tine version; tine help; tine new --help; ! tine new --nothing; ! tine nwe; "
                    "! tine append; ! test -e tine; ! test -e state");
}

// The kernel accepts connections for a stopped daemon.
TEST(no_command_waits_for_ever_for_a_tined_that_does_not_answer)
{
    static const char *const LINES[] = {
        "ls", "ping", "stats", "append @last x", "call GetSession '{}'", "log @last --follow",
    };
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_tined_start(shell);
    CHECK_EQ(kill(shell->tined, SIGSTOP), 0);
    for (size_t i = 0; i < sizeof(LINES) / sizeof(*LINES); i++) {
        shell_fails(shell, 4, "tine --timeout 100 %s </dev/null", LINES[i]);
        shell_says(shell, "does not answer within 100 ms");
        shell_says(shell, "kill -CONT");
        shell_says(shell, "--timeout");
        CHECK_STR(shell->output, "");
    }
    shell_fails(shell, 4, "tine call --timeout 100 GetSession '{}'");
    // Longer than libtine waits for a connection.
    shell_fails(shell, 4, "tine --timeout 6000 ls");
    shell_says(shell, "does not answer within 6000 ms");
    shell_ok(shell, "tine __complete -- --timeout 100 show '' | cut -f 1");
    CHECK_STR(shell->output, "");
    CHECK_EQ(kill(shell->tined, SIGCONT), 0);
    shell_ok(shell, "tine ping >/dev/null");
}

TEST(a_timeout_is_milliseconds_from_1_to_an_hour)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_fails(shell, 2, "tine --timeout 0 ls");
    shell_fails(shell, 2, "tine --timeout 3600001 ls");
    shell_fails(shell, 2, "tine --timeout 1s ls");
    shell_says(shell, "--timeout: '1s' is not a number from 1 to 3600000");
}
