// A daemon whose store somebody else changes: it acknowledges nothing more, says why, and ends.

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/tined_exit.h"
#include "process.h"

static void in_shell(const char *format, const char *data)
{
    char command[1024];
    int size = snprintf(command, sizeof(command), "cd '%s' && %s", data, format);
    CHECK(size > 0 && (size_t)size < sizeof(command));
    CHECK_EQ(system(command), 0);
}

static const char *const WAYS[][2] = {
    {"rm data.mdb", "was removed"},
    {"mv data.mdb kept.mdb", "was removed"},
    {"cp data.mdb new.mdb && mv new.mdb data.mdb", "was replaced by another file"},
    {"ln data.mdb other.mdb && cp data.mdb new.mdb && mv new.mdb data.mdb",
     "was replaced by another file"},
    {": >data.mdb", "was cut from"},
    {"truncate -s 8192 data.mdb", "was cut from"},
};

enum { WAYS_COUNT = sizeof(WAYS) / sizeof(*WAYS) };

// Starts a daemon with a session and some text in it.
static Sp start(Tined *tined, size_t i, const char *const *arguments, IdText session)
{
    char name[16];
    snprintf(name, sizeof(name), "t%zu", i);
    tined_place(tined, name);
    tined_start(tined, arguments);
    Sp sp = sp_open(tined->socket);
    new_session(sp, session);
    for (int j = 0; j < 20; j++)
        call_expect(sp, request_append(session, "some text that fills a page", NULL), STATUS_OK);
    return sp;
}

static void check_ended(Tined *tined, const char *word)
{
    CHECK_EQ(tined_wait(tined), TINED_EXIT_STORE);
    CHECK(strstr(file_text(tined->log), word) != NULL);
    CHECK(strstr(file_text(tined->log), "the store is closed") != NULL);
}

TEST(a_write_into_a_file_that_was_changed_is_not_acknowledged)
{
    for (size_t i = 0; i < WAYS_COUNT; i++) {
        CLEANUP(tined_close) Tined tined;
        IdText session;
        Sp sp = start(&tined, i, NULL, session);
        in_shell(WAYS[i][0], tined.data);
        call_expect(sp, request_append(session, "lost", NULL), STATUS_DATA_LOSS);
        sp_close(&sp);
        check_ended(&tined, WAYS[i][1]);
    }
}

// It looks every some seconds, and whenever a signal wakes it.
static void check_noticed(const char *const *arguments)
{
    for (size_t i = 0; i < WAYS_COUNT; i++) {
        CLEANUP(tined_close) Tined tined;
        IdText session;
        Sp sp = start(&tined, i, arguments, session);
        in_shell(WAYS[i][0], tined.data);
        CHECK_EQ(kill(tined.pid, SIGHUP), 0);
        check_ended(&tined, WAYS[i][1]);
        sp_close(&sp);
    }
}

TEST(a_daemon_without_writes_notices_a_file_that_was_changed)
{
    check_noticed(NULL);
}

TEST(a_relaxed_daemon_notices_a_file_that_was_changed)
{
    check_noticed((const char *[]){"--durability", "relaxed", NULL});
}

TEST(a_second_daemon_is_refused_though_the_lock_file_was_removed)
{
    CLEANUP(tined_close) Tined tined;
    IdText session;
    Sp sp = start(&tined, 0, NULL, session);
    in_shell("rm tine.lock", tined.data);
    char socket[300], pid[32];
    snprintf(socket, sizeof(socket), "%s/second/s", test_dir());
    Run run;
    tined_run(&run, (const char *[]){"--data", tined.data, "--socket", socket, NULL}, NULL);
    CHECK_EQ(run.code, TINED_EXIT_IN_USE);
    snprintf(pid, sizeof(pid), "pid %ld;", (long)tined.pid);
    CHECK(strstr(run.errors, pid) != NULL);
    call_expect(sp, request_append(session, "goes on", NULL), STATUS_OK);
    sp_close(&sp);
    CHECK_EQ(tined_stop(&tined, SIGTERM), TINED_EXIT_STOPPED);
}
