// The server by hand.

#include "wire_server.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "wire/wire.h"

enum { CONNECTIONS_MAX = 512, BLOCKS_MAX = 1 << 18, HEADER_BYTES = 13 };

struct WireServer {
    void (*script)(WireConnection *connection);
    void *context;
    int listener;
    char path[108];
    char url[128];
    pthread_t acceptor;
    atomic_uint count;

    pthread_mutex_t mutex; // guards all below
    bool is_stopping;
    pthread_t threads[CONNECTIONS_MAX];
    WireConnection connections[CONNECTIONS_MAX];
    void **blocks;
    size_t block_count;
};

static void *keep(WireServer *server, size_t size)
{
    void *block = calloc(1, size + 1);
    CHECK(block != NULL);
    pthread_mutex_lock(&server->mutex);
    CHECK(server->block_count < BLOCKS_MAX);
    server->blocks[server->block_count++] = block;
    pthread_mutex_unlock(&server->mutex);
    return block;
}

static void *connection_main(void *context)
{
    WireConnection *connection = context;
    WireServer *server = connection->server;
    server->script(connection);
    pthread_mutex_lock(&server->mutex);
    close(connection->fd);
    connection->fd = -1;
    pthread_mutex_unlock(&server->mutex);
    return NULL;
}

static void *acceptor_main(void *context)
{
    WireServer *server = context;
    for (;;) {
        int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) return NULL;
        pthread_mutex_lock(&server->mutex);
        unsigned index = atomic_load(&server->count);
        CHECK(index < CONNECTIONS_MAX);
        if (server->is_stopping) {
            close(fd);
        } else {
            WireConnection *connection = &server->connections[index];
            *connection = (WireConnection){server, fd, index, server->context};
            atomic_store(&server->count, index + 1); // before the client can have seen anything
            CHECK_EQ(pthread_create(&server->threads[index], NULL, connection_main, connection), 0);
        }
        pthread_mutex_unlock(&server->mutex);
    }
}

WireServer *wire_server_start(void (*script)(WireConnection *connection), void *context)
{
    static atomic_uint servers;
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
    snprintf(path, sizeof(path), "%s/%u", test_dir(), atomic_fetch_add(&servers, 1));
    return wire_server_start_at(path, script, context);
}

WireServer *wire_server_start_at(const char *path, void (*script)(WireConnection *connection),
                                 void *context)
{
    WireServer *server = calloc(1, sizeof(WireServer));
    CHECK(server != NULL);
    server->script = script;
    server->context = context;
    server->blocks = calloc(BLOCKS_MAX, sizeof(void *));
    CHECK(server->blocks != NULL);
    pthread_mutex_init(&server->mutex, NULL);
    CHECK(snprintf(server->path, sizeof(server->path), "%s", path) < (int)sizeof(server->path));
    snprintf(server->url, sizeof(server->url), "ipc://%s", server->path);
    server->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, server->path, sizeof(server->path));
    CHECK_EQ(bind(server->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    CHECK_EQ(listen(server->listener, 128), 0);
    CHECK_EQ(pthread_create(&server->acceptor, NULL, acceptor_main, server), 0);
    return server;
}

void wire_server_stop(WireServer **pointer)
{
    WireServer *server = *pointer;
    if (!server) return;
    pthread_mutex_lock(&server->mutex);
    server->is_stopping = true;
    unsigned count = atomic_load(&server->count);
    for (unsigned i = 0; i < count; i++) {
        if (server->connections[i].fd >= 0) shutdown(server->connections[i].fd, SHUT_RDWR);
    }
    pthread_mutex_unlock(&server->mutex);
    shutdown(server->listener, SHUT_RDWR);
    pthread_join(server->acceptor, NULL);
    close(server->listener);
    for (unsigned i = 0; i < count; i++)
        pthread_join(server->threads[i], NULL);
    for (size_t i = 0; i < server->block_count; i++)
        free(server->blocks[i]);
    free(server->blocks);
    pthread_mutex_destroy(&server->mutex);
    free(server);
    *pointer = NULL;
}

const char *wire_server_url(const WireServer *server)
{
    return server->url;
}

unsigned wire_server_connections(WireServer *server)
{
    return atomic_load(&server->count);
}

void wire_send(WireConnection *connection, const void *bytes, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(connection->fd, bytes, size, MSG_NOSIGNAL);
        if (sent < 0) return;
        bytes = (const uint8_t *)bytes + sent;
        size -= (size_t)sent;
    }
}

bool wire_receive(WireConnection *connection, void *bytes, size_t size)
{
    while (size > 0) {
        ssize_t got = recv(connection->fd, bytes, size, MSG_WAITALL);
        if (got <= 0) return false;
        bytes = (uint8_t *)bytes + got;
        size -= (size_t)got;
    }
    return true;
}

bool wire_hears_within(WireConnection *connection, int ms)
{
    struct pollfd wanted = {.fd = connection->fd, .events = POLLIN};
    return poll(&wanted, 1, ms) > 0;
}

void wire_expect_end(WireConnection *connection)
{
    uint8_t byte;
    CHECK(!wire_receive(connection, &byte, 1));
}

static bool hello(WireConnection *connection, uint8_t our_protocol, uint8_t their_protocol)
{
    const uint8_t ours[8] = {0, 'S', 'P', 0, 0, our_protocol, 0, 0};
    const uint8_t theirs[8] = {0, 'S', 'P', 0, 0, their_protocol, 0, 0};
    uint8_t bytes[8];
    wire_send(connection, ours, sizeof(ours));
    if (!wire_receive(connection, bytes, sizeof(bytes))) return false; // it has gone again
    CHECK_BYTES(slice(bytes, 8), slice(theirs, 8));
    return true;
}

void wire_hello(WireConnection *connection)
{
    (void)hello(connection, 0x31, 0x30);
}

bool wire_hello_pub(WireConnection *connection)
{
    return hello(connection, 0x20, 0x21);
}

static const char *text_of(WireServer *server, Slice message, uint32_t field_number)
{
    WireField field;
    if (!wire_find(message, field_number, &field) || field.type != WIRE_BYTES) return "";
    char *text = keep(server, field.bytes.size);
    memcpy(text, field.bytes.bytes, field.bytes.size);
    return text;
}

bool wire_next_request(WireConnection *connection, WireRequest *out)
{
    uint8_t header[HEADER_BYTES];
    if (!wire_receive(connection, header, sizeof(header))) return false;
    CHECK_EQ(header[0], 1);
    uint64_t length = 0;
    for (int i = 1; i < 9; i++)
        length = length << 8 | header[i];
    CHECK(length >= 4 && length < (64 << 20));
    uint32_t id = 0;
    for (int i = 9; i < 13; i++)
        id = id << 8 | header[i];
    CHECK(id & 0x80000000);
    uint8_t *bytes = keep(connection->server, length - 4);
    if (!wire_receive(connection, bytes, length - 4)) return false;

    Slice request = slice(bytes, length - 4);
    WireField body = {.number = 15}, timeout;
    (void)wire_find(request, 15, &body); // one of no bytes is not said
    bool has_timeout = wire_find(request, 3, &timeout);
    *out = (WireRequest){
        .id = id,
        .bytes = bytes,
        .size = length - 4,
        .method = text_of(connection->server, request, 1),
        .operation_id = text_of(connection->server, request, 2),
        .session_id = text_of(connection->server, body.bytes, 1),
        .timeout_ms = has_timeout ? (int64_t)timeout.value : 0,
    };
    return true;
}

void wire_reply(WireConnection *connection, uint32_t id, Slice response)
{
    uint8_t header[HEADER_BYTES] = {1};
    uint64_t length = response.size + 4;
    for (int i = 0; i < 8; i++)
        header[1 + i] = (uint8_t)(length >> (56 - 8 * i));
    for (int i = 0; i < 4; i++)
        header[9 + i] = (uint8_t)(id >> (24 - 8 * i));
    wire_send(connection, header, sizeof(header));
    wire_send(connection, response.bytes, response.size);
}

static void reply_body(WireConnection *connection, uint32_t id, Slice body)
{
    Buffer response = {.bytes = NULL};
    CHECK_EQ(buffer_reset(&response, 0), ERROR_NONE);
    CHECK_EQ(wire_append_bytes(&response, 15, body), ERROR_NONE);
    wire_reply(connection, id, buffer_slice(&response));
    buffer_free(&response);
}

void wire_reply_text(WireConnection *connection, uint32_t id, const char *text)
{
    Buffer body = {.bytes = NULL};
    CHECK_EQ(buffer_reset(&body, 0), ERROR_NONE);
    CHECK_EQ(wire_append_bytes(&body, 1, slice_of(text)), ERROR_NONE);
    reply_body(connection, id, buffer_slice(&body));
    buffer_free(&body);
}

void wire_echo(WireConnection *connection, const WireRequest *request)
{
    wire_reply_text(connection, request->id, request->session_id);
}

void wire_reply_number(WireConnection *connection, uint32_t id, uint64_t number)
{
    uint8_t body[WIRE_TAG_BYTES_MAX + WIRE_VARINT_BYTES_MAX];
    reply_body(connection, id, slice(body, wire_put_varint_field(body, 1, number)));
}

void wire_reply_status(WireConnection *connection, uint32_t id, int code, const char *reason)
{
    uint8_t status[128], response[160];
    size_t size = wire_put_varint_field(status, 1, (uint64_t)code);
    size += wire_put_bytes_field(status + size, 2, slice_of("said by the server"));
    size += wire_put_bytes_field(status + size, 3, slice_of(reason));
    size = wire_put_bytes_field(response, 1, slice(status, size));
    wire_reply(connection, id, slice(response, size));
}
