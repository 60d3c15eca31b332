// The transport: requests come in and replies go out, whoever speaks the wire.

#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "os/clock.h"
#include "server.h"

static const char TOKEN[] = "a token of enough bytes";

// A REQ socket of libnng, without anything of ours.
static nng_socket req_open(const char *path)
{
    nng_socket socket;
    char url[160];
    snprintf(url, sizeof(url), "ipc://%s", path);
    CHECK_EQ(nng_req0_open(&socket), 0);
    CHECK_EQ(nng_dial(socket, url, NULL, 0), 0);
    return socket;
}

static nng_msg *req_call(nng_socket socket, Slice request)
{
    nng_msg *message;
    CHECK_EQ(nng_msg_alloc(&message, 0), 0);
    CHECK_EQ(nng_msg_append(message, request.bytes, request.size), 0);
    CHECK_EQ(nng_sendmsg(socket, message, 0), 0);
    CHECK_EQ(nng_recvmsg(socket, &message, 0), 0);
    return message;
}

static uint64_t message_count(Server *server, const char *session)
{
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    GetSessionResponse *response;
    request.session_id = (char *)(uintptr_t)session;
    CHECK_EQ(engine_call(server->engine, METHOD_GET_SESSION, &request, NULL, &response),
             ERROR_NONE);
    uint64_t count = response->session->message_count;
    engine_free(response);
    return count;
}

TEST(a_plain_nng_client_is_served)
{
    CLEANUP(server_close) Server server;
    server_open(&server, NULL);
    IdText session;
    engine_new_session(server.engine, NULL, session);

    nng_socket socket = req_open(server.path);
    Slice request = request_append(session, "hello", NULL);
    nng_msg *reply = req_call(socket, request);
    CHECK_EQ(reply_code(slice(nng_msg_body(reply), nng_msg_len(reply))), STATUS_OK);
    nng_msg_free(reply);
    request_free(&request);
    CHECK_EQ(message_count(&server, session), 1);
    nng_close(socket);
}

TEST(the_socket_is_its_owners)
{
    CLEANUP(server_close) Server server;
    server_open(&server, NULL);
    struct stat found;
    CHECK_EQ(stat(server.path, &found), 0);
    CHECK_EQ(found.st_mode & 0777, 0600);
}

TEST(what_fails_comes_back_as_a_status)
{
    CLEANUP(server_close) Server server;
    server_open(&server, NULL);
    Sp sp = sp_open(server.path);
    call_expect(sp, request_get_message("00000000000000000000000001"), STATUS_NOT_FOUND);
    Slice reply = sp_call(sp, slice("\xff\xff", 2));
    CHECK_EQ(reply_code(reply), STATUS_INVALID_ARGUMENT);
    sp_free(&reply);
    reply = sp_call(sp, slice("", 0));
    CHECK_EQ(reply_code(reply), STATUS_INVALID_ARGUMENT);
    sp_free(&reply);
    check_served(sp);
    sp_close(&sp);
}

TEST(a_request_over_the_limit_is_told_so_and_a_frame_over_it_ends_the_connection)
{
    CLEANUP(server_close) Server server;
    server_open(&server, NULL);
    Sp sp = sp_open(server.path);
    uint8_t *bytes = calloc(1, REQUEST_BYTES_MAX + FRAME_EXTRA_BYTES);
    CHECK(bytes != NULL);
    Slice reply = sp_call(sp, slice(bytes, REQUEST_BYTES_MAX));
    CHECK_STR(reply_reason(reply), "INVALID_ARGUMENT"); // zeros are no request
    sp_free(&reply);
    reply = sp_call(sp, slice(bytes, REQUEST_BYTES_MAX + 1));
    CHECK_STR(reply_reason(reply), "TOO_LONG");
    sp_free(&reply);

    (void)sp_send(sp, 1, slice(bytes, REQUEST_BYTES_MAX + FRAME_EXTRA_BYTES));
    sp_wait_closed(sp);
    sp_close(&sp);
    free(bytes);
    sp = sp_open(server.path);
    check_served(sp);
    sp_close(&sp);
}

TEST(over_tcp_a_request_must_carry_the_token)
{
    CLEANUP(server_close) Server server;
    uint16_t port = server_open_tcp(&server, TOKEN);
    Sp sp = sp_open_tcp(port);
    call_expect(sp, request_health(), STATUS_UNAUTHENTICATED);
    call_expect(sp, request_with_token(request_health(), "a token of enough byteS"),
                STATUS_UNAUTHENTICATED);
    call_expect(sp, request_with_token(request_health(), "a token"), STATUS_UNAUTHENTICATED);
    call_expect(sp, request_with_token(request_health(), TOKEN), STATUS_OK);
    sp_close(&sp);

    sp = sp_open(server.path);
    check_served(sp); // the socket's permissions are enough
    sp_close(&sp);
}

TEST(the_65th_request_in_flight_is_refused_and_the_others_are_not)
{
    CLEANUP(server_close) Server server;
    server_open(&server, NULL);
    IdText session;
    engine_new_session(server.engine, NULL, session);
    gate_close(&server.gate);
    Sp sp = sp_open(server.path);
    Slice append = request_append(session, "one of many", NULL);
    for (uint32_t i = 0; i <= CLIENT_REQUESTS_MAX; i++)
        CHECK(sp_send(sp, i, append));

    uint32_t id;
    Slice reply;
    CHECK(sp_receive(sp, &id, &reply));
    CHECK_STR(reply_reason(reply), "TOO_MANY_IN_FLIGHT");
    CHECK_EQ(reply_code(reply), STATUS_RESOURCE_EXHAUSTED);
    sp_free(&reply);
    gate_open(&server.gate);
    for (uint32_t i = 0; i < CLIENT_REQUESTS_MAX; i++) {
        CHECK(sp_receive(sp, &id, &reply));
        CHECK_EQ(reply_code(reply), STATUS_OK);
        sp_free(&reply);
    }
    CHECK_EQ(message_count(&server, session), CLIENT_REQUESTS_MAX);
    check_served(sp);
    sp_close(&sp);
    request_free(&append);
}

TEST(a_client_that_keeps_64_in_flight_is_never_refused)
{
    CLEANUP(server_close) Server server;
    server_open(&server, NULL);
    Sp sp = sp_open(server.path);
    Slice health = request_health();
    uint32_t sent = 0, received = 0, count = (uint32_t)test_scaled(50000);
    while (received < count) {
        while (sent < count && sent - received < CLIENT_REQUESTS_MAX)
            CHECK(sp_send(sp, sent++, health));
        uint32_t id;
        Slice reply;
        CHECK(sp_receive(sp, &id, &reply));
        CHECK_EQ(reply_code(reply), STATUS_OK);
        sp_free(&reply);
        received++;
    }
    sp_close(&sp);
    request_free(&health);
}

// The socket's own resending, and the same by hand, to see every reply.
TEST(a_resent_append_with_an_operation_id_runs_once_and_all_have_its_receipt)
{
    enum { RESENT = 4 };
    CLEANUP(server_close) Server server;
    server_open(&server, NULL);
    IdText session, first, other;
    engine_new_session(server.engine, NULL, session);
    nng_socket socket = req_open(server.path);
    CHECK_EQ(nng_socket_set_ms(socket, NNG_OPT_REQ_RESENDTIME, 200), 0);
    CHECK_EQ(nng_socket_set_ms(socket, NNG_OPT_REQ_RESENDTICK, 50), 0);
    gate_close(&server.gate);
    Slice request = request_append(session, "once", "op-once"), reply;
    nng_msg *message;
    CHECK_EQ(nng_msg_alloc(&message, 0), 0);
    CHECK_EQ(nng_msg_append(message, request.bytes, request.size), 0);
    CHECK_EQ(nng_sendmsg(socket, message, 0), 0);
    wait_for_requests(&server, RESENT); // of them, three are the socket's own doing
    Sp sp = sp_open(server.path);
    for (uint32_t i = 0; i < RESENT; i++)
        CHECK(sp_send(sp, 7, request)); // the same request under the same id
    wait_for_requests(&server, 2 * RESENT);
    gate_open(&server.gate);

    CHECK_EQ(nng_recvmsg(socket, &message, 0), 0);
    reply_id(slice(nng_msg_body(message), nng_msg_len(message)), first);
    nng_msg_free(message);
    for (uint32_t i = 0; i < RESENT; i++) {
        uint32_t id;
        CHECK(sp_receive(sp, &id, &reply));
        CHECK_EQ(id, 7);
        reply_id(reply, other);
        CHECK_STR(other, first);
        sp_free(&reply);
    }
    nng_close(socket);
    sp_close(&sp);
    request_free(&request);
    engine_append_text(server.engine, session, "behind them", NULL);
    CHECK_EQ(message_count(&server, session), 2);
}

TEST(a_write_whose_time_is_over_before_it_begins_is_never_done)
{
    CLEANUP(server_close) Server server;
    server_open(&server, NULL);
    IdText session;
    engine_new_session(server.engine, NULL, session);
    gate_close(&server.gate);
    Sp sp = sp_open(server.path);
    Slice begun = request_append(session, "begun", NULL);
    Slice queued = request_append(session, "queued", NULL);
    CHECK(sp_send(sp, 1, begun));
    gate_wait_held(&server.gate);
    Slice hurried = request_with_timeout(queued, 1);
    CHECK(sp_send(sp, 2, hurried));
    wait_for_requests(&server, 2);
    wait_for_milliseconds(2);
    gate_open(&server.gate);
    int codes[3] = {-1, -1, -1};
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t id;
        Slice reply;
        CHECK(sp_receive(sp, &id, &reply));
        CHECK(id == 1 || id == 2);
        codes[id] = reply_code(reply);
        sp_free(&reply);
    }
    CHECK_EQ(codes[1], STATUS_OK);
    CHECK_EQ(codes[2], STATUS_DEADLINE_EXCEEDED);
    CHECK_EQ(message_count(&server, session), 1);
    request_free(&begun);
    request_free(&hurried);
    sp_close(&sp);
}

// Sends a request whose time is over while the gate holds it at its commit. It has some time to
// begin in, more if the machine was too busy for that. To be freed when it was answered.
static Slice send_to_begin(Server *server, Sp sp, const char *session, int64_t *out_timeout_ms)
{
    for (int64_t timeout_ms = 50;; timeout_ms *= 2) {
        Slice append = request_append(session, "begun", NULL);
        Slice request = request_with_timeout(append, (uint64_t)timeout_ms);
        CHECK(sp_send(sp, 1, request));
        while (!gate_is_holding(&server->gate) && !sp_is_readable(sp))
            sched_yield();
        *out_timeout_ms = timeout_ms;
        if (gate_is_holding(&server->gate)) return request;
        uint32_t id;
        Slice reply;
        CHECK(sp_receive(sp, &id, &reply));
        CHECK_EQ(reply_code(reply), STATUS_DEADLINE_EXCEEDED);
        sp_free(&reply);
        request_free(&request);
    }
}

TEST(an_append_that_has_begun_is_done_though_its_time_is_over)
{
    CLEANUP(server_close) Server server;
    server_open(&server, NULL);
    IdText session;
    engine_new_session(server.engine, NULL, session);
    gate_close(&server.gate);
    Sp sp = sp_open(server.path);
    int64_t timeout_ms;
    Slice request = send_to_begin(&server, sp, session, &timeout_ms);
    wait_for_milliseconds(timeout_ms + 1);
    gate_open(&server.gate);
    uint32_t id;
    Slice reply;
    CHECK(sp_receive(sp, &id, &reply));
    CHECK_EQ(reply_code(reply), STATUS_OK);
    sp_free(&reply);
    CHECK_EQ(message_count(&server, session), 1);
    request_free(&request);
    sp_close(&sp);
}

TEST(calls_that_wait_for_events_leave_room_for_others)
{
    CLEANUP(server_close) Server server;
    server_open(&server, NULL);
    enum { CONNECTIONS = WAITING_CALLS_MAX / CLIENT_REQUESTS_MAX };
    Sp waiting[CONNECTIONS];
    Slice wait = request_wait_events(0, WAIT_MS_MAX);
    for (size_t i = 0; i < CONNECTIONS; i++) {
        waiting[i] = sp_open(server.path);
        for (uint32_t j = 0; j < CLIENT_REQUESTS_MAX; j++)
            CHECK(sp_send(waiting[i], j, wait));
    }
    wait_for_requests(&server, WAITING_CALLS_MAX);
    Sp sp = sp_open(server.path);
    check_served(sp);

    IdText session;
    engine_new_session(server.engine, NULL, session);
    for (size_t i = 0; i < CONNECTIONS; i++) {
        for (uint32_t j = 0; j < CLIENT_REQUESTS_MAX; j++) {
            uint32_t id;
            Slice reply;
            CHECK(sp_receive(waiting[i], &id, &reply));
            CHECK_EQ(reply_code(reply), STATUS_OK);
            sp_free(&reply);
        }
        sp_close(&waiting[i]);
    }
    sp_close(&sp);
    request_free(&wait);
}

// A slow disk must not make reads wait, however many wait for it.
TEST(reads_are_answered_while_more_writes_wait_than_any_number_of_receivers)
{
    enum { CLIENTS = 70 };
    CLEANUP(server_close) Server server;
    server_open(&server, NULL);
    IdText session;
    engine_new_session(server.engine, NULL, session);
    gate_close(&server.gate);
    Slice request = request_append(session, "waits", NULL);
    Sp good = sp_open(server.path), clients[CLIENTS];
    for (size_t i = 0; i < CLIENTS; i++) {
        clients[i] = sp_open(server.path);
        for (uint32_t j = 0; j < CLIENT_REQUESTS_MAX; j++)
            CHECK(sp_send(clients[i], j, request));
        check_served(good);
    }
    gate_open(&server.gate);
    request_free(&request);
    for (size_t i = 0; i < CLIENTS; i++) {
        Slice reply;
        uint32_t id;
        for (uint32_t j = 0; j < CLIENT_REQUESTS_MAX; j++) {
            CHECK(sp_receive(clients[i], &id, &reply));
            sp_free(&reply);
        }
        sp_close(&clients[i]);
    }
    sp_close(&good);
}

TEST(one_client_too_many_is_turned_away_until_another_goes)
{
    CLEANUP(server_close) Server server;
    server_open(&server, &(ServerOptions){.clients_max = 2});
    Sp first = sp_open(server.path), second = sp_open(server.path);
    check_served(first);
    check_served(second);
    Sp third = sp_open(server.path); // the hellos come first
    sp_wait_closed(third);
    sp_close(&third);
    sp_close(&second);
    wait_for_clients(&server, 1);
    second = sp_open(server.path);
    check_served(second);
    sp_close(&second);
    sp_close(&first);
}

typedef struct Asker {
    const char *path;
    atomic_bool is_over;
    pthread_t thread;
} Asker;

static void *ask_without_a_pause(void *context)
{
    Asker *asker = context;
    Sp sp = sp_open(asker->path);
    while (!atomic_load(&asker->is_over))
        check_served(sp);
    sp_close(&sp);
    return NULL;
}

// A thread of the server stays with each of them for as long as it asks on.
TEST(clients_that_ask_without_a_pause_keep_nobody_waiting)
{
    enum { ASKERS = 4 };
    CLEANUP(server_close) Server server;
    server_open(&server, NULL);
    Asker askers[ASKERS];
    for (size_t i = 0; i < ASKERS; i++) {
        askers[i].path = server.path;
        atomic_init(&askers[i].is_over, false);
        CHECK_EQ(pthread_create(&askers[i].thread, NULL, ask_without_a_pause, &askers[i]), 0);
    }
    for (size_t i = 0; i < test_scaled(1000); i++) {
        Sp sp = sp_open(server.path);
        check_served(sp);
        check_served(sp);
        sp_close(&sp);
    }
    for (size_t i = 0; i < ASKERS; i++) {
        atomic_store(&askers[i].is_over, true);
        pthread_join(askers[i].thread, NULL);
    }
}

TEST(a_thousand_clients_at_once_are_served)
{
    CLEANUP(server_close) Server server;
    server_open(&server, NULL);
    size_t count = test_scaled(1000), base = descriptor_count();
    Sp *clients = calloc(count, sizeof(Sp));
    CHECK(clients != NULL);
    for (size_t i = 0; i < count; i++)
        clients[i] = sp_open(server.path);
    for (size_t i = 0; i < count; i++)
        check_served(clients[i]);
    for (size_t i = 0; i < count; i++)
        sp_close(&clients[i]);
    free(clients);
    wait_for_descriptors(base);
}

typedef struct Failure {
    atomic_bool is_failing;
    atomic_int told_count;
} Failure;

static void failure_told(void *context)
{
    ((Failure *)context)->told_count++;
}

static Error failing_commit(void *context, KvOperation operation, KvTable table)
{
    (void)table;
    bool is_failing = ((Failure *)context)->is_failing;
    return operation == KV_COMMIT && is_failing ? ERROR_IO : ERROR_NONE;
}

TEST(a_commit_that_fails_is_told_once)
{
    static Failure failure;
    CLEANUP(server_close) Server server;
    EngineHooks hooks = {.store_failed = failure_told, .context = &failure};
    server_open(&server, &(ServerOptions){.hooks = hooks, .seam = {failing_commit, &failure}});
    IdText session;
    engine_new_session(server.engine, NULL, session);
    CHECK_EQ(failure.told_count, 0);
    failure.is_failing = true;
    Sp sp = sp_open(server.path);
    call_expect(sp, request_append(session, "lost", NULL), STATUS_DATA_LOSS);
    call_expect(sp, request_append(session, "lost too", NULL), STATUS_DATA_LOSS);
    sp_close(&sp);
    CHECK_EQ(failure.told_count, 1);
}

TEST(a_server_that_stops_answers_what_it_accepted_and_refuses_what_comes)
{
    CLEANUP(server_close) Server server;
    server_open(&server, NULL);
    IdText session;
    engine_new_session(server.engine, NULL, session);
    gate_close(&server.gate);
    Sp sp = sp_open(server.path), waiting = sp_open(server.path);
    Slice append = request_append(session, "accepted", NULL);
    Slice wait = request_wait_events(1, WAIT_MS_MAX);
    CHECK(sp_send(sp, 1, append));
    CHECK(sp_send(waiting, 2, wait));
    gate_wait_held(&server.gate);
    wait_for_requests(&server, 2);

    transport_stop_intake(server.transport);
    engine_stop_waiting(server.engine);
    CHECK(!transport_drain(server.transport, clock_monotonic_ns()));
    uint32_t id;
    Slice reply;
    CHECK(sp_receive(waiting, &id, &reply)); // with nothing, before its time
    CHECK_EQ(reply_code(reply), STATUS_OK);
    sp_free(&reply);
    call_expect(waiting, request_health(), STATUS_UNAVAILABLE);
    Sp late = sp_connect(server.path);
    (void)sp_hello(late, SP_REQ);
    sp_wait_closed(late);
    sp_close(&late);

    gate_open(&server.gate);
    CHECK(transport_drain(server.transport, INT64_MAX));
    CHECK(sp_receive(sp, &id, &reply));
    CHECK_EQ(reply_code(reply), STATUS_OK);
    sp_free(&reply);
    sp_close(&sp);
    sp_close(&waiting);
    request_free(&append);
    request_free(&wait);
}

TEST(a_server_that_must_not_wait_refuses_the_queue_and_stores_none_of_it)
{
    enum { QUEUED = 10 };
    CLEANUP(server_close) Server server;
    server_open(&server, NULL);
    IdText session;
    engine_new_session(server.engine, NULL, session);
    gate_close(&server.gate);
    Sp sp = sp_open(server.path);
    Slice append = request_append(session, "first", NULL);
    CHECK(sp_send(sp, 0, append));
    gate_wait_held(&server.gate);
    for (uint32_t i = 1; i <= QUEUED; i++)
        CHECK(sp_send(sp, i, append));
    wait_for_requests(&server, QUEUED + 1);
    transport_stop_intake(server.transport);
    engine_refuse_writes(server.engine);
    uint32_t id;
    Slice reply;
    for (uint32_t i = 1; i <= QUEUED; i++) {
        CHECK(sp_receive(sp, &id, &reply));
        CHECK_EQ(reply_code(reply), STATUS_UNAVAILABLE);
        sp_free(&reply);
    }
    gate_open(&server.gate);
    CHECK(sp_receive(sp, &id, &reply));
    CHECK_EQ(id, 0);
    CHECK_EQ(reply_code(reply), STATUS_OK); // what has begun is never abandoned
    sp_free(&reply);
    CHECK_EQ(message_count(&server, session), 1);
    sp_close(&sp);
    request_free(&append);
}

static void *drain(void *context)
{
    Server *server = context;
    transport_stop_intake(server->transport);
    bool is_drained = transport_drain(server->transport, INT64_MAX);
    transport_close(server->transport);
    return is_drained ? server : NULL;
}

TEST(a_long_reply_is_read_to_its_end_although_the_server_stops)
{
    enum { TEXT_BYTES = 8 * 1024 * 1024 };
    CLEANUP(server_close) Server server;
    server_open(&server, NULL);
    IdText session, message;
    engine_new_session(server.engine, NULL, session);
    char *text = calloc(1, TEXT_BYTES + 1);
    CHECK(text != NULL);
    memset(text, 'x', TEXT_BYTES);
    engine_append_text(server.engine, session, text, message);
    free(text);
    Sp sp = sp_open(server.path);
    Slice request = request_get_message(message), reply;
    CHECK(sp_send(sp, 1, request));
    wait_for_requests(&server, 1);
    CHECK(!transport_drain(server.transport, clock_monotonic_ns()));

    pthread_t thread;
    void *is_drained;
    uint32_t id;
    CHECK_EQ(pthread_create(&thread, NULL, drain, &server), 0);
    CHECK(sp_receive(sp, &id, &reply));
    CHECK(reply.size > TEXT_BYTES);
    CHECK_EQ(pthread_join(thread, &is_drained), 0);
    CHECK(is_drained != NULL);
    sp_free(&reply);
    request_free(&request);
    sp_close(&sp);
    engine_close(server.engine);
    transport_free(server.transport);
    server = (Server){.engine = NULL};
}

TEST(a_reply_of_a_page_is_sent_whole_before_any_of_it_is_read)
{
    enum { TEXT_BYTES = 300 * 1024 }; // what a socket has by itself is 208 KiB
    CLEANUP(server_close) Server server;
    server_open(&server, NULL);
    IdText session, message;
    engine_new_session(server.engine, NULL, session);
    char *text = calloc(1, TEXT_BYTES + 1);
    CHECK(text != NULL);
    memset(text, 'x', TEXT_BYTES);
    engine_append_text(server.engine, session, text, message);
    free(text);
    Sp sp = sp_open(server.path);
    Slice request = request_get_message(message), reply;
    CHECK(sp_send(sp, 1, request));
    for (int waiting = 0; waiting < TEXT_BYTES;) {
        CHECK_EQ(ioctl(sp.fd, FIONREAD, &waiting), 0);
        sched_yield();
    }
    uint32_t id;
    CHECK(sp_receive(sp, &id, &reply));
    CHECK_EQ(reply_code(reply), 0);
    sp_free(&reply);
    request_free(&request);
    sp_close(&sp);
}

// Sends on and on, until the server is gone.
static void *ask_on(void *context)
{
    Sp sp = sp_open(((Server *)context)->path);
    Slice requests[] = {request_health(), request_get_message("00000000000000000000000001")};
    bool is_there = true;
    for (uint32_t sent = 0, received = 0; is_there;) {
        while (is_there && sent - received < CLIENT_REQUESTS_MAX) {
            is_there = sp_send(sp, sent, requests[sent % 2]);
            sent++;
        }
        uint32_t id;
        Slice reply;
        is_there = is_there && sp_receive(sp, &id, &reply);
        if (is_there) sp_free(&reply);
        received++;
    }
    request_free(&requests[0]);
    request_free(&requests[1]);
    sp_close(&sp);
    return NULL;
}

TEST(a_server_may_be_closed_under_load_without_a_drain)
{
    enum { CLIENTS = 6 };
    for (size_t i = 0; i < test_scaled(100); i++) {
        Server server;
        server_open(&server, NULL);
        pthread_t clients[CLIENTS];
        for (size_t j = 0; j < CLIENTS; j++)
            CHECK_EQ(pthread_create(&clients[j], NULL, ask_on, &server), 0);
        wait_for_clients(&server, CLIENTS);
        wait_for_requests(&server, 500);
        if (i % 2 == 0) transport_stop_intake(server.transport);
        transport_close(server.transport);
        engine_close(server.engine);
        transport_free(server.transport);
        for (size_t j = 0; j < CLIENTS; j++)
            pthread_join(clients[j], NULL);
    }
}
