// Many that start at once, as clients do that find no daemon: one serves, the others say who.

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "daemon/daemon.h"
#include "process.h"

enum { STARTERS = 20 };

static Child *child_of(Child *children, pid_t pid)
{
    for (size_t i = 0; i < STARTERS; i++) {
        if (children[i].pid == pid) return &children[i];
    }
    CHECK(false);
    return NULL;
}

// Waits for the end of all but one. Returns that one, and the runs of the others in `runs`.
static Child *wait_for_losers(Child *children, Run *runs)
{
    for (size_t i = 0; i < STARTERS - 1; i++) {
        int status;
        pid_t pid;
        while ((pid = waitpid(-1, &status, 0)) < 0)
            CHECK_EQ(errno, EINTR);
        Child *child = child_of(children, pid);
        child_end(child, status, &runs[i]);
        child->pid = 0;
    }
    for (size_t i = 0; i < STARTERS; i++) {
        if (children[i].pid) return &children[i];
    }
    return NULL;
}

static void check_loser(const Run *run, pid_t winner)
{
    char pid[64];
    snprintf(pid, sizeof(pid), "is in use by the process with pid %d;", winner);
    if (run->code != TINED_EXIT_IN_USE || !strstr(run->errors, pid)) {
        printf("wanted: %s\n%s", pid, run->errors);
    }
    CHECK_EQ(run->code, TINED_EXIT_IN_USE);
    CHECK(strstr(run->errors, pid) != NULL);
    CHECK_EQ(text_line_count(run->errors), 1);
}

// Starts twenty at once, time and again on what the last one left: its end, or its death.
static void start_together(bool have_own_sockets)
{
    static Run runs[STARTERS];
    char data[PLACE_BYTES_MAX], log[PLACE_BYTES_MAX];
    snprintf(data, sizeof(data), "%s/data", test_dir());
    snprintf(log, sizeof(log), "%s/log", test_dir());
    for (size_t round = 0; round < test_scaled(20); round++) {
        Child children[STARTERS];
        char sockets[STARTERS][108];
        for (size_t i = 0; i < STARTERS; i++) {
            int size = snprintf(sockets[i], sizeof(sockets[i]), "%s/s%zu", test_dir(),
                                have_own_sockets ? i : 0);
            CHECK(size > 0 && (size_t)size < sizeof(sockets[i]));
            tined_begin(&children[i], (const char *[]){"--data", data, "--socket", sockets[i],
                                                       "--log-file", log, NULL});
        }
        Child *winner = wait_for_losers(children, runs);
        for (size_t i = 0; i < STARTERS - 1; i++)
            check_loser(&runs[i], winner->pid);
        Sp sp = sp_open_when_there(sockets[winner - children]);
        check_served(sp);
        sp_close(&sp);
        CHECK_EQ(kill(winner->pid, round % 2 ? SIGTERM : SIGKILL), 0);
        int status;
        CHECK_EQ(waitpid(winner->pid, &status, 0), winner->pid);
        child_end(winner, status, &runs[0]);
        CHECK_EQ(runs[0].code, round % 2 ? 0 : -SIGKILL);
        CHECK_STR(runs[0].errors, "");
    }
}

TEST(of_twenty_that_start_at_once_on_a_socket_one_serves)
{
    start_together(/* have_own_sockets= */ false);
}

TEST(of_twenty_that_start_at_once_on_a_store_one_serves)
{
    start_together(/* have_own_sockets= */ true);
}

TEST(what_keeps_it_from_starting_is_in_the_log_s_file_too)
{
    static Run run;
    char data[PLACE_BYTES_MAX], path[PLACE_BYTES_MAX], log[PLACE_BYTES_MAX];
    char socket[PLACE_BYTES_MAX], cause[2 * PLACE_BYTES_MAX];
    snprintf(data, sizeof(data), "%s/data", test_dir());
    snprintf(path, sizeof(path), "%s/data/data.mdb", test_dir());
    snprintf(log, sizeof(log), "%s/log", test_dir());
    snprintf(socket, sizeof(socket), "%s/s", test_dir());
    CHECK_EQ(mkdir(data, 0700), 0);
    CHECK_EQ(mkdir(path, 0700), 0);
    tined_run(&run, (const char *[]){"--data", data, "--socket", socket, "--log-file", log, NULL},
              NULL);
    CHECK_EQ(run.code, TINED_EXIT_FAILED);
    snprintf(cause, sizeof(cause), "msg=\"cannot start\" error=IO detail=\"cannot open %s: ", path);
    if (!strstr(file_text(log), cause)) printf("wanted: %s\n%s", cause, file_text(log));
    CHECK(strstr(file_text(log), cause) != NULL);
}
