// The daemon's life: starting beside others, stopping, restarting.

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "process.h"
#include "wire/wire.h"

TEST(it_serves_says_so_to_systemd_and_stops_when_told)
{
    CLEANUP(tined_close) Tined tined;
    tined_place(&tined, "t");
    tined_start(&tined, NULL);
    Sp sp = sp_open(tined.socket);
    check_served(sp);
    sp_close(&sp);
    struct stat found;
    CHECK_EQ(stat(tined.socket, &found), 0);
    CHECK_EQ(found.st_mode & 0777, 0600);
    CHECK_EQ(stat(tined.data, &found), 0);
    CHECK_EQ(found.st_mode & 0777, 0700);
    CHECK_EQ(tined_stop(&tined, SIGTERM), TINED_EXIT_STOPPED);
    CHECK_STR(tined_said_before(&tined), "STOPPING=1");
    CHECK(!file_exists(tined.socket));
}

TEST(a_second_daemon_on_the_same_path_leaves_the_first_alone)
{
    CLEANUP(tined_close) Tined tined;
    tined_place(&tined, "t");
    tined_start(&tined, NULL);
    Sp sp = sp_open(tined.socket);
    char other[256], pid[64];
    snprintf(other, sizeof(other), "%s/other", test_dir());
    snprintf(pid, sizeof(pid), "the process with pid %d", tined.pid);
    for (size_t i = 0; i < test_scaled(20); i++) {
        Run run;
        tined_run(&run, (const char *[]){"--data", other, "--socket", tined.socket, NULL}, NULL);
        CHECK_EQ(run.code, TINED_EXIT_IN_USE);
        CHECK(strstr(run.errors, pid) != NULL);
        CHECK_EQ(text_line_count(run.errors), 1);
        check_served(sp);
    }
    CHECK(!file_exists(other));
    Sp late = sp_open(tined.socket);
    check_served(late);
    sp_close(&late);
    sp_close(&sp);
    CHECK_EQ(tined_stop(&tined, SIGINT), TINED_EXIT_STOPPED);
}

TEST(a_second_daemon_on_the_same_data_names_the_first)
{
    CLEANUP(tined_close) Tined tined;
    tined_place(&tined, "t");
    tined_start(&tined, NULL);
    char socket[256], lock[256], pid[64];
    snprintf(socket, sizeof(socket), "%s/u", test_dir());
    snprintf(lock, sizeof(lock), "%s/u.lock", test_dir());
    snprintf(pid, sizeof(pid), "the process with pid %d", tined.pid);
    char *before = directory_text(tined.data);
    Run run;
    tined_run(&run, (const char *[]){"--data", tined.data, "--socket", socket, NULL}, NULL);
    CHECK_EQ(run.code, TINED_EXIT_IN_USE);
    CHECK(strstr(run.errors, pid) != NULL);
    CHECK_EQ(text_line_count(run.errors), 1);
    CHECK(!file_exists(socket) && !file_exists(lock));
    char *after = directory_text(tined.data);
    CHECK_STR(after, before);
    free(after);
    free(before);
}

TEST(what_is_no_socket_is_not_replaced)
{
    char path[256], data[256];
    snprintf(path, sizeof(path), "%s/precious", test_dir());
    snprintf(data, sizeof(data), "%s/data", test_dir());
    int file = open(path, O_WRONLY | O_CREAT, 0600);
    CHECK(file >= 0);
    close(file);
    Run run;
    tined_run(&run, (const char *[]){"--data", data, "--socket", path, NULL}, NULL);
    CHECK_EQ(run.code, TINED_EXIT_FAILED);
    CHECK(strstr(run.errors, "is no socket") != NULL);
    CHECK(file_exists(path));
}

// Appends until the connection ends; returns how many were acknowledged.
static uint64_t append_until_gone(Sp sp, const char *session, pid_t victim, int signal)
{
    enum { IN_FLIGHT = 32, SIGNAL_AFTER = 200 };
    Slice append = request_append(session, "under load", NULL);
    uint64_t acknowledged = 0, answered = 0;
    for (uint32_t i = 0; i < IN_FLIGHT; i++)
        CHECK(sp_send(sp, i, append));
    uint32_t id;
    Slice reply;
    while (sp_receive(sp, &id, &reply)) {
        int code = reply_code(reply);
        CHECK(code == STATUS_OK || code == STATUS_UNAVAILABLE);
        if (code == STATUS_OK) acknowledged++;
        sp_free(&reply);
        if (++answered == SIGNAL_AFTER) kill(victim, signal);
        (void)sp_send(sp, id, append);
    }
    request_free(&append);
    return acknowledged;
}

TEST(sigterm_and_sigint_under_load_answer_or_refuse_and_lose_nothing)
{
    CLEANUP(tined_close) Tined tined;
    tined_place(&tined, "t");
    IdText session;
    uint64_t acknowledged = 0;
    for (size_t i = 0; i < test_scaled(10); i++) {
        tined_start(&tined, NULL);
        Sp sp = sp_open(tined.socket);
        if (i == 0) new_session(sp, session);
        CHECK_EQ(session_message_count(sp, session), acknowledged);
        acknowledged += append_until_gone(sp, session, tined.pid, i % 2 ? SIGINT : SIGTERM);
        sp_close(&sp);
        CHECK_EQ(tined_wait(&tined), TINED_EXIT_STOPPED);
        tined_forget(&tined);
    }
}

TEST(what_was_acknowledged_before_a_kill_is_there_after_it)
{
    CLEANUP(tined_close) Tined tined;
    tined_place(&tined, "t");
    IdText session;
    uint64_t acknowledged = 0;
    for (size_t i = 0; i < test_scaled(10); i++) {
        tined_start(&tined, NULL); // the socket of the one before is stale
        Sp sp = sp_open(tined.socket);
        if (i == 0) new_session(sp, session);
        uint64_t count = session_message_count(sp, session);
        CHECK(count >= acknowledged);
        acknowledged = count + append_until_gone(sp, session, tined.pid, SIGKILL);
        sp_close(&sp);
        CHECK_EQ(tined_wait(&tined), -SIGKILL);
    }
}

TEST(sighup_opens_the_log_anew)
{
    CLEANUP(tined_close) Tined tined;
    tined_place(&tined, "t");
    tined_start(&tined, (const char *[]){"--log-format", "json", NULL});
    CHECK(strstr(file_text(tined.log), "\"msg\":\"ready\"") != NULL);
    char old[PLACE_BYTES_MAX + 8];
    snprintf(old, sizeof(old), "%s.1", tined.log);
    CHECK_EQ(rename(tined.log, old), 0);
    CHECK_EQ(kill(tined.pid, SIGHUP), 0);
    while (!strstr(file_text(tined.log), "log opened"))
        sched_yield();
    CHECK_EQ(tined_stop(&tined, SIGTERM), 0);
    CHECK(strstr(file_text(tined.log), "stopped") != NULL);
    CHECK(strstr(file_text(old), "stopped") == NULL);
}

TEST(it_leaves_when_nobody_has_been_there_for_long_enough)
{
    CLEANUP(tined_close) Tined tined;
    tined_place(&tined, "t");
    tined_start(&tined, (const char *[]){"--idle-exit", "20ms", NULL});
    CHECK_EQ(tined_wait(&tined), TINED_EXIT_STOPPED);
    CHECK(strstr(file_text(tined.log), "idle for long enough") != NULL);
}

TEST(an_ephemeral_store_leaves_nothing)
{
    CLEANUP(tined_close) Tined tined;
    tined_place(&tined, "t");
    tined.is_ephemeral = true;
    tined_start(&tined, NULL);
    Sp sp = sp_open(tined.socket);
    IdText session;
    new_session(sp, session);
    CHECK_EQ(session_message_count(sp, session), 0);
    sp_close(&sp);
    CHECK(!file_exists(tined.data));
    DIR *directory = opendir("/dev/shm");
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        CHECK(strncmp(entry->d_name, "tine-ephemeral", 14) != 0);
    if (directory) closedir(directory);
    CHECK_EQ(tined_stop(&tined, SIGTERM), 0);
}

TEST(over_tcp_it_asks_for_the_token_in_the_file)
{
    static const char TOKEN[] = "0123456789abcdef";
    char path[256], url[64];
    snprintf(path, sizeof(path), "%s/token", test_dir());
    uint16_t port = (uint16_t)(30000 + getpid() % 2000);
    snprintf(url, sizeof(url), "tcp://127.0.0.1:%u", port);
    int file = open(path, O_WRONLY | O_CREAT, 0600);
    CHECK(file >= 0);
    CHECK_EQ(write(file, TOKEN, strlen(TOKEN)), (ssize_t)strlen(TOKEN));
    close(file);
    CLEANUP(tined_close) Tined tined;
    tined_place(&tined, "t");
    tined_start(&tined, (const char *[]){"--listen", url, "--token-file", path, NULL});
    Sp sp = sp_open_tcp(port);
    call_expect(sp, request_health(), STATUS_UNAUTHENTICATED);
    call_expect(sp, request_with_token(request_health(), TOKEN), STATUS_OK);
    sp_close(&sp);
    CHECK_EQ(tined_stop(&tined, SIGTERM), 0);
}

TEST(a_port_that_is_taken_is_one_clear_line)
{
    char path[256], url[64], data[256], socket[256];
    snprintf(path, sizeof(path), "%s/token", test_dir());
    snprintf(data, sizeof(data), "%s/other", test_dir());
    snprintf(socket, sizeof(socket), "%s/o", test_dir());
    snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", 32000 + getpid() % 700);
    int file = open(path, O_WRONLY | O_CREAT, 0600);
    CHECK(file >= 0);
    CHECK_EQ(write(file, "0123456789abcdef", 16), 16);
    close(file);
    CLEANUP(tined_close) Tined tined;
    tined_place(&tined, "t");
    tined_start(&tined, (const char *[]){"--listen", url, "--token-file", path, NULL});
    Run run;
    tined_run(&run,
              (const char *[]){"--data", data, "--socket", socket, "--listen", url, "--token-file",
                               path, "--log-level", "off", NULL},
              NULL);
    CHECK_EQ(run.code, TINED_EXIT_IN_USE);
    CHECK(strstr(run.errors, url) != NULL);
    CHECK_EQ(text_line_count(run.errors), 1);
    CHECK(!file_exists(socket));
    CHECK_EQ(tined_stop(&tined, SIGTERM), 0);
}

// Whether a connection is served, not closed.
static bool is_served(Sp sp)
{
    Slice request = request_health(), reply;
    uint32_t id;
    bool is_answered = sp_send(sp, 1, request) && sp_receive(sp, &id, &reply);
    if (is_answered) sp_free(&reply);
    request_free(&request);
    return is_answered;
}

TEST(with_few_descriptors_it_serves_as_many_as_it_can_and_turns_others_away)
{
    enum { DESCRIPTORS = 160, CLIENTS = 130 };
    struct rlimit limit = {.rlim_cur = DESCRIPTORS, .rlim_max = DESCRIPTORS};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0); // its own and ours
    CLEANUP(tined_close) Tined tined;
    tined_place(&tined, "t");
    tined_start(&tined, NULL);
    Sp clients[CLIENTS];
    size_t served = 0;
    for (size_t i = 0; i < CLIENTS; i++) {
        clients[i] = sp_open(tined.socket);
        if (!is_served(clients[i])) continue;
        CHECK_EQ(served, i); // no one behind the first that is turned away
        served++;
    }
    CHECK(served > DESCRIPTORS / 3 && served < CLIENTS); // the others are for the bus and itself
    check_served(clients[0]);
    for (size_t i = 0; i < CLIENTS; i++)
        sp_close(&clients[i]);
    bool is_late_served;
    do {
        Sp late = sp_open(tined.socket);
        is_late_served = is_served(late);
        sp_close(&late);
    } while (!is_late_served);
    CHECK_EQ(tined_stop(&tined, SIGTERM), 0);
}

TEST(another_users_process_is_turned_away)
{
    if (geteuid() != 0) SKIP("only root can be another user");
    CLEANUP(tined_close) Tined tined;
    tined_place(&tined, "t");
    tined_start(&tined, NULL);
    char path[128];
    snprintf(path, sizeof(path), "%.*s", (int)(strlen(tined.socket) - 2), tined.socket);
    CHECK_EQ(chmod(path, 0711), 0); // run/
    *strrchr(path, '/') = '\0';
    CHECK_EQ(chmod(path, 0711), 0); // t/
    CHECK_EQ(chmod(test_dir(), 0711), 0);
    snprintf(path, sizeof(path), "%s/..", test_dir());
    CHECK_EQ(chmod(path, 0711), 0);
    CHECK_EQ(chmod(tined.socket, 0666), 0);
    pid_t other = fork();
    CHECK(other >= 0);
    if (other == 0) {
        if (setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0) _exit(3);
        Sp sp = sp_open(tined.socket);
        sp_wait_closed(sp);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(other, &status, 0), other);
    CHECK_EQ(status, 0);
    CHECK(strstr(file_text(tined.log), "another user's") != NULL);
    Sp sp = sp_open(tined.socket);
    check_served(sp);
    sp_close(&sp);
}

TEST(a_damaged_store_has_its_own_exit_code)
{
    CLEANUP(tined_close) Tined tined;
    tined_place(&tined, "t");
    tined_start(&tined, NULL);
    CHECK_EQ(tined_stop(&tined, SIGTERM), 0);
    char path[PLACE_BYTES_MAX + 16];
    snprintf(path, sizeof(path), "%s/data.mdb", tined.data);
    int file = open(path, O_WRONLY);
    CHECK(file >= 0);
    for (off_t at = 0; at < 8192; at += 64)
        CHECK_EQ(pwrite(file, "this is no page of a store, but some text that went astray here.",
                        64, at),
                 64);
    close(file);
    Run run;
    tined_run(&run, (const char *[]){"--data", tined.data, "--socket", tined.socket, NULL}, NULL);
    printf("%s", run.errors);
    CHECK_EQ(run.code, TINED_EXIT_STORE);
    CHECK_EQ(text_line_count(run.errors), 1);
}
