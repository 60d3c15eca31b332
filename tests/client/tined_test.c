// libtine and a real tined: every way in, many threads, and servers that die.

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "steps.h"
#include "tined.h"

static void work_through(const char *url, const char *token)
{
    CLEANUP(closep) Tine *tine = open_with(url, (TineOpenOptions){.token = token});
    Id session = session_new(tine);
    append_text(tine, session.text, "m1");
    append_text(tine, session.text, "m2");
    CHECK_STR(history_of(tine, session.text), "m1 m2");
    TineStatus status;
    char answer[ANSWER_BYTES_MAX];
    CHECK_EQ(ask(tine, &(TineCallOptions){.out_status = &status}, "no id", answer),
             STATUS_INVALID_ARGUMENT);
    CHECK(strstr(status.message, "session_id"));
}

TEST(every_way_in_works)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    work_through(tined.url, NULL);
    work_through(tined.nng_url, NULL);
    work_through(tined.tcp_url, TINED_TOKEN);
    tined_stop(&tined);
}

TEST(tcp_wants_the_token)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    TineStatus status;
    TineCallOptions options = {.out_status = &status};
    char answer[ANSWER_BYTES_MAX];
    CLEANUP(closep) Tine *without = open_ok(tined.tcp_url);
    CHECK_EQ(ask(without, &options, "x", answer), STATUS_UNAUTHENTICATED);
    CLEANUP(closep)
    Tine *wrong = open_with(tined.tcp_url, (TineOpenOptions){.token = "0123456789abcdef"});
    CHECK_EQ(ask(wrong, &options, "x", answer), STATUS_UNAUTHENTICATED);
    CHECK_STR(status.reason, "UNAUTHENTICATED");
}

TEST(an_embedded_store_and_a_daemon_never_share_a_directory)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    char url[600], pid[32];
    snprintf(url, sizeof(url), "embedded:%s", tined.data);
    snprintf(pid, sizeof(pid), "pid %ld", (long)tined.pid);
    Tine *tine = NULL;
    TineStatus status;
    CHECK_EQ(tine_open(url, &status, &tine), STATUS_UNAVAILABLE);
    CHECK(strstr(status.message, pid));
    tined_stop(&tined);
    tine = open_ok(url);
    tine_close(tine);
}

TEST(no_daemon_is_unavailable_on_every_way_in)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    tined_stop(&tined);
    const char *urls[] = {tined.url, tined.nng_url, tined.tcp_url};
    for (size_t i = 0; i < 3; i++) {
        CLEANUP(closep) Tine *tine = open_ok(urls[i]);
        CHECK_EQ(ask_plain(tine, "x"), STATUS_UNAVAILABLE);
        char answer[ANSWER_BYTES_MAX];
        TineCallOptions options = {.timeout_ms = 50, .no_retry = true};
        int code = ask(tine, &options, "x", answer);
        CHECK(code == STATUS_UNAVAILABLE || code == STATUS_DEADLINE_EXCEEDED);
    }
}

TEST(a_child_of_fork_may_only_close_a_client_of_libnng)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    CLEANUP(closep) Tine *tine = open_ok(tined.nng_url);
    Id session = session_new(tine);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        TineStatus status;
        char answer[ANSWER_BYTES_MAX];
        int code = ask(tine, &(TineCallOptions){.out_status = &status}, session.text, answer);
        tine_close(tine);
        _exit(code == STATUS_UNAVAILABLE && strstr(status.message, "fork") ? 0 : 1);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    append_text(tine, session.text, "m1");
    CHECK_STR(history_of(tine, session.text), "m1");
}

enum { WRITERS = 16, KILLS = 3 };

typedef struct Load {
    Tine *tine;
    const char *session;
    size_t count; // of each writer
    atomic_size_t done;
    size_t milestone; // the main thread waits for `done` to come to it
    pthread_mutex_t mutex;
    pthread_cond_t reached;
} Load;

static void append_often(const Worker *worker)
{
    Load *load = worker->context;
    for (size_t i = 0; i < load->count; i++) {
        append_text(load->tine, load->session, "m");
        if (atomic_fetch_add(&load->done, 1) + 1 < load->milestone) continue;
        pthread_mutex_lock(&load->mutex);
        pthread_cond_signal(&load->reached);
        pthread_mutex_unlock(&load->mutex);
    }
}

static void *append_in_threads(void *load)
{
    in_threads(WRITERS, append_often, load);
    return NULL;
}

static void wait_for(Load *load, size_t done)
{
    pthread_mutex_lock(&load->mutex);
    while (atomic_load(&load->done) < done)
        pthread_cond_wait(&load->reached, &load->mutex);
    pthread_mutex_unlock(&load->mutex);
}

// Writers never hear of the server's deaths, and each of their writes is there once.
static void write_over_deaths(const char *url_of(Tined *tined), void end(Tined *tined))
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    CLEANUP(closep) Tine *tine = open_ok(url_of(&tined));
    Id session = session_new(tine);
    Load load = {.tine = tine, .session = session.text, .count = test_scaled(200)};
    pthread_mutex_init(&load.mutex, NULL);
    pthread_cond_init(&load.reached, NULL);
    pthread_t writers;
    CHECK_EQ(pthread_create(&writers, NULL, append_in_threads, &load), 0);
    for (size_t i = 1; i <= KILLS; i++) {
        wait_for(&load, WRITERS * load.count * i / (KILLS + 1));
        end(&tined);
        tined_start(&tined);
    }
    CHECK_EQ(pthread_join(writers, NULL), 0);
    CHECK_EQ(message_count(tine, session.text), WRITERS * load.count);
}

static const char *sp_url(Tined *tined)
{
    return tined->url;
}

static const char *nng_url(Tined *tined)
{
    return tined->nng_url;
}

TEST(kill_9_loses_no_acknowledged_write_and_repeats_none)
{
    write_over_deaths(sp_url, tined_kill);
}

TEST(kill_9_loses_nothing_through_libnng_either)
{
    write_over_deaths(nng_url, tined_kill);
}

TEST(a_restart_is_not_seen_by_writers)
{
    write_over_deaths(sp_url, tined_stop);
}

static int run(const char *program, const char *url)
{
    char command[1024];
    snprintf(command, sizeof(command), "exec '%s' '%s' 2>&1", program, url);
    FILE *out = popen(command, "r");
    CHECK(out != NULL);
    char line[256];
    while (fgets(line, sizeof(line), out))
        fputs(line, stdout);
    int status = pclose(out);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

TEST(the_examples_run)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    CHECK_EQ(run(HELLO, "embedded::memory:"), 0);
    CHECK_EQ(run(HELLO, tined.url), 0);
    CHECK_EQ(run(TOUR, tined.url), 0);
    tined_stop(&tined);
    CHECK_EQ(run(HELLO, tined.url), STATUS_UNAVAILABLE);
}
