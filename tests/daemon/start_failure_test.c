// What keeps tined from starting is told with its cause: no descriptor, no thread.

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "process.h"

enum { DESCRIPTORS_MIN = 3, DESCRIPTORS_MAX = 64, THREADS_MAX = 100 };

// The test is linked with --wrap=pthread_create.
int __real_pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *context);
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *context);

static atomic_size_t threads_left = SIZE_MAX;

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *context)
{
    if (atomic_load(&threads_left) == 0) return EAGAIN;
    atomic_fetch_sub(&threads_left, 1);
    return __real_pthread_create(out, attributes, run, context);
}

// A tined in a child of the test, not its program: so that no loader needs anything before it.
typedef struct Start {
    const Tined *tined;
    size_t descriptors_max, threads_max; // 0: as many as it likes
    const char *const *options;          // NULL-terminated
} Start;

static int start_in_child(const void *context)
{
    enum { ARGUMENTS_MAX = 16 };
    const Start *start = context;
    const Tined *tined = start->tined;
    const char *arguments[ARGUMENTS_MAX] = {"tined",       "--data",      tined->data, "--socket",
                                            tined->socket, "--log-level", "off"};
    int count = 7;
    for (const char *const *option = start->options; *option; option++)
        arguments[count++] = *option;
    setenv("NOTIFY_SOCKET", tined->notify_path, 1);
    static Config config;
    ErrorDetail detail = {{0}};
    Error error = config_read(count, (char **)(uintptr_t)arguments, &detail, &config);
    if (error) fprintf(stderr, "%s\n", detail.text);
    if (error) return TINED_EXIT_USAGE;
    CHECK_EQ(close_range(STDERR_FILENO + 1, ~0U, 0), 0);
    struct rlimit limit = {start->descriptors_max, start->descriptors_max};
    if (start->descriptors_max > 0) CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    if (start->threads_max > 0) atomic_store(&threads_left, start->threads_max - 1);
    return (int)daemon_run(&config);
}

// Starts it and stops it once it serves. Returns whether it did; else `run` says how it ended.
static bool start_serves(const Start *start, Run *run)
{
    Tined tined = *start->tined;
    Child child;
    int status;
    child_start(&child, start_in_child, start);
    tined.pid = child.pid;
    bool is_ready = strcmp(tined_said(&tined), "READY=1") == 0;
    if (is_ready) {
        Sp sp = sp_open(tined.socket);
        check_served(sp);
        sp_close(&sp);
        CHECK_EQ(kill(child.pid, SIGTERM), 0);
    }
    CHECK_EQ(waitpid(child.pid, &status, 0), child.pid);
    child_end(&child, status, run);
    tined_forget(&tined);
    if (is_ready) CHECK_EQ(run->code, TINED_EXIT_STOPPED);
    return is_ready;
}

static void check_told(const Run *run, const char *what, const char *cause)
{
    if (run->code != TINED_EXIT_FAILED || !strstr(run->errors, cause)) {
        printf("code %d, wanted: %s\n%s", run->code, cause, run->errors);
    }
    CHECK_EQ(run->code, TINED_EXIT_FAILED);
    CHECK(strstr(run->errors, what) != NULL);
    CHECK(strstr(run->errors, cause) != NULL);
    CHECK_EQ(text_line_count(run->errors), 1);
}

static void start_with_each_descriptor_limit(const char *const *options)
{
    static Run run;
    CLEANUP(tined_close) Tined tined;
    tined_place(&tined, "t");
    tined_listen(&tined);
    bool has_served = false;
    for (size_t limit = DESCRIPTORS_MIN; limit <= DESCRIPTORS_MAX; limit++) {
        Start start = {.tined = &tined, .descriptors_max = limit, .options = options};
        bool serves = start_serves(&start, &run);
        if (!serves) check_told(&run, "tined: ", strerror(EMFILE));
        CHECK(serves || !has_served); // more descriptors are never worse
        has_served = serves;
    }
    CHECK(has_served);
}

TEST(with_few_descriptors_it_serves_or_says_why_not)
{
    start_with_each_descriptor_limit((const char *[]){NULL});
}

TEST(with_few_descriptors_it_serves_tcp_or_says_why_not)
{
    char url[64], token[PLACE_BYTES_MAX];
    snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", 20000 + getpid() % 10000);
    snprintf(token, sizeof(token), "%s/token", test_dir());
    FILE *file = fopen(token, "w");
    CHECK(file != NULL && fputs("a token of enough bytes", file) >= 0);
    CHECK_EQ(fclose(file), 0);
    CHECK_EQ(chmod(token, 0600), 0);
    start_with_each_descriptor_limit(
        (const char *[]){"--listen", url, "--token-file", token, NULL});
}

TEST(a_thread_that_cannot_be_started_is_told)
{
    static Run run;
    CLEANUP(tined_close) Tined tined;
    tined_place(&tined, "t");
    tined_listen(&tined);
    const char *const options[] = {"--durability", "relaxed", NULL};
    size_t threads = 1;
    for (; threads < THREADS_MAX; threads++) {
        Start start = {.tined = &tined, .threads_max = threads, .options = options};
        if (start_serves(&start, &run)) break;
        check_told(&run, "cannot start a thread to ", strerror(EAGAIN));
    }
    CHECK(threads > 5 && threads < THREADS_MAX);
}
