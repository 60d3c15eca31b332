// What a server may do wrong, and what a caller is told: an error, never a hang, a crash or
// another caller's reply. Calls here do not retry, so that each failure is seen once.

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/error.h"
#include "channel.h"
#include "os/clock.h"
#include "steps.h"
#include "wire_server.h"

// Asks once, which must fail with this code and, if it is not NULL, this word in the message.
static void ask_fails(Tine *tine, int64_t timeout_ms, int code, const char *word)
{
    TineStatus status;
    TineCallOptions options = {.timeout_ms = timeout_ms, .no_retry = true, .out_status = &status};
    char answer[ANSWER_BYTES_MAX];
    CHECK_EQ(ask(tine, &options, "x", answer), code);
    CHECK_EQ(status.code, code);
    if (word && !strstr(status.message, word)) printf("message: %s\n", status.message);
    CHECK(!word || strstr(status.message, word));
}

static Tine *tine_of(void (*script)(WireConnection *connection), WireServer **out_server)
{
    *out_server = wire_server_start(script, NULL);
    return open_ok(wire_server_url(*out_server));
}

TEST(nobody_there_is_unavailable_at_once)
{
    CLEANUP(closep) Tine *tine = open_ok("ipc:///nowhere/tine.sock");
    TineStatus status;
    char answer[ANSWER_BYTES_MAX];
    CHECK_EQ(ask(tine, &(TineCallOptions){.out_status = &status}, "x", answer), STATUS_UNAVAILABLE);
    CHECK_STR(status.reason, "UNAVAILABLE");
    CHECK_STR(status.message, "no tined answers at /nowhere/tine.sock: No such file or directory");
}

TEST(a_path_has_107_bytes_at_most)
{
    char url[256] = "ipc://";
    memset(url + 6, 'p', 108);
    Tine *tine;
    TineStatus status;
    CHECK_EQ(tine_open(url, &status, &tine), STATUS_INVALID_ARGUMENT);
    CHECK(strstr(status.message, "107"));
    CHECK(strstr(status.message, "has 108 bytes"));
    CHECK(strstr(status.message, url + strlen("ipc://")));
    char nng_url[sizeof(url) + 4];
    snprintf(nng_url, sizeof(nng_url), "nng+%s", url);
    CHECK_EQ(tine_open(nng_url, &status, &tine), STATUS_INVALID_ARGUMENT);
    CHECK(strstr(status.message, "has 108 bytes"));
    url[6 + 107] = '\0';
    CHECK_EQ(tine_open(url, &status, &tine), STATUS_OK);
    CHECK_EQ(ask_plain(tine, "x"), STATUS_UNAVAILABLE);
    tine_close(tine);
    CHECK_EQ(tine_open("ipc://", &status, &tine), STATUS_INVALID_ARGUMENT);
    CHECK_EQ(tine_open("", &status, &tine), STATUS_INVALID_ARGUMENT);
    CHECK_EQ(tine_open("/run/tine.sock", NULL, &tine), STATUS_INVALID_ARGUMENT);
}

static void say_no_hello(WireConnection *connection)
{
    static const struct {
        const char *bytes;
        size_t size;
    } HELLOS[] = {
        {"\0SP\0\0\x30\0\0", 8}, // a REQ like us
        {"\0SP\0\0\x31\0\1", 8}, {"HTTP/1.1 400 Bad Request", 24}, {"\0SP\0\0\x31", 6}, {"", 0},
    };
    CHECK(connection->index < sizeof(HELLOS) / sizeof(*HELLOS));
    wire_send(connection, HELLOS[connection->index].bytes, HELLOS[connection->index].size);
}

TEST(another_hello_is_unavailable)
{
    for (unsigned i = 0; i < 5; i++) {
        CLEANUP(wire_server_stop) WireServer *server;
        CLEANUP(closep) Tine *tine = tine_of(say_no_hello, &server);
        // The server's script goes by the connection's number: each refused hello is a new one.
        for (unsigned before = 0; before <= i; before++) {
            TineCallOptions options = {.timeout_ms = HARNESS_PATIENCE_MS, .no_retry = true};
            char answer[ANSWER_BYTES_MAX];
            CHECK_EQ(ask(tine, &options, "x", answer), STATUS_UNAVAILABLE);
            if (before == i) break;
            tine_close(tine); // and its backoff with it
            tine = open_ok(wire_server_url(server));
        }
        CHECK_EQ(wire_server_connections(server), i + 1);
    }
}

static void say_nothing(WireConnection *connection)
{
    uint8_t hello[8];
    (void)wire_receive(connection, hello, sizeof(hello));
    wire_expect_end(connection);
}

TEST(a_hello_that_never_comes_is_waited_for_until_the_time_is_up)
{
    CLEANUP(wire_server_stop) WireServer *server;
    CLEANUP(closep) Tine *tine = tine_of(say_nothing, &server);
    ask_fails(tine, 20, STATUS_DEADLINE_EXCEEDED, "nothing was done");
}

// After a good hello and one request: these bytes, and no more.
typedef struct Garbage {
    const char *bytes;
    size_t size;
    const char *word;
} Garbage;

static void send_garbage(WireConnection *connection)
{
    const Garbage *garbage = connection->context;
    wire_hello(connection);
    WireRequest request;
    if (!wire_next_request(connection, &request)) return;
    wire_send(connection, garbage->bytes, garbage->size);
    if (garbage->size > 0) wire_expect_end(connection);
}

static const Garbage GARBAGE[] = {
    {"", 0, "hung up"},
    {"\2\0\0\0\0\0\0\0\4\x80\0\0\1", 13, "none of SP"},             // another frame type
    {"\1\0\0\0\0\0\0\0\3\x80\0\0\1", 13, "none of SP"},             // shorter than an id
    {"\1\0\0\0\0\0\0\0\0\x80\0\0\1", 13, "none of SP"},             // empty
    {"\1\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0", 13, "too long"}, // 2^64 - 1
    {"\1\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0", 13, "too long"},
    {"\1\0\0\0\1\0\0\0\0\0\0\0\0", 13, "too long"},   // 4 GiB
    {"\1\0\0\0\0\1\x10\0\5\0\0\0\0", 13, "too long"}, // 17 MiB, the id, and one byte
    {"HTTP/1.1 400 Bad Request\r\n", 26, "none of SP"},
};

TEST(garbage_breaks_the_connection)
{
    for (size_t i = 0; i < sizeof(GARBAGE) / sizeof(*GARBAGE); i++) {
        CLEANUP(wire_server_stop)
        WireServer *server = wire_server_start(send_garbage, (void *)(uintptr_t)&GARBAGE[i]);
        CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
        ask_fails(tine, 0, STATUS_UNAVAILABLE, GARBAGE[i].word);
    }
}

// How much of a reply comes before the server hangs up, and how long it would have been.
typedef struct Part {
    size_t sent, body;
} Part;

static void hang_up_in_mid_reply(WireConnection *connection)
{
    const Part *part = connection->context;
    wire_hello(connection);
    WireRequest request;
    if (!wire_next_request(connection, &request)) return;
    size_t length = part->body + 4;
    uint8_t *bytes = calloc(1, 13 + part->body);
    CHECK(bytes != NULL);
    bytes[0] = 1;
    for (int i = 0; i < 8; i++)
        bytes[1 + i] = (uint8_t)(length >> (56 - 8 * i));
    for (int i = 0; i < 4; i++)
        bytes[9 + i] = (uint8_t)(request.id >> (24 - 8 * i));
    CHECK(part->sent < 13 + part->body);
    wire_send(connection, bytes, part->sent);
    free(bytes);
}

TEST(half_a_reply_is_none)
{
    static const Part PARTS[] = {{1, 10},  {9, 10},       {12, 10},         {13, 10},
                                 {22, 10}, {13, 1 << 20}, {40000, 1 << 20}, {1 << 20, 1 << 20},
                                 {13, 1},  {40000, 40000}};
    for (size_t i = 0; i < sizeof(PARTS) / sizeof(*PARTS); i++) {
        CLEANUP(wire_server_stop)
        WireServer *server = wire_server_start(hang_up_in_mid_reply, (void *)(uintptr_t)&PARTS[i]);
        CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
        ask_fails(tine, 0, STATUS_UNAVAILABLE, "hung up");
    }
}

static void send_the_longest(WireConnection *connection)
{
    wire_hello(connection);
    WireRequest request;
    CHECK(wire_next_request(connection, &request));
    uint8_t *response = calloc(1, CHANNEL_RESPONSE_BYTES_MAX);
    CHECK(response != NULL);
    // An unknown field of that size: tag, length in four bytes, content.
    size_t content = CHANNEL_RESPONSE_BYTES_MAX - 5;
    response[0] = 7 << 3 | 2;
    for (int i = 0; i < 4; i++) {
        response[1 + i] = (uint8_t)((content >> (7 * i) & 0x7f) | (i < 3 ? 0x80 : 0));
    }
    wire_reply(connection, request.id, slice(response, CHANNEL_RESPONSE_BYTES_MAX));
    free(response);
    wire_expect_end(connection);
}

TEST(the_longest_reply_is_received)
{
    CLEANUP(wire_server_stop) WireServer *server;
    CLEANUP(closep) Tine *tine = tine_of(send_the_longest, &server);
    char answer[ANSWER_BYTES_MAX];
    CHECK_EQ(ask(tine, NULL, "x", answer), STATUS_OK);
}

// Promises the longest reply that is allowed, to each of many, and sends nothing of it.
static void promise_much(WireConnection *connection)
{
    wire_hello(connection);
    WireRequest request;
    CHECK(wire_next_request(connection, &request));
    uint8_t header[13] = {1, 0, 0, 0, 0, 1, 1, 0, 0};
    for (int i = 0; i < 4; i++)
        header[9 + i] = (uint8_t)(request.id >> (24 - 8 * i));
    wire_send(connection, header, sizeof(header));
    wire_expect_end(connection);
}

static void ask_for_much(const Worker *worker)
{
    CLEANUP(closep) Tine *tine = open_ok(worker->context);
    ask_fails(tine, 1, STATUS_DEADLINE_EXCEEDED, NULL);
}

TEST(a_promised_reply_costs_no_memory)
{
    enum { CLIENTS = 20, KIB_MAX = 100 * 1024 };
    CLEANUP(wire_server_stop) WireServer *server = wire_server_start(promise_much, NULL);
    in_threads(CLIENTS, ask_for_much, (void *)(uintptr_t)wire_server_url(server));
    struct rusage usage;
    CHECK_EQ(getrusage(RUSAGE_SELF, &usage), 0);
#if !defined(__SANITIZE_ADDRESS__) &&                                                              \
    !defined(__SANITIZE_THREAD__) // these have memory of their own
    CHECK(usage.ru_maxrss < KIB_MAX);
#endif
}

static void reply_to_others_first(WireConnection *connection)
{
    wire_hello(connection);
    WireRequest request, last = {.id = 0};
    while (wire_next_request(connection, &request)) {
        wire_reply_text(connection, request.id ^ 0x40, "another id of its slot");
        wire_reply_text(connection, request.id ^ 1, "another slot");
        wire_reply_text(connection, request.id & 0x7fffffff, "no id at all");
        wire_reply_text(connection, 0, "zero");
        if (last.id) wire_reply_text(connection, last.id, "answered before");
        wire_echo(connection, &request);
        wire_reply_text(connection, request.id, "once more");
        last = request;
    }
}

TEST(replies_to_nobody_are_ignored)
{
    CLEANUP(wire_server_stop) WireServer *server;
    CLEANUP(closep) Tine *tine = tine_of(reply_to_others_first, &server);
    for (int i = 0; i < 200; i++)
        ask_ok(tine, i % 2 ? "odd" : "even");
    CHECK_EQ(wire_server_connections(server), 1);
}

// Each first request of a pair is answered after the second one came, which is after its time.
static void answer_late(WireConnection *connection)
{
    wire_hello(connection);
    WireRequest first, second;
    while (wire_next_request(connection, &first) && wire_next_request(connection, &second)) {
        CHECK(first.timeout_ms > 0 && first.timeout_ms <= 5);
        wire_reply_text(connection, first.id, "late");
        wire_echo(connection, &second);
    }
}

TEST(silence_ends_with_the_time_and_the_connection_goes_on)
{
    CLEANUP(wire_server_stop) WireServer *server;
    CLEANUP(closep) Tine *tine = tine_of(answer_late, &server);
    for (int i = 0; i < 3; i++) {
        int64_t begun_ns = clock_monotonic_ns();
        ask_fails(tine, 5, STATUS_DEADLINE_EXCEEDED, "not known");
        CHECK(clock_monotonic_ns() - begun_ns >= INT64_C(5) * 1000000);
        ask_ok(tine, "in time");
    }
    CHECK_EQ(wire_server_connections(server), 1);
}

static void swallow(WireConnection *connection)
{
    wire_hello(connection);
    WireRequest request;
    while (wire_next_request(connection, &request)) {
        if (connection->index > 0) wire_echo(connection, &request);
    }
}

static void ask_in_vain(const Worker *worker)
{
    ask_fails(worker->context, 1, STATUS_DEADLINE_EXCEEDED, NULL);
}

TEST(a_connection_that_answers_none_of_64_is_given_up)
{
    CLEANUP(wire_server_stop) WireServer *server;
    CLEANUP(closep) Tine *tine = tine_of(swallow, &server);
    in_threads(64, ask_in_vain, tine);
    CHECK_EQ(wire_server_connections(server), 1);
    ask_ok(tine, "on another one");
    CHECK_EQ(wire_server_connections(server), 2);
}

static void never_read(WireConnection *connection)
{
    wire_hello(connection);
    if (connection->index > 0) {
        WireRequest request;
        while (wire_next_request(connection, &request))
            wire_echo(connection, &request);
        return;
    }
    // Takes nothing until the client has come again.
    while (wire_server_connections(connection->server) < 2)
        (void)wire_hears_within(connection, 1);
}

TEST(half_a_request_sent_in_time_breaks_the_connection)
{
    CLEANUP(wire_server_stop) WireServer *server;
    CLEANUP(closep) Tine *tine = tine_of(never_read, &server);
    enum { BYTES = 8 << 20 };
    char *text = calloc(1, BYTES + 1);
    CHECK(text != NULL);
    memset(text, 'x', BYTES);
    char answer[ANSWER_BYTES_MAX];
    TineCallOptions options = {.timeout_ms = 10, .no_retry = true};
    CHECK_EQ(ask(tine, &options, text, answer), STATUS_DEADLINE_EXCEEDED);
    free(text);
    ask_ok(tine, "on another one");
    CHECK_EQ(wire_server_connections(server), 2);
}

// Reads two requests of many, and hangs up on all.
static void hang_up_on_all(WireConnection *connection)
{
    wire_hello(connection);
    WireRequest request;
    for (int i = 0; i < 32; i++)
        CHECK(wire_next_request(connection, &request));
}

static void ask_until_hung_up(const Worker *worker)
{
    ask_fails(worker->context, worker->number % 2 ? HARNESS_PATIENCE_MS : 0, STATUS_UNAVAILABLE,
              "whether the call was done is not known");
}

TEST(a_broken_connection_fails_all_that_is_in_flight)
{
    CLEANUP(wire_server_stop) WireServer *server;
    CLEANUP(closep) Tine *tine = tine_of(hang_up_on_all, &server);
    in_threads(32, ask_until_hung_up, tine);
    CHECK_EQ(wire_server_connections(server), 1);
}

// The first connection's hello comes only when the second has answered a call.
static void say_hello_to_the_second(WireConnection *connection)
{
    atomic_bool *is_answered = connection->context;
    if (connection->index == 0) {
        while (!atomic_load(is_answered))
            sched_yield();
        return;
    }
    wire_hello(connection);
    for (WireRequest request; wire_next_request(connection, &request);) {
        wire_echo(connection, &request);
        atomic_store(is_answered, true);
    }
}

typedef struct Asked {
    WireServer *server;
    Tine *tine;
} Asked;

// The first has little time, and the silent connection is its own; the others come meanwhile.
static void ask_with_more_or_less_time(const Worker *worker)
{
    Asked *asked = worker->context;
    char answer[ANSWER_BYTES_MAX];
    if (worker->number == 0) {
        TineCallOptions hasty = {.timeout_ms = 1, .no_retry = true};
        CHECK_EQ(ask(asked->tine, &hasty, "x", answer), STATUS_DEADLINE_EXCEEDED);
        return;
    }
    while (wire_server_connections(asked->server) == 0)
        sched_yield();
    CHECK_EQ(ask(asked->tine, &(TineCallOptions){.no_retry = true}, "x", answer), STATUS_OK);
}

TEST(an_attempt_cut_short_by_its_callers_deadline_fails_nobody_else)
{
    atomic_bool is_answered = false;
    CLEANUP(wire_server_stop)
    WireServer *server = wire_server_start(say_hello_to_the_second, &is_answered);
    CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
    in_threads(4, ask_with_more_or_less_time, &(Asked){server, tine});
    CHECK_EQ(wire_server_connections(server), 2);
}
