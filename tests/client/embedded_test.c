// The store in this process, by URL.

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "steps.h"
#include "watch_steps.h"

// How many files of stores in memory this process has open, all of which must be gone by name.
static size_t files_in_memory(void)
{
    DIR *opened = opendir("/proc/self/fd");
    size_t count = 0;
    CHECK(opened != NULL);
    for (struct dirent *entry; (entry = readdir(opened));) {
        char place[512] = "";
        if (readlinkat(dirfd(opened), entry->d_name, place, sizeof(place) - 1) < 0) continue;
        char *directory = strstr(place, "/tine-memory-");
        if (!directory) continue;
        count++;
        char *end = strpbrk(directory + 1, "/ "); // of a file in it, or "… (deleted)"
        CHECK(end != NULL);
        *end = '\0';
        CHECK(access(place, F_OK) != 0);
    }
    closedir(opened);
    return count;
}

TEST(memory_is_a_store_that_leaves_nothing)
{
    CHECK_EQ(files_in_memory(), 0);
    Tine *tine = open_ok("embedded::memory:");
    CHECK(files_in_memory() > 0);
    Id session = session_new(tine);
    append_text(tine, session.text, "m1");
    append_text(tine, session.text, "m2");
    CHECK_STR(history_of(tine, session.text), "m1 m2");
    Tine *other = open_ok("embedded::memory:");
    TineStatus status;
    char answer[ANSWER_BYTES_MAX];
    CHECK_EQ(ask(other, &(TineCallOptions){.out_status = &status}, session.text, answer),
             STATUS_NOT_FOUND);
    CHECK_STR(status.reason, "SESSION_NOT_FOUND");
    tine_close(other);
    tine_close(tine);
    CHECK_EQ(files_in_memory(), 0);
}

static volatile sig_atomic_t is_signal_taken;

static void on_signal(int number)
{
    (void)number;
    is_signal_taken = 1;
}

// A program that waits for its signals gets them, and its handlers run on its own threads.
TEST(an_embedded_store_takes_no_signals)
{
    Tine *tine = open_ok("embedded::memory:");
    Id session = session_new(tine);
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGUSR1);
    CHECK(signal(SIGUSR1, on_signal) != SIG_ERR);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &wanted, NULL), 0);
    CHECK_EQ(kill(getpid(), SIGUSR1), 0);
    append_text(tine, session.text, "m1");
    CHECK(!is_signal_taken);
    CHECK_EQ(sigtimedwait(&wanted, NULL, &(struct timespec){.tv_sec = 0}), SIGUSR1);
    tine_close(tine);
}

TEST(embedded_keeps_what_was_written)
{
    char url[512];
    snprintf(url, sizeof(url), "embedded:%s/store", test_dir());
    Tine *tine = open_ok(url);
    Id session = session_new(tine);
    append_text(tine, session.text, "m1");
    tine_close(tine);
    tine = open_ok(url);
    CHECK_STR(history_of(tine, session.text), "m1");
    tine_close(tine);
}

TEST(a_directory_is_opened_once)
{
    char url[512], pid[32];
    snprintf(url, sizeof(url), "embedded:%s", test_dir());
    snprintf(pid, sizeof(pid), "pid %ld", (long)getpid());
    CLEANUP(closep) Tine *tine = open_ok(url);
    Tine *second = NULL;
    TineStatus status;
    CHECK_EQ(tine_open(url, &status, &second), STATUS_UNAVAILABLE);
    CHECK(second == NULL);
    CHECK_STR(status.reason, "UNAVAILABLE");
    CHECK(strstr(status.message, pid));
    CHECK(strstr(status.message, test_dir()));
}

TEST(an_open_that_fails_says_why)
{
    Tine *tine = NULL;
    TineStatus status;
    CHECK_EQ(tine_open("embedded:", &status, &tine), STATUS_INVALID_ARGUMENT);
    CHECK(*status.message);
    CHECK_EQ(tine_open("embedded:/proc/nowhere", &status, &tine), STATUS_DATA_LOSS);
    CHECK(strstr(status.message, "/proc/nowhere"));
    CHECK_EQ(tine_open("http://x", &status, &tine) != 0, true);
    CHECK(tine == NULL);
    CHECK_EQ(tine_open("embedded:", NULL, &tine), STATUS_INVALID_ARGUMENT);
}

TEST(a_child_of_fork_may_only_close_an_embedded_store)
{
    CLEANUP(closep) Tine *tine = open_ok("embedded::memory:");
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

TEST(an_embedded_watch_that_fell_behind_catches_up)
{
    CLEANUP(closep) Tine *tine = open_ok("embedded::memory:");
    CLEANUP(watch_closep) TineWatch *watch = watch_ok(tine, (TineWatchOptions){.start = 0});
    char *data = calloc(1, EVENT_DATA_JSON_BYTES_MAX + 1);
    CHECK(data != NULL);
    memset(data, ' ', EVENT_DATA_JSON_BYTES_MAX);
    data[0] = '1';
    publish_in(tine, NULL, "first");
    broadcast_in(tine, NULL, "heard", data);
    for (size_t i = 0; i < EVENT_QUEUE_BYTES_MAX / EVENT_DATA_JSON_BYTES_MAX; i++)
        broadcast_in(tine, NULL, "flood", data);
    publish_in(tine, NULL, "lost");
    free(data);
    next_is(watch, 1, "first");
    next_is(watch, 0, "heard");
    char type[64];
    uint64_t sequence;
    while ((sequence = next_ok(watch, type)) == 0)
        CHECK_STR(type, "flood");
    CHECK_STR(type, "lost");
    CHECK_EQ(sequence, 2);
    publish_in(tine, NULL, "after");
    next_is(watch, 3, "after");
}

TEST(a_child_of_fork_may_only_close_an_embedded_watch)
{
    CLEANUP(closep) Tine *tine = open_ok("embedded::memory:");
    CLEANUP(watch_closep) TineWatch *watch = watch_ok(tine, (TineWatchOptions){.start = 0});
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        Tine__V1__Event *event = NULL;
        int code = tine_watch_next(watch, 10, NULL, &event);
        tine_watch_close(watch);
        tine_close(tine);
        _exit(code == STATUS_UNAVAILABLE && !event ? 0 : 1);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    publish_in(tine, NULL, "one");
    next_is(watch, 1, "one");
}

static const char *url_of(const char *options)
{
    static char url[600];
    snprintf(url, sizeof(url), "embedded:%s/store%s", test_dir(), options);
    return url;
}

static uint64_t unflushed(Tine *tine, bool *out_is_relaxed)
{
    Tine__V1__StatsRequest request = TINE__V1__STATS_REQUEST__INIT;
    Tine__V1__StatsResponse *response;
    CHECK_EQ(tine_stats(tine, NULL, &request, &response), STATUS_OK);
    uint64_t commits = response->unflushed_commits;
    *out_is_relaxed = response->is_relaxed;
    protobuf_c_message_free_unpacked(&response->base, NULL);
    return commits;
}

TEST(an_embedded_store_is_relaxed_when_its_url_says_so)
{
    bool is_relaxed;
    Tine *tine = open_ok(url_of("?durability=relaxed&flush_ms=60000"));
    (void)session_new(tine);
    CHECK(unflushed(tine, &is_relaxed) > 0);
    CHECK(is_relaxed);
    TineCallOptions options = {.sync = true};
    CHECK_EQ(publish(tine, &options, "type", &(uint64_t){0}), STATUS_OK);
    CHECK_EQ(unflushed(tine, &is_relaxed), 0);
    tine_close(tine);
    tine = open_ok(url_of("?durability=sync"));
    CHECK_EQ(unflushed(tine, &is_relaxed), 0);
    CHECK(!is_relaxed);
    tine_close(tine);
}

TEST(options_that_an_embedded_store_does_not_have_are_refused)
{
    static const char *const OPTIONS[] = {
        "?durability=never", "?flush_ms=0", "?flush_ms=60001", "?flush_ms=1x",
        "?flush_ms=",        "?",           "?fast",           "?durability=relaxed&",
    };
    for (size_t i = 0; i < sizeof(OPTIONS) / sizeof(*OPTIONS); i++) {
        TineStatus status;
        Tine *tine;
        CHECK_EQ(tine_open(url_of(OPTIONS[i]), &status, &tine), STATUS_INVALID_ARGUMENT);
        CHECK(strstr(status.message, "durability=relaxed") != NULL);
    }
}

TEST(close_takes_null)
{
    tine_close(NULL);
    tine_watch_close(NULL);
}
