// Clients with nothing of ours but the contract: libnng's REQ and SUB sockets and protobuf-c, on a
// real tined. What works here works in every language that has these two.

#include <nng/nng.h>
#include <nng/protocol/pubsub0/sub.h>
#include <nng/protocol/reqrep0/req.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/error.h"
#include "harness.h"
#include "tine/v1/rpc.pb-c.h"
#include "tine/v1/store.pb-c.h"
#include "tined.h"

static const char SERVICE[] = "/tine.v1.StoreService/";

static nng_socket req_open(const char *url)
{
    nng_socket socket;
    CHECK_EQ(nng_req0_open(&socket), 0);
    CHECK_EQ(nng_socket_set_ms(socket, NNG_OPT_RECVTIMEO, HARNESS_PATIENCE_MS), 0);
    CHECK_EQ(nng_dial(socket, url, NULL, 0), 0);
    return socket;
}

static ProtobufCBinaryData packed(const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = malloc(size + 1);
    CHECK(bytes != NULL);
    (void)protobuf_c_message_pack(message, bytes);
    return (ProtobufCBinaryData){.len = size, .data = bytes};
}

static const char *operation_id = ""; // of the next calls

// Request in, Response out.
static Tine__V1__Response *call(nng_socket socket, const char *method, const char *token,
                                const ProtobufCMessage *message)
{
    char path[128];
    snprintf(path, sizeof(path), "%s%s", SERVICE, method);
    Tine__V1__Request request = TINE__V1__REQUEST__INIT;
    request.method = path;
    request.operation_id = (char *)(uintptr_t)operation_id;
    if (token) request.token = (char *)(uintptr_t)token;
    request.body = packed(message);
    ProtobufCBinaryData bytes = packed(&request.base);
    CHECK_EQ(nng_send(socket, bytes.data, bytes.len, 0), 0);
    free(bytes.data);
    free(request.body.data);

    void *reply;
    size_t size;
    CHECK_EQ(nng_recv(socket, &reply, &size, NNG_FLAG_ALLOC), 0);
    Tine__V1__Response *response = tine__v1__response__unpack(NULL, size, reply);
    CHECK(response != NULL);
    nng_free(reply, size);
    return response;
}

static void call_ok(nng_socket socket, const char *method, const char *token,
                    const ProtobufCMessage *message, const ProtobufCMessageDescriptor *type,
                    ProtobufCMessage **out)
{
    Tine__V1__Response *response = call(socket, method, token, message);
    if (response->status) printf("%s\n", response->status->message);
    CHECK(response->status == NULL);
    *out = protobuf_c_message_unpack(type, NULL, response->body.len, response->body.data);
    CHECK(*out != NULL);
    tine__v1__response__free_unpacked(response, NULL);
}

typedef struct SessionId {
    char text[32];
} SessionId;

static SessionId session_make(nng_socket socket, const char *token)
{
    Tine__V1__ModelRef model = TINE__V1__MODEL_REF__INIT;
    model.provider = (char *)(uintptr_t) "anthropic";
    model.name = (char *)(uintptr_t) "claude";
    Tine__V1__NewSession session = TINE__V1__NEW_SESSION__INIT;
    session.project_dir = (char *)(uintptr_t) "/project";
    session.model = &model;
    Tine__V1__CreateSessionRequest create = TINE__V1__CREATE_SESSION_REQUEST__INIT;
    create.session = &session;
    ProtobufCMessage *created;
    call_ok(socket, "CreateSession", token, &create.base,
            &tine__v1__create_session_response__descriptor, &created);
    SessionId id;
    snprintf(id.text, sizeof(id.text), "%s",
             ((Tine__V1__CreateSessionResponse *)created)->session->id);
    protobuf_c_message_free_unpacked(created, NULL);
    return id;
}

static void append(nng_socket socket, const char *token, const char *session)
{
    Tine__V1__NewMessage message = TINE__V1__NEW_MESSAGE__INIT;
    message.role = TINE__V1__ROLE__ROLE_USER;
    Tine__V1__AppendMessageRequest request = TINE__V1__APPEND_MESSAGE_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)session;
    request.message = &message;
    ProtobufCMessage *appended;
    call_ok(socket, "AppendMessage", token, &request.base,
            &tine__v1__append_message_response__descriptor, &appended);
    protobuf_c_message_free_unpacked(appended, NULL);
}

static void work_through(const char *url, const char *token)
{
    nng_socket socket = req_open(url);
    SessionId session = session_make(socket, token);
    append(socket, token, session.text);
    append(socket, token, session.text);

    Tine__V1__GetSessionRequest get = TINE__V1__GET_SESSION_REQUEST__INIT;
    get.session_id = session.text;
    ProtobufCMessage *got;
    call_ok(socket, "GetSession", token, &get.base, &tine__v1__get_session_response__descriptor,
            &got);
    CHECK_EQ(((Tine__V1__GetSessionResponse *)got)->session->message_count, 2);
    protobuf_c_message_free_unpacked(got, NULL);

    get.session_id = (char *)(uintptr_t) "00000000000000000000000001";
    Tine__V1__Response *response = call(socket, "GetSession", token, &get.base);
    CHECK(response->status != NULL);
    CHECK_EQ(response->status->code, STATUS_NOT_FOUND);
    CHECK_STR(response->status->reason, "SESSION_NOT_FOUND");
    tine__v1__response__free_unpacked(response, NULL);
    nng_close(socket);
}

TEST(a_plain_req_socket_is_served_on_ipc_and_on_tcp)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    work_through(tined.url, NULL);
    work_through(tined.tcp_url, TINED_TOKEN);
    tined_stop(&tined);
}

// Loses what passes between a client and the daemon (tests/wire/programs/proxy.c). Ends with the
// test.
static void proxy_start(const Tined *tined, const char *mode, char url[320])
{
    char path[300];
    int ready[2];
    snprintf(path, sizeof(path), "%s/%s", test_dir(), mode);
    snprintf(url, 320, "ipc://%s", path);
    CHECK_EQ(pipe(ready), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ready[1], STDOUT_FILENO);
        const char *to = tined->url + strlen("ipc://");
        execl(WIRE_PROXY, WIRE_PROXY, "--socket", path, "--to", to, "--mode", mode, "--count", "2",
              NULL);
        _exit(127);
    }
    close(ready[1]);
    char word[8];
    CHECK(read(ready[0], word, sizeof(word)) > 0);
    close(ready[0]);
}

TEST(what_plain_req_sockets_send_again_is_done_once)
{
    static const char *const MODES[] = {"drop-reply", "cut-reply", "cut-request"};
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    nng_socket direct = req_open(tined.url);
    SessionId session = session_make(direct, NULL);
    for (size_t i = 0; i < sizeof(MODES) / sizeof(*MODES); i++) {
        char url[320];
        proxy_start(&tined, MODES[i], url);
        nng_socket socket = req_open(url);
        // When a connection ends it sends again at once; when a reply is lost, after this time.
        CHECK_EQ(nng_socket_set_ms(socket, NNG_OPT_REQ_RESENDTIME, 100), 0);
        operation_id = MODES[i];
        append(socket, NULL, session.text);
        operation_id = "";
        nng_close(socket);
    }
    Tine__V1__GetSessionRequest get = TINE__V1__GET_SESSION_REQUEST__INIT;
    get.session_id = session.text;
    ProtobufCMessage *got;
    call_ok(direct, "GetSession", NULL, &get.base, &tine__v1__get_session_response__descriptor,
            &got);
    CHECK_EQ(((Tine__V1__GetSessionResponse *)got)->session->message_count, 3);
    protobuf_c_message_free_unpacked(got, NULL);
    nng_close(direct);
}

// The next message: its topic, and its Event, which is the caller's.
static Tine__V1__Event *event_next(nng_socket socket, char topic[128])
{
    char *message;
    size_t size;
    CHECK_EQ(nng_recv(socket, (void *)&message, &size, NNG_FLAG_ALLOC), 0);
    size_t topic_size = strnlen(message, size);
    CHECK(topic_size < size && topic_size < 128);
    memcpy(topic, message, topic_size + 1);
    Tine__V1__Event *event =
        tine__v1__event__unpack(NULL, size - topic_size - 1, (uint8_t *)message + topic_size + 1);
    CHECK(event != NULL);
    nng_free(message, size);
    return event;
}

TEST(a_plain_sub_socket_hears_the_session_it_asks_for)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    nng_socket requests = req_open(tined.url), events;
    SessionId mine = session_make(requests, NULL), other = session_make(requests, NULL);
    char url[320], prefix[64], topic[128], expected[128];
    snprintf(url, sizeof(url), "%s.events", tined.url);
    snprintf(prefix, sizeof(prefix), "session/%s/", mine.text);
    snprintf(expected, sizeof(expected), "%smessage.appended", prefix);
    CHECK_EQ(nng_sub0_open(&events), 0);
    CHECK_EQ(nng_socket_set_ms(events, NNG_OPT_RECVTIMEO, HARNESS_PATIENCE_MS), 0);
    CHECK_EQ(nng_socket_set(events, NNG_OPT_SUB_SUBSCRIBE, prefix, strlen(prefix)), 0);
    CHECK_EQ(nng_socket_set(events, NNG_OPT_SUB_SUBSCRIBE, "heartbeat", 9), 0);
    CHECK_EQ(nng_dial(events, url, NULL, 0), 0);

    Tine__V1__Event *event = event_next(events, topic);
    CHECK_STR(topic, "heartbeat");
    CHECK_EQ(event->sequence, 2); // the two sessions
    tine__v1__event__free_unpacked(event, NULL);

    append(requests, NULL, other.text);
    append(requests, NULL, mine.text);
    do {
        event = event_next(events, topic);
        if (strcmp(topic, "heartbeat") != 0) break;
        tine__v1__event__free_unpacked(event, NULL);
    } while (true);
    CHECK_STR(topic, expected);
    CHECK_EQ(event->sequence, 4);
    CHECK_EQ(event->previous_session_sequence, 1);
    CHECK_STR(event->session_id, mine.text);
    tine__v1__event__free_unpacked(event, NULL);
    nng_close(events);
    nng_close(requests);
}
