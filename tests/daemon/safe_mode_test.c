// Safe mode: a store that ends each daemon at its start is served all the same, without writes.

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "daemon/daemon.h"
#include "process.h"
#include "store/purge.h"
#include "store/session.h"
#include "store/survey.h"
#include "wire/wire.h"

// The test is linked with --wrap=purge_slice,--wrap=session_settings.
Error __real_purge_slice(Txn *txn, bool *out_more);
Error __wrap_purge_slice(Txn *txn, bool *out_more);
Error __real_session_settings(Txn *txn, Ulid id, Session **out);
Error __wrap_session_settings(Txn *txn, Ulid id, Session **out);

static int purge_signal; // 0: a purge works as it should
static const char *bad_session = "";

Error __wrap_purge_slice(Txn *txn, bool *out_more)
{
    if (purge_signal) raise(purge_signal);
    return __real_purge_slice(txn, out_more);
}

// Whoever reads this session meets a page that ends the process.
Error __wrap_session_settings(Txn *txn, Ulid id, Session **out)
{
    char text[ULID_TEXT_BYTES + 1];
    ulid_format(id, text);
    if (strcmp(text, bad_session) == 0) raise(SIGSEGV);
    return __real_session_settings(txn, id, out);
}

typedef struct Start {
    Config config;
    int purge_signal;
    const char *bad_session; // NULL: none
} Start;

static int run_in_child(const void *context)
{
    const Start *start = context;
    purge_signal = start->purge_signal;
    if (start->bad_session) bad_session = start->bad_session;
    return (int)daemon_run(&start->config);
}

static Start start_of(int signal_of_purge)
{
    Start start = {.config = {.log_level = LOG_INFO}, .purge_signal = signal_of_purge};
    snprintf(start.config.data, sizeof(start.config.data), "%s/data", test_dir());
    snprintf(start.config.socket, sizeof(start.config.socket), "%s/run/s", test_dir());
    return start;
}

static int end(Child *child, Run *run)
{
    int status;
    CHECK_EQ(waitpid(child->pid, &status, 0), child->pid);
    child_end(child, status, run);
    return status;
}

static void stop(Child *child, Run *run)
{
    CHECK_EQ(kill(child->pid, SIGTERM), 0);
    end(child, run);
    CHECK_EQ(run->code, TINED_EXIT_STOPPED);
}

// A store of two sessions with a message each.
static void make_store(IdText first, IdText second)
{
    Start start = start_of(0);
    Child child;
    Run run;
    child_start(&child, run_in_child, &start);
    Sp sp = sp_open_when_there(start.config.socket);
    new_session(sp, first);
    new_session(sp, second);
    call_expect(sp, request_append(first, "to be exported", NULL), STATUS_OK);
    call_expect(sp, request_append(second, "this too", NULL), STATUS_OK);
    sp_close(&sp);
    stop(&child, &run);
}

// Starts a daemon that its purge ends, so many times.
static void crash(int signal_of_purge, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        Start start = start_of(signal_of_purge);
        Child child;
        Run run;
        child_start(&child, run_in_child, &start);
        int status = end(&child, &run);
        CHECK(WIFSIGNALED(status));
        CHECK_EQ(WTERMSIG(status), signal_of_purge);
    }
}

static size_t session_count(Sp sp)
{
    ListSessionsRequest request = LIST_SESSIONS_REQUEST__INIT;
    Slice bytes = engine_request(METHOD_LIST_SESSIONS, &request, NULL, 0);
    Slice reply = sp_call(sp, bytes);
    CHECK_EQ(reply_code(reply), STATUS_OK);
    WireField body;
    CHECK(wire_find(reply, 15, &body));
    ListSessionsResponse *response =
        tine__v1__list_sessions_response__unpack(NULL, body.bytes.size, body.bytes.bytes);
    CHECK(response != NULL);
    size_t count = response->n_sessions;
    engine_free(response);
    request_free(&bytes);
    sp_free(&reply);
    return count;
}

// Serves the store once and looks whether it is in safe mode. Returns what it logged, in `run`.
static void check_serves(Start start, const char *session, bool is_safe, Run *run)
{
    Child child;
    child_start(&child, run_in_child, &start);
    Sp sp = sp_open_when_there(start.config.socket);
    check_served(sp);
    CHECK_EQ(session_message_count(sp, session), 1);
    CHECK_EQ(session_count(sp), 2);
    call_expect(sp, request_append(session, "more", NULL),
                is_safe ? STATUS_UNAVAILABLE : STATUS_OK);
    sp_close(&sp);
    stop(&child, run);
    CHECK_EQ(strstr(run->errors, "safe mode") != NULL, is_safe);
}

TEST(a_store_whose_purge_ends_two_daemons_is_served_in_safe_mode)
{
    static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGABRT};
    IdText first, second;
    Run run;
    make_store(first, second);
    for (size_t i = 0; i < sizeof(SIGNALS) / sizeof(*SIGNALS); i++) {
        crash(SIGNALS[i], 2);
        check_serves(start_of(SIGNALS[i]), first, /* is_safe= */ true, &run);
        CHECK(strstr(run.errors, strsignal(SIGNALS[i])) != NULL);
        CHECK(strstr(run.errors, "purge") != NULL);
        CHECK(strstr(run.errors, "sessions=2 left_out=0") != NULL);
        // It stays: nothing was mended.
        check_serves(start_of(SIGNALS[i]), first, /* is_safe= */ true, &run);
        Start start = start_of(0);
        start.config.is_not_safe = true;
        Child child;
        child_start(&child, run_in_child, &start);
        Sp sp = sp_open_when_there(start.config.socket);
        check_served(sp);
        sp_close(&sp);
        stop(&child, &run);
        CHECK(strstr(run.errors, "safe mode") == NULL);
    }
}

TEST(starts_that_were_killed_do_not_enter_safe_mode)
{
    static const int SIGNALS[] = {SIGKILL, SIGSEGV, SIGABRT}; // from outside
    IdText first, second;
    Run run;
    make_store(first, second);
    for (size_t i = 0; i < 2 * sizeof(SIGNALS) / sizeof(*SIGNALS); i++) {
        Start start = start_of(0);
        Child child;
        child_start(&child, run_in_child, &start);
        Sp sp = sp_open_when_there(start.config.socket);
        check_served(sp);
        CHECK_EQ(kill(child.pid, SIGNALS[i / 2]), 0);
        sp_close(&sp);
        CHECK(WIFSIGNALED(end(&child, &run)));
    }
    check_serves(start_of(0), first, /* is_safe= */ false, &run);
}

TEST(one_crash_or_two_with_a_good_end_between_do_not_enter_safe_mode)
{
    IdText first, second;
    Run run;
    make_store(first, second);
    crash(SIGSEGV, 1);
    check_serves(start_of(0), first, /* is_safe= */ false, &run);
    crash(SIGSEGV, 1);
    Start start = start_of(0);
    Child child;
    child_start(&child, run_in_child, &start);
    Sp sp = sp_open_when_there(start.config.socket);
    call_expect(sp, request_append(first, "more", NULL), STATUS_OK);
    sp_close(&sp);
    stop(&child, &run);
    char notes[PATH_BYTES_MAX + 32];
    snprintf(notes, sizeof(notes), "%s/tine.crashes", start.config.data);
    CHECK(!file_exists(notes));
}

TEST(safe_mode_leaves_out_sessions_that_cannot_be_read)
{
    IdText ids[2];
    Run run;
    make_store(ids[0], ids[1]);
    for (size_t bad = 0; bad < 2; bad++) {
        Start start = start_of(0);
        start.config.is_safe = true;
        start.bad_session = ids[bad];
        Child child;
        child_start(&child, run_in_child, &start);
        Sp sp = sp_open_when_there(start.config.socket);
        CHECK_EQ(session_message_count(sp, ids[1 - bad]), 1);
        CHECK_EQ(session_count(sp), 1);
        GetSessionRequest request = GET_SESSION_REQUEST__INIT;
        request.session_id = ids[bad];
        call_expect(sp, engine_request(METHOD_GET_SESSION, &request, NULL, 0), STATUS_DATA_LOSS);
        sp_close(&sp);
        stop(&child, &run);
        CHECK(strstr(run.errors, ids[bad]) != NULL);
        CHECK(strstr(run.errors, "sessions=2 left_out=1") != NULL);
        CHECK(strstr(run.errors, "Segmentation fault") != NULL);
    }
}

TEST(safe_mode_writes_nothing)
{
    IdText first, second;
    Run run;
    make_store(first, second);
    Start start = start_of(0);
    char path[PATH_BYTES_MAX + 32], command[3 * PATH_BYTES_MAX];
    snprintf(path, sizeof(path), "%s/data.mdb", start.config.data);
    snprintf(command, sizeof(command), "cp '%s' '%s/before'", path, test_dir());
    CHECK_EQ(system(command), 0);
    start.config.is_safe = true;
    check_serves(start, first, /* is_safe= */ true, &run);
    snprintf(command, sizeof(command), "cmp '%s' '%s/before'", path, test_dir());
    CHECK_EQ(system(command), 0);
    check_serves(start_of(0), first, /* is_safe= */ false, &run); // nobody said that it stays
}

TEST(safe_mode_of_a_store_that_cannot_be_opened_says_so)
{
    IdText first, second;
    Run run;
    make_store(first, second);
    Start start = start_of(0);
    char command[PATH_BYTES_MAX + 64];
    snprintf(command, sizeof(command), "truncate -s 8192 '%s/data.mdb'", start.config.data);
    CHECK_EQ(system(command), 0);
    start.config.is_safe = true;
    child_run(&run, run_in_child, &start);
    CHECK_EQ(run.code, TINED_EXIT_STORE);
    CHECK(strstr(run.errors, "damaged") != NULL);
    CHECK(strstr(run.errors, "restore-backup") != NULL);
}

TEST(notes_of_crashes_that_are_torn_or_foreign_are_passed_over)
{
    IdText first, second;
    Run run;
    make_store(first, second);
    char path[PATH_BYTES_MAX + 32];
    Start start = start_of(0);
    snprintf(path, sizeof(path), "%s/tine.crashes", start.config.data);
    FILE *notes = fopen(path, "w");
    CHECK(notes != NULL);
    for (int i = 0; i < 500; i++)
        fprintf(notes, "started 17000000%04d ended 1700000\nnonsense\n\n", i);
    fprintf(notes, "started 1700000000 ended 1700000001 signal 11 in %0500d\n", 0);
    fprintf(notes, "started 1800000000 ended 1800000001 signal 11 in \nstarted 18000");
    CHECK_EQ(fclose(notes), 0);
    check_serves(start, first, /* is_safe= */ false, &run);
}

TEST(a_daemon_that_is_refused_leaves_the_notes_of_the_other)
{
    IdText first, second;
    Run run, refused;
    make_store(first, second);
    crash(SIGSEGV, 2);
    Start start = start_of(0), other = start_of(0);
    Child child;
    child_start(&child, run_in_child, &start);
    Sp sp = sp_open_when_there(start.config.socket);
    snprintf(other.config.socket, sizeof(other.config.socket), "%s/run/other", test_dir());
    other.config.is_not_safe = true;
    child_run(&refused, run_in_child, &other);
    CHECK_EQ(refused.code, TINED_EXIT_IN_USE);
    other.config.is_not_safe = false;
    child_run(&refused, run_in_child, &other);
    CHECK_EQ(refused.code, TINED_EXIT_IN_USE);
    sp_close(&sp);
    stop(&child, &run);
    check_serves(start_of(0), first, /* is_safe= */ true, &run);
}
