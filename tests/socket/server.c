// A server in the test's own process.

#include "server.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.h"
#include "os/clock.h"
#include "wire/wire.h"

enum { REASON_BYTES = 64 };

static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

void server_open(Server *server, const ServerOptions *options)
{
    static const ServerOptions USUAL = {.tcp_url = NULL};
    if (!options) options = &USUAL;
    *server = (Server){.engine = NULL};
    raise_descriptor_limit();
    gate_init(&server->gate);
    char directory[256];
    snprintf(directory, sizeof(directory), "%s/data", test_dir());
    int size = snprintf(server->path, sizeof(server->path), "%s/s", test_dir());
    CHECK(size > 0 && (size_t)size < sizeof(server->path));
    ErrorDetail detail = {{0}};
    EngineOptions engine_options = {
        .store = {.directory = directory,
                  .is_ephemeral = true,
                  .map_bytes = (size_t)1 << 30,
                  .seam = options->seam.before ? options->seam : gate_seam(&server->gate)},
        .hooks = options->hooks,
    };
    CHECK_EQ(engine_open(&engine_options, &detail, &server->engine), ERROR_NONE);
    TransportOptions transport_options = {
        .engine = server->engine,
        .socket_path = server->path,
        .tcp_url = options->tcp_url,
        .tcp_token = slice_of(options->tcp_token),
        .clients_max = options->clients_max,
    };
    Error error = transport_start(&transport_options, &detail, &server->transport);
    if (error) printf("%s\n", detail.text);
    CHECK_EQ(error, ERROR_NONE);
}

uint16_t server_open_tcp(Server *server, const char *token)
{
    // Below the ephemeral range; each process of the tests has its own.
    char url[64];
    uint16_t port = (uint16_t)(20000 + getpid() % 10000);
    snprintf(url, sizeof(url), "tcp://127.0.0.1:%u", port);
    server_open(server, &(ServerOptions){.tcp_url = url, .tcp_token = token});
    return port;
}

void server_close(Server *server)
{
    if (server->transport) {
        transport_stop_intake(server->transport);
        engine_stop_waiting(server->engine);
        int64_t until_ns = clock_monotonic_ns() + (int64_t)HARNESS_PATIENCE_MS * 1000000;
        CHECK(transport_drain(server->transport, until_ns));
        transport_close(server->transport);
    }
    engine_close(server->engine);
    transport_free(server->transport);
    *server = (Server){.engine = NULL};
}

Slice request_health(void)
{
    HealthRequest request = HEALTH_REQUEST__INIT;
    return engine_request(METHOD_HEALTH, &request, NULL, 0);
}

Slice request_get_message(const char *message)
{
    GetMessageRequest request = GET_MESSAGE_REQUEST__INIT;
    request.by_case = GET_MESSAGE_REQUEST__BY_MESSAGE_ID;
    request.message_id = (char *)(uintptr_t)message;
    return engine_request(METHOD_GET_MESSAGE, &request, NULL, 0);
}

Slice request_append(const char *session, const char *text, const char *operation_id)
{
    AppendMessageRequest request = APPEND_MESSAGE_REQUEST__INIT;
    NewMessage message = NEW_MESSAGE__INIT;
    Part part = PART__INIT, *parts[] = {&part};
    Text content = TEXT__INIT;
    content.text = (char *)(uintptr_t)text;
    part.kind_case = PART__KIND_TEXT;
    part.text = &content;
    message.role = ROLE_USER;
    message.parts = parts;
    message.n_parts = 1;
    request.session_id = (char *)(uintptr_t)session;
    request.message = &message;
    return engine_request(METHOD_APPEND_MESSAGE, &request, operation_id, 0);
}

Slice request_wait_events(uint64_t after_sequence, uint32_t wait_ms)
{
    ListEventsRequest request = LIST_EVENTS_REQUEST__INIT;
    request.after_sequence = after_sequence;
    request.wait_ms = wait_ms;
    return engine_request(METHOD_LIST_EVENTS, &request, NULL, 0);
}

Slice request_with_token(Slice request, const char *token)
{
    Buffer buffer = {.bytes = NULL};
    CHECK_EQ(wire_append_bytes(&buffer, 5, slice_of(token)), ERROR_NONE);
    CHECK_EQ(buffer_append(&buffer, request), ERROR_NONE);
    request_free(&request);
    CHECK_EQ(buffer.start, 0);
    return buffer_slice(&buffer);
}

Slice request_with_timeout(Slice request, uint64_t timeout_ms)
{
    Buffer buffer = {.bytes = NULL};
    CHECK_EQ(wire_append_varint(&buffer, 3, timeout_ms), ERROR_NONE);
    CHECK_EQ(buffer_append(&buffer, request), ERROR_NONE);
    request_free(&request);
    CHECK_EQ(buffer.start, 0);
    return buffer_slice(&buffer);
}

void request_free(Slice *request)
{
    free((void *)(uintptr_t)request->bytes);
    *request = (Slice){NULL, 0};
}

int reply_code(Slice reply)
{
    WireField status, code;
    if (!wire_find(reply, 1, &status)) return STATUS_OK;
    return wire_find(status.bytes, 1, &code) ? (int)code.value : STATUS_OK;
}

const char *reply_reason(Slice reply)
{
    static char text[REASON_BYTES];
    WireField status, reason;
    text[0] = '\0';
    if (wire_find(reply, 1, &status) && wire_find(status.bytes, 3, &reason)) {
        snprintf(text, sizeof(text), "%.*s", (int)reason.bytes.size,
                 (const char *)reason.bytes.bytes);
    }
    return text;
}

void reply_id(Slice reply, IdText out)
{
    WireField body, record, id;
    CHECK_EQ(reply_code(reply), STATUS_OK);
    CHECK(wire_find(reply, 15, &body) && wire_find(body.bytes, 1, &record) &&
          wire_find(record.bytes, 1, &id));
    snprintf(out, sizeof(IdText), "%.*s", (int)id.bytes.size, (const char *)id.bytes.bytes);
}

void new_session(Sp sp, IdText out)
{
    CreateSessionRequest request = CREATE_SESSION_REQUEST__INIT;
    NewSession session = NEW_SESSION__INIT;
    ModelRef model = MODEL_REF__INIT;
    model.provider = "anthropic";
    model.name = "model-1";
    session.model = &model;
    session.project_dir = "/project";
    session.kind = SESSION_KIND_PRIMARY;
    request.session = &session;
    Slice bytes = engine_request(METHOD_CREATE_SESSION, &request, NULL, 0);
    Slice reply = sp_call(sp, bytes);
    reply_id(reply, out);
    request_free(&bytes);
    sp_free(&reply);
}

uint64_t session_message_count(Sp sp, const char *session)
{
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)session;
    Slice bytes = engine_request(METHOD_GET_SESSION, &request, NULL, 0);
    Slice reply = sp_call(sp, bytes);
    CHECK_EQ(reply_code(reply), 0);
    WireField body;
    CHECK(wire_find(reply, 15, &body));
    GetSessionResponse *response =
        tine__v1__get_session_response__unpack(NULL, body.bytes.size, body.bytes.bytes);
    CHECK(response != NULL);
    uint64_t count = response->session->message_count;
    engine_free(response);
    request_free(&bytes);
    sp_free(&reply);
    return count;
}

void call_expect(Sp sp, Slice request, int code)
{
    Slice reply = sp_call(sp, request);
    CHECK_EQ(reply_code(reply), code);
    sp_free(&reply);
    request_free(&request);
}

void check_served(Sp sp)
{
    call_expect(sp, request_health(), STATUS_OK);
}

size_t descriptor_count(void)
{
    DIR *directory = opendir("/proc/self/fd");
    CHECK(directory != NULL);
    size_t count = 0;
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

void wait_for_descriptors(size_t count)
{
    while (descriptor_count() > count)
        sched_yield();
}

// A line of /proc/PID/status, in bytes.
static size_t status_bytes(pid_t pid, const char *name)
{
    char path[64], line[256];
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    unsigned long long kilobytes = 0;
    bool is_found = false;
    while (!is_found && fgets(line, sizeof(line), file)) {
        is_found = strncmp(line, name, strlen(name)) == 0;
        if (is_found) kilobytes = strtoull(line + strlen(name), NULL, 10);
    }
    fclose(file);
    CHECK(is_found);
    return (size_t)kilobytes * 1024;
}

size_t process_resident_bytes(pid_t pid)
{
    return status_bytes(pid, "VmRSS:");
}

size_t process_anonymous_bytes(pid_t pid)
{
    return status_bytes(pid, "RssAnon:");
}

void wait_for_milliseconds(int64_t milliseconds)
{
    int64_t until_ns = clock_monotonic_ns() + milliseconds * 1000000;
    while (clock_monotonic_ns() < until_ns)
        sched_yield();
}

void wait_for_clients(Server *server, size_t count)
{
    TransportStats stats;
    do {
        sched_yield();
        transport_stats(server->transport, &stats);
    } while (stats.clients != count);
}

void wait_for_requests(Server *server, uint64_t count)
{
    TransportStats stats;
    do {
        sched_yield();
        transport_stats(server->transport, &stats);
    } while (stats.requests < count);
}
