// One call, and many at once, over the SP channel: what is sent, and who is answered.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "steps.h"
#include "wire_server.h"

static void echo_all(WireConnection *connection)
{
    wire_hello(connection);
    for (WireRequest request; wire_next_request(connection, &request);) {
        wire_echo(connection, &request);
    }
}

TEST(sp_answers_a_call)
{
    CLEANUP(wire_server_stop) WireServer *server = wire_server_start(echo_all, NULL);
    CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
    ask_ok(tine, "one");
    ask_ok(tine, "two");
    CHECK_EQ(wire_server_connections(server), 1);
}

static void look_at_the_bytes(WireConnection *connection)
{
    // method = 1, operation_id = 2, timeout_ms = 3, traceparent = 4, token = 5, body = 15
    static const char EXPECTED[] = "\x0a\x29/tine.v1.StoreService/LatestUserMessageId"
                                   "\x22\x02tp"
                                   "\x2a\x06secret"
                                   "\x7a\x05\x0a\x03"
                                   "abc";
    wire_hello(connection);
    WireRequest request;
    CHECK(wire_next_request(connection, &request));
    CHECK_BYTES(slice(request.bytes, request.size), slice(EXPECTED, sizeof(EXPECTED) - 1));
    wire_echo(connection, &request);
    wire_expect_end(connection);
}

TEST(sp_sends_the_envelope_with_the_body_last)
{
    CLEANUP(wire_server_stop) WireServer *server = wire_server_start(look_at_the_bytes, NULL);
    CLEANUP(closep)
    Tine *tine = open_with(wire_server_url(server), (TineOpenOptions){.token = "secret"});
    char answer[ANSWER_BYTES_MAX];
    CHECK_EQ(ask(tine, &(TineCallOptions){.traceparent = "tp"}, "abc", answer), 0);
    CHECK_STR(answer, "abc");
}

static void look_at_operation_ids(WireConnection *connection)
{
    wire_hello(connection);
    WireRequest read, made, made_too, given, none;
    CHECK(wire_next_request(connection, &read));
    wire_echo(connection, &read);
    CHECK_STR(read.operation_id, "");
    CHECK(wire_next_request(connection, &made));
    wire_reply_number(connection, made.id, 1);
    CHECK_EQ(strlen(made.operation_id), 32);
    CHECK(wire_next_request(connection, &made_too));
    wire_reply_number(connection, made_too.id, 2);
    CHECK_EQ(strlen(made_too.operation_id), 32);
    CHECK(strcmp(made.operation_id, made_too.operation_id) != 0);
    CHECK(wire_next_request(connection, &given));
    wire_reply_number(connection, given.id, 3);
    CHECK_STR(given.operation_id, "mine");
    CHECK(wire_next_request(connection, &none));
    wire_reply_number(connection, none.id, 4);
    CHECK_STR(none.operation_id, "");
}

TEST(sp_gives_each_write_an_operation_id_and_no_read)
{
    CLEANUP(wire_server_stop) WireServer *server = wire_server_start(look_at_operation_ids, NULL);
    CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
    uint64_t sequence;
    CHECK_EQ(ask_plain(tine, "x"), 0);
    CHECK_EQ(publish(tine, NULL, "t", &sequence), 0);
    CHECK_EQ(publish(tine, NULL, "t", &sequence), 0);
    CHECK_EQ(publish(tine, &(TineCallOptions){.operation_id = "mine"}, "t", &sequence), 0);
    CHECK_EQ(publish(tine, &(TineCallOptions){.operation_id = ""}, "t", &sequence), 0);
    CHECK_EQ(sequence, 4);
}

enum { AT_ONCE = 32 };

static void answer_backwards(WireConnection *connection)
{
    wire_hello(connection);
    WireRequest requests[AT_ONCE];
    for (size_t i = 0; i < AT_ONCE; i++)
        CHECK(wire_next_request(connection, &requests[i]));
    for (size_t i = AT_ONCE; i-- > 0;)
        wire_echo(connection, &requests[i]);
    wire_expect_end(connection);
}

static void ask_own_number(const Worker *worker)
{
    char text[16];
    snprintf(text, sizeof(text), "caller-%u", worker->number);
    ask_ok(worker->context, text);
}

TEST(sp_takes_replies_in_any_order)
{
    CLEANUP(wire_server_stop) WireServer *server = wire_server_start(answer_backwards, NULL);
    CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
    in_threads(AT_ONCE, ask_own_number, tine);
}

enum { IN_FLIGHT_MAX = 64, CALLERS = 100 };

static void count_in_flight(WireConnection *connection)
{
    wire_hello(connection);
    WireRequest requests[CALLERS];
    for (size_t i = 0; i < IN_FLIGHT_MAX; i++)
        CHECK(wire_next_request(connection, &requests[i]));
    CHECK(!wire_hears_within(connection, 50));
    for (size_t i = 0; i < CALLERS; i++) {
        wire_echo(connection, &requests[i]);
        if (i + IN_FLIGHT_MAX >= CALLERS) continue;
        CHECK(wire_next_request(connection, &requests[i + IN_FLIGHT_MAX]));
        CHECK(!wire_hears_within(connection, 1));
    }
    wire_expect_end(connection);
}

TEST(sp_has_64_calls_in_flight_and_lets_more_wait)
{
    CLEANUP(wire_server_stop) WireServer *server = wire_server_start(count_in_flight, NULL);
    CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
    in_threads(CALLERS, ask_own_number, tine);
}

TEST(sp_gives_up_waiting_for_a_place_when_the_time_is_up)
{
    CLEANUP(wire_server_stop) WireServer *server = wire_server_start(echo_all, NULL);
    CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
    TineStatus status;
    TineCallOptions options = {.timeout_ms = 1, .out_status = &status};
    char answer[ANSWER_BYTES_MAX];
    int code = ask(tine, &options, "x", answer); // enough for a call on this host, or not
    CHECK(code == 0 || code == STATUS_DEADLINE_EXCEEDED);
    ask_ok(tine, "y");
}

static void echo_byte_by_byte(WireConnection *connection)
{
    wire_hello(connection);
    WireRequest request;
    while (wire_next_request(connection, &request)) {
        uint8_t frame[] = {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x7a, 5, 0x0a, 3, 'a', 'b', 'c'};
        frame[8] = sizeof(frame) - 9;
        for (int i = 0; i < 4; i++)
            frame[9 + i] = (uint8_t)(request.id >> (24 - 8 * i));
        for (size_t i = 0; i < sizeof(frame); i++)
            wire_send(connection, &frame[i], 1);
    }
}

TEST(sp_puts_a_reply_together_from_single_bytes)
{
    CLEANUP(wire_server_stop) WireServer *server = wire_server_start(echo_byte_by_byte, NULL);
    CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
    for (int i = 0; i < 20; i++)
        ask_ok(tine, "abc");
    TineCallOptions options = {.timeout_ms = HARNESS_PATIENCE_MS};
    char answer[ANSWER_BYTES_MAX];
    for (int i = 0; i < 20; i++)
        CHECK_EQ(ask(tine, &options, "abc", answer), 0);
    CHECK_STR(answer, "abc");
}

enum { LARGE_BYTES = 12 * 1024 * 1024 };

static void echo_size(WireConnection *connection)
{
    wire_hello(connection);
    for (WireRequest request; wire_next_request(connection, &request);) {
        char size[32];
        snprintf(size, sizeof(size), "%zu", request.size);
        wire_reply_text(connection, request.id, size);
    }
}

TEST(sp_sends_large_requests_whole)
{
    CLEANUP(wire_server_stop) WireServer *server = wire_server_start(echo_size, NULL);
    CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
    char *text = calloc(1, LARGE_BYTES + 1);
    CHECK(text != NULL);
    memset(text, 'x', LARGE_BYTES);
    char answer[ANSWER_BYTES_MAX];
    CHECK_EQ(ask(tine, NULL, text, answer), 0);
    CHECK(atoi(answer) > LARGE_BYTES && atoi(answer) < LARGE_BYTES + 100);
    free(text);
}

TEST(a_request_over_16_mib_is_refused_before_it_is_sent)
{
    CLEANUP(closep) Tine *tine = open_ok("ipc:///nowhere");
    char *text = calloc(1, REQUEST_BYTES_MAX + 1);
    CHECK(text != NULL);
    memset(text, 'x', REQUEST_BYTES_MAX);
    TineStatus status;
    char answer[ANSWER_BYTES_MAX];
    CHECK_EQ(ask(tine, &(TineCallOptions){.out_status = &status}, text, answer),
             STATUS_INVALID_ARGUMENT);
    CHECK_STR(status.reason, "TOO_LONG");
    free(text);
}

// Both sides send more than a socket holds, before either reads: nobody may wait for the other.
static void reply_before_reading(WireConnection *connection)
{
    wire_hello(connection);
    WireRequest first, second;
    CHECK(wire_next_request(connection, &first));
    CHECK(
        wire_hears_within(connection, HARNESS_PATIENCE_MS)); // the second, large one begins to come
    char *text = calloc(1, LARGE_BYTES + 1);
    CHECK(text != NULL);
    memset(text, 'y', LARGE_BYTES);
    wire_reply_text(connection, first.id, text);
    free(text);
    CHECK(wire_next_request(connection, &second));
    wire_reply_text(connection, second.id, "second");
    wire_expect_end(connection);
}

static void ask_with_large(const Worker *worker)
{
    char *text = calloc(1, LARGE_BYTES + 1);
    CHECK(text != NULL);
    memset(text, 'x', LARGE_BYTES);
    char answer[ANSWER_BYTES_MAX];
    CHECK_EQ(ask(worker->context, NULL, text, answer), 0);
    CHECK_STR(answer, "second");
    free(text);
}

TEST(sp_receives_while_it_sends)
{
    CLEANUP(wire_server_stop) WireServer *server = wire_server_start(reply_before_reading, NULL);
    CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
    // The first caller is gone before its reply comes: only the sender is there to take it.
    char answer[ANSWER_BYTES_MAX];
    CHECK_EQ(ask(tine, &(TineCallOptions){.timeout_ms = 1}, "first", answer),
             STATUS_DEADLINE_EXCEEDED);
    in_threads(1, ask_with_large, tine);
}

static void ask_often(const Worker *worker)
{
    size_t count = test_scaled(2000);
    TineCallOptions options = {.timeout_ms = worker->number % 2 ? HARNESS_PATIENCE_MS : 0};
    for (size_t i = 0; i < count; i++) {
        char text[32], answer[ANSWER_BYTES_MAX];
        snprintf(text, sizeof(text), "%u-%zu", worker->number, i);
        CHECK_EQ(ask(worker->context, &options, text, answer), 0);
        CHECK_STR(answer, text);
    }
}

TEST(sp_serves_many_threads_on_one_connection)
{
    CLEANUP(wire_server_stop) WireServer *server = wire_server_start(echo_all, NULL);
    CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
    in_threads(16, ask_often, tine);
    CHECK_EQ(wire_server_connections(server), 1);
}

static void answer_statuses(WireConnection *connection)
{
    wire_hello(connection);
    WireRequest request;
    CHECK(wire_next_request(connection, &request));
    wire_reply_status(connection, request.id, STATUS_NOT_FOUND, "SESSION_NOT_FOUND");
    CHECK(wire_next_request(connection, &request));
    wire_reply(connection, request.id, slice("\x7a\x05nonsense", 6)); // longer than it is
    CHECK(wire_next_request(connection, &request));
    wire_reply(connection, request.id, slice("", 0));
    CHECK(wire_next_request(connection, &request));
    wire_reply(connection, request.id, slice("\x0a\x02\x08", 3)); // half a status
    CHECK(wire_next_request(connection, &request)); // a code, then a status that says nothing
    wire_reply(connection, request.id, slice("\x0a\x02\x08\x05\x0a\x00\x7a\x00", 8));
    CHECK(wire_next_request(connection, &request));
    wire_reply(connection, request.id, slice("\x7a\x00", 2)); // an empty body is a success
    wire_expect_end(connection);
}

TEST(a_failed_call_says_why)
{
    CLEANUP(wire_server_stop) WireServer *server = wire_server_start(answer_statuses, NULL);
    CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
    TineStatus status;
    TineCallOptions options = {.out_status = &status};
    char answer[ANSWER_BYTES_MAX];
    CHECK_EQ(ask(tine, &options, "x", answer), STATUS_NOT_FOUND);
    CHECK_EQ(status.code, STATUS_NOT_FOUND);
    CHECK_STR(status.reason, "SESSION_NOT_FOUND");
    CHECK_STR(status.message, "said by the server");
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(ask(tine, &options, "x", answer), STATUS_INTERNAL);
        CHECK_STR(status.reason, "INTERNAL");
    }
    CHECK_EQ(ask(tine, &options, "x", answer), STATUS_NOT_FOUND);
    CHECK_EQ(ask(tine, &options, "x", answer), STATUS_OK);
    CHECK_STR(status.reason, "");
}
