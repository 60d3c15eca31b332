// Direct reads where they could go wrong: in a sandbox, a fork in the middle, clients that share a
// map, a server that is another user's.

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "channel_direct.h"
#include "client.h"
#include "direct_steps.h"
#include "direct_store.h"
#include "kv/kv.h"

typedef struct Forking {
    pid_t child;
    unsigned lent;
} Forking;

static bool fork_and_go_on(void *context, const TineLent *lent)
{
    (void)lent;
    Forking *forking = context;
    if (forking->lent++ == 0) forking->child = fork();
    return true;
}

TEST(a_read_does_not_go_on_in_a_child_that_was_forked_in_it)
{
    enum { COUNT = 20 };
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    CLEANUP(closep) Tine *tine = open_direct(&tined);
    Id session = session_new(tine);
    for (int i = 0; i < COUNT; i++)
        append_text(tine, session.text, "m");
    Tine__V1__MessagesForSessionRequest request = TINE__V1__MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = session.text;
    Forking forking = {.lent = 0};
    TineStatus status;
    TineCallOptions options = {.out_status = &status};
    int code = tine_read_messages(tine, &options, &request, fork_and_go_on, &forking, NULL);
    if (forking.child == 0) {
        bool is_good = code == STATUS_ABORTED && strstr(status.message, "forked") &&
                       forking.lent == 1 && stats_of(tine).fallbacks[TINE_FALLBACK_FORKED] == 1 &&
                       message_count(tine, session.text) == COUNT; // which is a call
        tine_close(tine);
        _exit(is_good ? 0 : 1);
    }
    CHECK_EQ(code, 0);
    CHECK_EQ(forking.lent, COUNT);
    CHECK_EQ(exit_code_of(forking.child), 0);
    check_only(tine, TINE_FALLBACK_COUNT, 0);
}

// As a sandbox has it: the server's directory, read-only.
static int read_frozen(const Tined *tined, const char *session)
{
    enum { FAILED = 1, CANNOT_MOUNT = 2 };
    if (geteuid() != 0 || unshare(CLONE_NEWNS) ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount(tined->data, tined->data, NULL, MS_BIND, NULL) ||
        mount(NULL, tined->data, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL)) {
        return CANNOT_MOUNT;
    }
    Tine *tine = open_direct(tined);
    bool is_good = message_count(tine, session) == 1;
    TineClientStats stats = stats_of(tine);
    tine_close(tine);
    is_good = is_good && stats.direct_reads == 0 &&
              stats.fallbacks[TINE_FALLBACK_STORE_ERROR] == 1 &&
              strstr(stats.last_why, "read-only file system");
    return is_good ? 0 : FAILED;
}

TEST(a_store_whose_locks_cannot_be_taken_is_not_read)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    CLEANUP(closep) Tine *tine = open_ok(tined.url);
    Id session = session_new(tine);
    append_text(tine, session.text, "m");
    pid_t child = fork();
    if (child == 0) _exit(read_frozen(&tined, session.text));
    int code = exit_code_of(child);
    if (code == 2) SKIP("needs root to mount");
    CHECK_EQ(code, 0);
}

TEST(a_client_that_does_not_read_holds_no_map_back)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    CLEANUP(closep) Tine *tine = open_direct(&tined);
    CLEANUP(closep) Tine *idle = open_direct(&tined);
    channel_direct_for_test(tine->channel, (Clock){.now_ms = NULL}, 1 << 20);
    Id session = session_new(tine);
    CHECK_EQ(message_count(tine, session.text), 0);
    CHECK_EQ(message_count(idle, session.text), 0);
    char *large = calloc(1, LARGE_BYTES + 1);
    memset(large, 'x', LARGE_BYTES);
    for (unsigned i = 1; i <= 30; i++) {
        append_text(tine, session.text, large);
        CHECK_EQ(message_count(tine, session.text), i);
    }
    free(large);
    check_only(tine, TINE_FALLBACK_MAP_GROWN, 1);
    CHECK_EQ(stats_of(tine).direct_reads, 30);
    CHECK_EQ(message_count(idle, session.text), 30);
    check_only(idle, TINE_FALLBACK_COUNT, 0);
    CHECK_EQ(stats_of(idle).direct_reads, 2);
}

enum { GROWN_MESSAGES = 40 };

typedef struct Growing {
    Tined tined;
    Id session;
} Growing;

// The first one writes; all read until everything is there, in maps that are too small at first.
static void read_growing(const Worker *worker)
{
    const Growing *growing = worker->context;
    Tine *tine = open_direct(&growing->tined);
    channel_direct_for_test(tine->channel, (Clock){.now_ms = NULL}, 1 << 20);
    char *large = calloc(1, LARGE_BYTES + 1);
    memset(large, 'x', LARGE_BYTES);
    unsigned count = 0, seen = 0;
    while (seen < GROWN_MESSAGES) {
        if (worker->number == 0) {
            append_text(tine, growing->session.text, large);
            count++;
        }
        unsigned now = message_count(tine, growing->session.text);
        CHECK(now >= seen && (worker->number > 0 || now == count));
        seen = now;
    }
    free(large);
    TineClientStats stats = stats_of(tine);
    CHECK_EQ(stats.fallbacks[TINE_FALLBACK_OPEN_HERE], 0);
    CHECK_EQ(stats.fallbacks[TINE_FALLBACK_STORE_ERROR], 0);
    tine_close(tine);
}

TEST(threads_with_clients_of_their_own_follow_a_store_that_grows)
{
    static Growing growing;
    tined_start(&growing.tined);
    Tine *tine = open_ok(growing.tined.url);
    growing.session = session_new(tine);
    tine_close(tine);
    in_threads(6, read_growing, &growing);
    tined_end(&growing.tined);
}

TEST(a_store_with_new_locks_is_opened_anew_whoever_held_the_old_one)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    CLEANUP(closep) Tine *tine = open_direct(&tined);
    CLEANUP(closep) Tine *idle = open_direct(&tined);
    Id session = session_new(tine);
    CHECK_EQ(message_count(tine, session.text), 0);
    CHECK_EQ(message_count(idle, session.text), 0);
    tined_stop(&tined);
    char pair[600];
    snprintf(pair, sizeof(pair), "%s/lock.pair", tined.data);
    CHECK_EQ(unlink(pair), 0); // so that tined makes lock.mdb anew
    tined_start(&tined);
    append_text(tine, session.text, "m");
    for (int i = 0; i < 3; i++)
        CHECK_EQ(message_count(tine, session.text), 1);
    CHECK(stats_of(tine).is_direct);
    CHECK(stats_of(tine).direct_reads >= 3);
    append_text(idle, session.text, "m");
    for (int i = 0; i < 3; i++)
        CHECK_EQ(message_count(idle, session.text), 2);
    CHECK(stats_of(idle).is_direct);
}

static void relay_bytes(int from, int to)
{
    char bytes[4096];
    ssize_t size = read(from, bytes, sizeof(bytes));
    if (size <= 0 || write(to, bytes, (size_t)size) != size) _exit(0);
}

// As another user, hands one connection's bytes to tined and back: what tined says of its store is
// true, and somebody else says it.
static void relay_as_nobody(const Tined *tined, const char *path, int ready)
{
    struct sockaddr_un server = {.sun_family = AF_UNIX}, own = {.sun_family = AF_UNIX};
    memcpy(server.sun_path, tined->socket, strlen(tined->socket));
    memcpy(own.sun_path, path, strlen(path));
    int to = socket(AF_UNIX, SOCK_STREAM, 0), listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(to, (struct sockaddr *)&server, sizeof(server)) ||
        bind(listener, (struct sockaddr *)&own, sizeof(own)) || setuid(65534) ||
        listen(listener, 1) || write(ready, "", 1) != 1) {
        _exit(1);
    }
    int from = accept(listener, NULL, NULL);
    struct pollfd both[] = {{.fd = from, .events = POLLIN}, {.fd = to, .events = POLLIN}};
    while (poll(both, 2, -1) > 0) {
        if (both[0].revents) relay_bytes(from, to);
        if (both[1].revents) relay_bytes(to, from);
    }
    _exit(1);
}

TEST(what_another_user_s_server_says_of_a_store_is_not_believed)
{
    if (geteuid() != 0) SKIP("only root can become another user");
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    char url[sizeof(tined.url) + 8], byte;
    snprintf(url, sizeof(url), "%s.relay", tined.url);
    const char *path = url + strlen("ipc://");
    CHECK(strlen(path) <= 107);
    int ready[2];
    CHECK_EQ(pipe(ready), 0);
    pid_t relay = fork();
    CHECK(relay >= 0);
    if (relay == 0) relay_as_nobody(&tined, path, ready[1]);
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    Tine *tine = open_with(url, (TineOpenOptions){.flags = TINE_DIRECT_READS});
    Id session = session_new(tine);
    CHECK_EQ(message_count(tine, session.text), 0);
    check_only(tine, TINE_FALLBACK_OTHER_USER, 1);
    CHECK_EQ(stats_of(tine).direct_reads, 0);
    tine_close(tine);
    CHECK_EQ(exit_code_of(relay), 0);
}

// Takes all reader slots of a store, in a process of its own.
static pid_t slots_take(const char *directory)
{
    int ready[2];
    char byte;
    CHECK_EQ(pipe(ready), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child > 0) {
        CHECK_EQ(read(ready[0], &byte, 1), 1);
        return child;
    }
    static const KvTableOptions TABLES[] = {{1, "meta"}};
    KvOptions options = {
        .file = {.directory = directory, .read_only = true},
        .tables = TABLES,
        .table_count = 1,
    };
    Kv *kv;
    KvTxn *txn;
    CHECK_EQ(kv_open(&options, NULL, &kv), ERROR_NONE);
    size_t count = 0;
    while (kv_begin(kv, /* is_write= */ false, NULL, &txn) == ERROR_NONE)
        count++;
    CHECK(count >= READERS_MAX);
    CHECK_EQ(write(ready[1], "", 1), 1);
    for (;;)
        pause();
}

TEST(a_store_that_others_keep_busy_is_not_said_to_be_open_here)
{
    char url[600];
    snprintf(url, sizeof(url), "embedded:%s/data", test_dir());
    Tine *tine = open_ok(url);
    Tine__V1__DescribeRequest request = TINE__V1__DESCRIBE_REQUEST__INIT;
    Tine__V1__DescribeResponse *described;
    CHECK_EQ(tine_describe(tine, NULL, &request, &described), 0);
    DirectPlace place = {
        .said = described->direct_reads,
        .peer_user = geteuid(),
        .instance_id = described->instance_id,
        .format = described->format_version,
    };
    DirectStore *store;
    Doubt doubt;
    CHECK(!direct_store_open(&place, &store, &doubt));
    CHECK_EQ(doubt.fallback, TINE_FALLBACK_OPEN_HERE);
    tine_close(tine);
    pid_t reader = slots_take(described->direct_reads->directory);
    CHECK(!direct_store_open(&place, &store, &doubt));
    CHECK_EQ(doubt.fallback, TINE_FALLBACK_STORE_ERROR);
    CHECK(strstr(doubt.why, "READERS_FULL") != NULL);
    CHECK_EQ(kill(reader, SIGKILL), 0);
    CHECK_EQ(exit_code_of(reader), -1);
    CHECK(direct_store_open(&place, &store, &doubt));
    direct_store_close(store);
    tine__v1__describe_response__free_unpacked(described, NULL);
}

enum { PROMPT_BYTES = 20 * 1000, REWRITES = 100, ROUNDS_MAX = 100 };

// Writes the same place over and over: of the pages before nothing is needed.
static void rewrite(Tine *tine, const char *session)
{
    static char prompt[PROMPT_BYTES + 1];
    for (int i = 0; i < REWRITES; i++) {
        memset(prompt, 'a' + i % 26, PROMPT_BYTES);
        Tine__V1__SessionField mask[] = {TINE__V1__SESSION_FIELD__SESSION_FIELD_SYSTEM_PROMPT};
        Tine__V1__UpdateSessionRequest request = TINE__V1__UPDATE_SESSION_REQUEST__INIT;
        Tine__V1__UpdateSessionResponse *response;
        request.session_id = (char *)(uintptr_t)session;
        request.mask = mask;
        request.n_mask = 1;
        request.system_prompt = prompt;
        CHECK_EQ(tine_update_session(tine, NULL, &request, &response), 0);
        tine__v1__update_session_response__free_unpacked(response, NULL);
    }
}

static uint64_t used_bytes(Tine *tine)
{
    Tine__V1__StatsResponse *stats = server_stats(tine);
    uint64_t bytes = stats->used_bytes;
    tine__v1__stats_response__free_unpacked(stats, NULL);
    return bytes;
}

TEST(pages_that_a_stopped_reader_held_come_back_when_it_is_killed)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    CLEANUP(closep) Tine *tine = open_ok(tined.url);
    Id session = session_new(tine);
    append_text(tine, session.text, "m");
    rewrite(tine, session.text);
    uint64_t at_first = used_bytes(tine);
    pid_t reader = reader_in_a_read(&tined, session.text);
    CHECK_EQ(kill(reader, SIGSTOP), 0);
    rewrite(tine, session.text);
    uint64_t held = used_bytes(tine);
    CHECK(held - at_first >= (uint64_t)REWRITES * PROMPT_BYTES);

    CHECK_EQ(kill(reader, SIGKILL), 0);
    CHECK_EQ(exit_code_of(reader), -1);
    CLEANUP(closep) Tine *other = open_direct(&tined); // who opens a store clears dead readers
    CHECK_EQ(message_count(other, session.text), 1);
    // They come back with the next flush, which a volume of writes brings.
    uint64_t before, after = held;
    size_t rounds = 0;
    do {
        CHECK(rounds++ < ROUNDS_MAX);
        before = after;
        rewrite(tine, session.text);
        after = used_bytes(tine);
    } while (after - before >= (uint64_t)REWRITES * PROMPT_BYTES / 10);
    check_only(other, TINE_FALLBACK_COUNT, 0);
}
