// Calls that are tried again: which are, which are not, how often, and that nothing runs twice.

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "os/clock.h"
#include "steps.h"
#include "wire_server.h"

// Takes one request a connection and hangs up, until the connection that the context says.
typedef struct Hangups {
    unsigned until;
    unsigned seen; // requests
    char first_id[65];
    bool is_same_id; // all carried the first one's operation_id
} Hangups;

static void hang_up_at_first(WireConnection *connection)
{
    Hangups *hangups = connection->context;
    wire_hello(connection);
    WireRequest request;
    while (wire_next_request(connection, &request)) {
        if (hangups->seen++ == 0) {
            hangups->is_same_id = true;
            snprintf(hangups->first_id, sizeof(hangups->first_id), "%s", request.operation_id);
        }
        hangups->is_same_id &= strcmp(hangups->first_id, request.operation_id) == 0;
        if (connection->index < hangups->until) return;
        if (strstr(request.method, "PublishEvent"))
            wire_reply_number(connection, request.id, 7);
        else
            wire_echo(connection, &request);
    }
}

TEST(a_write_whose_connection_broke_is_sent_again_with_its_operation_id)
{
    Hangups hangups = {.until = 2};
    WireServer *server = wire_server_start(hang_up_at_first, &hangups);
    CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
    uint64_t sequence;
    CHECK_EQ(publish(tine, NULL, "t", &sequence), STATUS_OK);
    CHECK_EQ(sequence, 7);
    CHECK_EQ(wire_server_connections(server), 3);
    wire_server_stop(&server);
    CHECK_EQ(hangups.seen, 3);
    CHECK_EQ(strlen(hangups.first_id), 32);
    CHECK(hangups.is_same_id);
}

TEST(a_read_whose_connection_broke_is_sent_again)
{
    Hangups hangups = {.until = 1};
    CLEANUP(wire_server_stop) WireServer *server = wire_server_start(hang_up_at_first, &hangups);
    CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
    ask_ok(tine, "x");
    CHECK_EQ(wire_server_connections(server), 2);
}

TEST(a_write_without_an_operation_id_is_not_sent_again)
{
    Hangups hangups = {.until = 1};
    WireServer *server = wire_server_start(hang_up_at_first, &hangups);
    CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
    uint64_t sequence;
    CHECK_EQ(publish(tine, &(TineCallOptions){.operation_id = ""}, "t", &sequence),
             STATUS_UNAVAILABLE);
    wire_server_stop(&server);
    CHECK_EQ(hangups.seen, 1);
}

// The server remembers no operation_id of it: it would be heard twice.
TEST(a_broadcast_whose_connection_broke_is_not_sent_again)
{
    Hangups hangups = {.until = 1};
    WireServer *server = wire_server_start(hang_up_at_first, &hangups);
    CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
    Tine__V1__BroadcastEventRequest request = TINE__V1__BROADCAST_EVENT_REQUEST__INIT;
    request.type = (char *)(uintptr_t) "t";
    Tine__V1__BroadcastEventResponse *response = NULL;
    TineStatus status;
    TineCallOptions options = {.out_status = &status};
    CHECK_EQ(tine_broadcast_event(tine, &options, &request, &response), STATUS_UNAVAILABLE);
    CHECK(strstr(status.message, "not known"));
    wire_server_stop(&server);
    CHECK_EQ(hangups.seen, 1);
    CHECK_EQ(strlen(hangups.first_id), 32); // so that a watcher can tell
}

TEST(no_retry_fails_at_once)
{
    Hangups hangups = {.until = 1};
    WireServer *server = wire_server_start(hang_up_at_first, &hangups);
    CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
    TineStatus status;
    TineCallOptions options = {.no_retry = true, .out_status = &status};
    uint64_t sequence;
    CHECK_EQ(publish(tine, &options, "t", &sequence), STATUS_UNAVAILABLE);
    CHECK_STR(status.reason, "UNAVAILABLE");
    CHECK(strstr(status.message, "hung up; whether the call was done is not known"));
    wire_server_stop(&server);
    CHECK_EQ(hangups.seen, 1);
}

// Echoes one request, then hangs up on the first connection and tells the test.
static void echo_one(WireConnection *connection)
{
    wire_hello(connection);
    WireRequest request;
    while (wire_next_request(connection, &request)) {
        wire_echo(connection, &request);
        if (connection->index > 0) continue;
        shutdown(connection->fd, SHUT_RDWR);
        sem_post(connection->context);
    }
}

TEST(a_connection_that_went_stale_is_replaced_without_a_retry)
{
    sem_t has_hung_up;
    sem_init(&has_hung_up, 0, 0);
    CLEANUP(wire_server_stop) WireServer *server = wire_server_start(echo_one, &has_hung_up);
    CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
    ask_ok(tine, "x");
    CHECK_EQ(sem_wait(&has_hung_up), 0);
    char answer[ANSWER_BYTES_MAX];
    CHECK_EQ(ask(tine, &(TineCallOptions){.no_retry = true}, "y", answer), STATUS_OK);
    CHECK_STR(answer, "y");
    CHECK_EQ(wire_server_connections(server), 2);
}

static void refuse_twice(WireConnection *connection)
{
    wire_hello(connection);
    WireRequest request;
    for (int i = 0; wire_next_request(connection, &request); i++) {
        if (i < 2)
            wire_reply_status(connection, request.id, STATUS_UNAVAILABLE, "UNAVAILABLE");
        else
            wire_reply_number(connection, request.id, 9);
    }
}

TEST(a_server_that_refuses_for_now_is_asked_again)
{
    CLEANUP(wire_server_stop) WireServer *server = wire_server_start(refuse_twice, NULL);
    CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
    uint64_t sequence;
    // Refused is not done: no operation_id is needed.
    CHECK_EQ(publish(tine, &(TineCallOptions){.operation_id = ""}, "t", &sequence), STATUS_OK);
    CHECK_EQ(sequence, 9);
    CHECK_EQ(wire_server_connections(server), 1);
}

TEST(no_retry_takes_a_refusal_for_an_answer)
{
    CLEANUP(wire_server_stop) WireServer *server = wire_server_start(refuse_twice, NULL);
    CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
    TineStatus status;
    TineCallOptions options = {.no_retry = true, .out_status = &status};
    uint64_t sequence;
    CHECK_EQ(publish(tine, &options, "t", &sequence), STATUS_UNAVAILABLE);
    CHECK_STR(status.message, "said by the server");
}

static void accept_and_hang_up(WireConnection *connection)
{
    if (connection->index == 0) {
        wire_hello(connection);
        WireRequest request;
        if (wire_next_request(connection, &request)) wire_echo(connection, &request);
        (void)wire_next_request(connection, &request);
    }
}

static void ask_for_700_ms(const Worker *worker)
{
    char answer[ANSWER_BYTES_MAX];
    TineCallOptions options = {.timeout_ms = 700};
    int code = ask(worker->context, &options, "x", answer);
    CHECK(code == STATUS_UNAVAILABLE || code == STATUS_DEADLINE_EXCEEDED);
}

TEST(reconnecting_backs_off_for_all_callers_together)
{
    CLEANUP(wire_server_stop) WireServer *server = wire_server_start(accept_and_hang_up, NULL);
    CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
    ask_ok(tine, "x");
    int64_t begun_ns = clock_monotonic_ns();
    in_threads(16, ask_for_700_ms, tine);
    CHECK(clock_monotonic_ns() - begun_ns >= INT64_C(350) * 1000000);
    // The first, and then after 0, 50, 150, 350 and 750 ms.
    CHECK(wire_server_connections(server) >= 3);
    CHECK(wire_server_connections(server) <= 6);
}

static void hear_the_timeouts(WireConnection *connection)
{
    int64_t *timeout_ms = connection->context;
    wire_hello(connection);
    WireRequest request;
    if (!wire_next_request(connection, &request)) return;
    timeout_ms[connection->index] = request.timeout_ms;
    if (connection->index < 2) return;
    wire_echo(connection, &request);
    wire_expect_end(connection);
}

TEST(what_is_sent_again_carries_the_time_that_is_left)
{
    int64_t timeout_ms[3] = {0};
    WireServer *server = wire_server_start(hear_the_timeouts, timeout_ms);
    CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
    char answer[ANSWER_BYTES_MAX];
    CHECK_EQ(ask(tine, &(TineCallOptions){.timeout_ms = 5000}, "x", answer), STATUS_OK);
    wire_server_stop(&server);
    CHECK(timeout_ms[0] <= 5000 && timeout_ms[0] > 1000);
    CHECK(timeout_ms[2] <= timeout_ms[0] - 50); // the second repetition came after 50 ms
}

static void *start_later(void *context)
{
    WireServer **server = context;
    Hangups *hangups = calloc(1, sizeof(Hangups)); // kept to the end of the test's process
    CHECK(hangups != NULL);
    *server = wire_server_start(hang_up_at_first, hangups);
    return hangups;
}

TEST(wait_for_server_waits_for_the_first_connection_too)
{
    char url[256];
    snprintf(url, sizeof(url), "ipc://%s/0", test_dir()); // where the first server will listen
    CLEANUP(closep) Tine *tine = open_with(url, (TineOpenOptions){.wait_for_server = true});
    char answer[ANSWER_BYTES_MAX];
    TineCallOptions options = {.timeout_ms = 30, .no_retry = false};
    CHECK_EQ(ask(tine, &options, "x", answer), STATUS_UNAVAILABLE);
    WireServer *server = NULL;
    pthread_t starter;
    CHECK_EQ(pthread_create(&starter, NULL, start_later, &server), 0);
    ask_ok(tine, "x");
    void *hangups;
    CHECK_EQ(pthread_join(starter, &hangups), 0);
    tine_close(tine);
    tine = NULL;
    wire_server_stop(&server);
    free(hangups);
}

static void count_connections(WireConnection *connection)
{
    wire_hello(connection);
    WireRequest request;
    while (wire_next_request(connection, &request)) {
        char text[16];
        snprintf(text, sizeof(text), "%u", connection->index);
        wire_reply_text(connection, request.id, text);
    }
}

TEST(a_child_of_fork_has_a_connection_of_its_own)
{
    // No threads of this process: the server is a child too.
    int has_ended[2];
    CHECK_EQ(pipe(has_ended), 0);
    char url[256];
    snprintf(url, sizeof(url), "ipc://%s/0", test_dir());
    pid_t server = fork();
    if (server == 0) {
        close(has_ended[1]);
        WireServer *own = wire_server_start(count_connections, NULL);
        char byte;
        CHECK_EQ(read(has_ended[0], &byte, 1), 0);
        wire_server_stop(&own);
        exit(0);
    }
    Tine *tine = open_with(url, (TineOpenOptions){.wait_for_server = true});
    char answer[ANSWER_BYTES_MAX];
    CHECK_EQ(ask(tine, NULL, "x", answer), STATUS_OK);
    CHECK_STR(answer, "0");
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQ(ask(tine, NULL, "x", answer), STATUS_OK);
        CHECK_STR(answer, "1");
        CHECK_EQ(ask(tine, NULL, "x", answer), STATUS_OK);
        CHECK_STR(answer, "1");
        tine_close(tine);
        exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_EQ(ask(tine, NULL, "x", answer), STATUS_OK);
    CHECK_STR(answer, "0");
    if (fork() == 0) { // one that only closes it
        tine_close(tine);
        exit(0);
    }
    wait(&status);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_EQ(ask(tine, NULL, "x", answer), STATUS_OK);
    CHECK_STR(answer, "0");
    tine_close(tine);
    close(has_ended[1]);
    close(has_ended[0]);
    CHECK_EQ(waitpid(server, &status, 0), server);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// A server that loses every few connections before or after running what it was asked, and runs
// nothing twice that carries the same operation_id.
typedef struct Ledger {
    pthread_mutex_t mutex;
    size_t count;
    char ids[4096][33];
} Ledger;

static void ledger_note(Ledger *ledger, const char *id)
{
    pthread_mutex_lock(&ledger->mutex);
    bool is_new = true;
    for (size_t i = 0; i < ledger->count && is_new; i++)
        is_new = strcmp(ledger->ids[i], id) != 0;
    if (is_new) {
        CHECK(ledger->count < 4096);
        snprintf(ledger->ids[ledger->count++], sizeof(*ledger->ids), "%s", id);
    }
    pthread_mutex_unlock(&ledger->mutex);
}

static void lose_often(WireConnection *connection)
{
    Ledger *ledger = connection->context;
    wire_hello(connection);
    WireRequest request;
    for (unsigned i = 0; wire_next_request(connection, &request); i++) {
        unsigned dice = (connection->index * 7 + i * 3) % 31;
        if (dice == 0) return; // before running it
        CHECK_EQ(strlen(request.operation_id), 32);
        ledger_note(ledger, request.operation_id);
        if (dice == 1) return; // after running it
        wire_reply_number(connection, request.id, 1);
    }
}

enum { WRITERS = 8, WRITES = 40 };

static void write_often(const Worker *worker)
{
    for (int i = 0; i < WRITES; i++) {
        uint64_t sequence;
        CHECK_EQ(publish(worker->context, NULL, "t", &sequence), STATUS_OK);
    }
}

TEST(under_lost_connections_every_write_is_done_once)
{
    Ledger *ledger = calloc(1, sizeof(Ledger));
    CHECK(ledger != NULL);
    pthread_mutex_init(&ledger->mutex, NULL);
    WireServer *server = wire_server_start(lose_often, ledger);
    CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
    in_threads(WRITERS, write_often, tine);
    CHECK(wire_server_connections(server) > 3);
    wire_server_stop(&server);
    CHECK_EQ(ledger->count, WRITERS * WRITES);
    free(ledger);
}
