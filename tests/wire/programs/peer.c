// wire_peer: a server on a Unix socket that speaks SP as no good server does, or with canned
// replies. For the tests of the clients of all languages.
//
//     wire_peer --socket PATH --mode MODE
//
// It prints "ready" when it listens, and ends with SIGTERM, or when its standard input, if that is
// a pipe, ends. In mode `status` the first field of a request's body, if it is text, says what is
// answered:
//
//     code:13:SOME_REASON:some message    that status
//     silent                              nothing, ever
//     delay:250                           OK, after so many milliseconds
//     anything else                       OK, with an empty body
//
// One thread, one poll: replies that are due later wait in a list.

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buffer.h"
#include "os/clock.h"
#include "wire/wire.h"

enum {
    CONNECTIONS_MAX = 256,
    LATE_MAX = 4096,
    HELLO_BYTES = 8,
    LENGTH_AT = 1,
    HEADER_BYTES = 9,
    ID_BYTES = 4,
    PAYLOAD_BYTES_MAX = 16 * 1024 * 1024 + 64 * 1024, // what a client must take
    TEXT_BYTES_MAX = 1024,
    FLOOD_BYTES = 64 * 1024,
    NOISE_BYTES = 64,
};

typedef struct Connection {
    int fd;
    uint64_t serial; // no other connection has had it
    bool has_hello;  // the client's was taken from `in`
    bool is_ending;  // when `out` is sent
    Buffer in, out;  // owned
} Connection;

// An OK that waits for its time.
typedef struct Late {
    uint64_t serial;
    uint32_t id;
    int64_t due_ns;
} Late;

// What it says when somebody connects, and to a request; and when it hangs up.
typedef struct Mode {
    const char *name;
    enum { HELLO_REP, HELLO_PUB, HELLO_HALF, HELLO_NOISE, HELLO_NONE } hello;
    void (*answer)(Connection *connection, uint32_t id, Slice request); // NULL: nothing
    bool ends_at_once, ends_after_hello, ends_on_request, ends_after_answer;
    bool floods;
} Mode;

static const Mode *mode;
static Connection connections[CONNECTIONS_MAX];
static size_t connection_count;
static uint64_t serials;
static Late late[LATE_MAX];
static size_t late_count;

static const Mode *mode_named(const char *name);
static void serve(int listening, int signals);
static void accept_one(int listening);
static bool connection_serve(Connection *connection, short events);
static bool requests_take(Connection *connection);
static void late_send(void);

static void fail(const char *what)
{
    fprintf(stderr, "wire_peer: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        fail(path);
    }
    memcpy(address.sun_path, path, strlen(path));
    unlink(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(fd, CONNECTIONS_MAX) != 0) {
        fail(path);
    }
    return fd;
}

int main(int argument_count, char **arguments)
{
    const char *path = NULL, *name = NULL;
    for (int i = 1; i + 1 < argument_count; i += 2) {
        if (strcmp(arguments[i], "--socket") == 0) path = arguments[i + 1];
        if (strcmp(arguments[i], "--mode") == 0) name = arguments[i + 1];
    }
    if (!path || !name || argument_count != 5) {
        fprintf(stderr, "usage: wire_peer --socket PATH --mode MODE\n");
        return 2;
    }
    mode = mode_named(name);
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigprocmask(SIG_BLOCK, &ending, NULL);
    int signals = signalfd(-1, &ending, SFD_CLOEXEC);
    if (signals < 0) fail("signalfd");
    int listening = listen_at(path);
    puts("ready");
    fflush(stdout);
    serve(listening, signals);
    unlink(path);
    return 0;
}

// /dev/null is at its end from the beginning, and says nothing by it.
static bool input_is_pipe(void)
{
    struct stat about;
    return fstat(STDIN_FILENO, &about) == 0 && (S_ISFIFO(about.st_mode) || S_ISSOCK(about.st_mode));
}

static int wait_ms(void)
{
    int64_t due_ns = INT64_MAX;
    for (size_t i = 0; i < late_count; i++) {
        if (late[i].due_ns < due_ns) due_ns = late[i].due_ns;
    }
    if (due_ns == INT64_MAX) return -1;
    int64_t left_ns = due_ns - clock_monotonic_ns();
    return left_ns > 0 ? (int)(left_ns / 1000000 + 1) : 0;
}

static bool input_has_ended(void)
{
    char byte;
    return read(STDIN_FILENO, &byte, 1) == 0;
}

static void serve(int listening, int signals)
{
    enum { OTHERS = 3 };
    int input = input_is_pipe() ? STDIN_FILENO : -1;
    for (;;) {
        struct pollfd wanted[OTHERS + CONNECTIONS_MAX] = {
            {.fd = connection_count < CONNECTIONS_MAX ? listening : -1, .events = POLLIN},
            {.fd = signals, .events = POLLIN},
            {.fd = input, .events = POLLIN},
        };
        size_t count = connection_count;
        for (size_t i = 0; i < count; i++) {
            bool has_more = buffer_size(&connections[i].out) > 0;
            wanted[OTHERS + i] = (struct pollfd){
                .fd = connections[i].fd,
                .events = has_more ? POLLIN | POLLOUT : POLLIN,
            };
        }
        if (poll(wanted, OTHERS + count, wait_ms()) < 0 && errno != EINTR) fail("poll");
        if (wanted[1].revents || (wanted[2].revents && input_has_ended())) return;
        late_send();
        for (size_t i = count; i-- > 0;) {
            if (connection_serve(&connections[i], wanted[OTHERS + i].revents)) continue;
            close(connections[i].fd);
            buffer_free(&connections[i].in);
            buffer_free(&connections[i].out);
            connections[i] = connections[--connection_count];
        }
        if (wanted[0].revents) accept_one(listening);
    }
}

static void say(Connection *connection, const void *bytes, size_t size)
{
    Error error = buffer_append(&connection->out, slice(bytes, size));
    assert(!error);
}

static void accept_one(int listening)
{
    int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    if (mode->ends_at_once) {
        close(fd);
        return;
    }
    Connection *connection = &connections[connection_count++];
    *connection = (Connection){.fd = fd, .serial = ++serials};
    uint8_t noise[NOISE_BYTES];
    for (size_t i = 0; i < NOISE_BYTES; i++)
        noise[i] = (uint8_t)(i * 37 + 11);
    switch (mode->hello) {
    case HELLO_REP: say(connection, "\0SP\0\0\x31\0\0", HELLO_BYTES); break;
    case HELLO_PUB: say(connection, "\0SP\0\0\x20\0\0", HELLO_BYTES); break;
    case HELLO_HALF: say(connection, "\0SP\0", HELLO_BYTES / 2); break;
    case HELLO_NOISE: say(connection, noise, NOISE_BYTES); break;
    case HELLO_NONE: break;
    }
}

// False: it has ended.
static bool receive(Connection *connection)
{
    uint8_t *room;
    Error error = buffer_reserve(&connection->in, FLOOD_BYTES, &room);
    assert(!error);
    ssize_t count = recv(connection->fd, room, FLOOD_BYTES, 0);
    if (count <= 0) return count < 0 && (errno == EAGAIN || errno == EINTR);
    buffer_grow(&connection->in, (size_t)count);
    return requests_take(connection);
}

static bool send_some(Connection *connection)
{
    Slice out = buffer_slice(&connection->out);
    while (out.size > 0) {
        ssize_t count = send(connection->fd, out.bytes, out.size, MSG_NOSIGNAL);
        if (count < 0 && errno == EAGAIN) break;
        if (count <= 0) return false;
        out = slice_skip(out, (size_t)count);
    }
    connection->out.start = connection->out.end - out.size;
    if (out.size == 0) buffer_truncate(&connection->out, 0);
    return out.size > 0 || !connection->is_ending;
}

static void frame_say(Connection *connection, uint64_t length, Slice payload)
{
    uint8_t header[HEADER_BYTES] = {1};
    for (size_t i = LENGTH_AT; i < HEADER_BYTES; i++)
        header[i] = (uint8_t)(length >> (64 - 8 * i));
    say(connection, header, HEADER_BYTES);
    say(connection, payload.bytes, payload.size);
}

static void id_write(uint8_t out[ID_BYTES], uint32_t id)
{
    for (size_t i = 0; i < ID_BYTES; i++)
        out[i] = (uint8_t)(id >> (24 - 8 * i));
}

static void reply_say(Connection *connection, uint32_t id, Slice response)
{
    uint8_t payload[ID_BYTES + 2 * TEXT_BYTES_MAX];
    assert(response.size <= sizeof(payload) - ID_BYTES);
    id_write(payload, id);
    if (response.size > 0) memcpy(payload + ID_BYTES, response.bytes, response.size);
    frame_say(connection, ID_BYTES + response.size, slice(payload, ID_BYTES + response.size));
}

static void ok_say(Connection *connection, uint32_t id)
{
    reply_say(connection, id, slice("\x7a\0", 2));
}

static bool connection_serve(Connection *connection, short events)
{
    if (events & (POLLERR | POLLNVAL)) return false;
    if (events & (POLLIN | POLLHUP) && !receive(connection)) return false;
    if (mode->floods && buffer_size(&connection->out) < FLOOD_BYTES) {
        for (int i = 0; i < 1000; i++)
            ok_say(connection, 0xfffffff0);
    }
    return send_some(connection);
}

// Takes whole frames out of what came. False: the connection is over.
static bool requests_take(Connection *connection)
{
    Buffer *in = &connection->in;
    if (!connection->has_hello) {
        if (buffer_size(in) < HELLO_BYTES) return true;
        in->start += HELLO_BYTES;
        connection->has_hello = true;
        if (mode->ends_after_hello) connection->is_ending = true;
    }
    for (;;) {
        Slice bytes = buffer_slice(in);
        if (bytes.size < HEADER_BYTES + ID_BYTES) break;
        uint64_t length = 0;
        for (size_t i = LENGTH_AT; i < HEADER_BYTES; i++)
            length = length << 8 | bytes.bytes[i];
        if (bytes.bytes[0] != 1 || length < ID_BYTES || length > PAYLOAD_BYTES_MAX) return false;
        if (bytes.size < HEADER_BYTES + length) break;
        uint32_t id = 0;
        for (size_t i = 0; i < ID_BYTES; i++)
            id = id << 8 | bytes.bytes[HEADER_BYTES + i];
        in->start += HEADER_BYTES + length;
        Slice request = slice(bytes.bytes + HEADER_BYTES + ID_BYTES, length - ID_BYTES);
        if (mode->ends_on_request) return false;
        if (mode->answer) mode->answer(connection, id, request);
        if (mode->ends_after_answer) connection->is_ending = true;
    }
    if (buffer_size(in) == 0) buffer_truncate(in, 0);
    return true;
}

static void status_say(Connection *connection, uint32_t id, char *text)
{
    char *rest = text;
    (void)strsep(&rest, ":"); // "code"
    const char *code = strsep(&rest, ":"), *reason = strsep(&rest, ":");
    uint8_t status[TEXT_BYTES_MAX + 32], response[TEXT_BYTES_MAX + 64];
    size_t size = wire_put_varint_field(status, 1, strtoull(code ? code : "2", NULL, 10));
    if (rest) size += wire_put_bytes_field(status + size, 2, slice_of(rest));
    if (reason) size += wire_put_bytes_field(status + size, 3, slice_of(reason));
    size = wire_put_bytes_field(response, 1, slice(status, size));
    reply_say(connection, id, slice(response, size));
}

static void answer_as_asked(Connection *connection, uint32_t id, Slice request)
{
    char text[TEXT_BYTES_MAX + 1] = "";
    WireField body, first;
    if (wire_find(request, 15, &body) && wire_find(body.bytes, 1, &first) &&
        first.type == WIRE_BYTES && first.bytes.size <= TEXT_BYTES_MAX) {
        memcpy(text, first.bytes.bytes, first.bytes.size);
    }
    if (strncmp(text, "code:", 5) == 0) {
        status_say(connection, id, text);
    } else if (strncmp(text, "delay:", 6) == 0) {
        int64_t due_ns = clock_monotonic_ns() + strtoll(text + 6, NULL, 10) * 1000000;
        if (late_count < LATE_MAX) late[late_count++] = (Late){connection->serial, id, due_ns};
    } else if (strcmp(text, "silent") != 0) {
        ok_say(connection, id);
    }
}

static void late_send(void)
{
    int64_t now_ns = clock_monotonic_ns();
    for (size_t i = 0; i < late_count;) {
        if (late[i].due_ns > now_ns) {
            i++;
            continue;
        }
        for (size_t j = 0; j < connection_count; j++) {
            if (connections[j].serial == late[i].serial) ok_say(&connections[j], late[i].id);
        }
        late[i] = late[--late_count];
    }
}

// A frame of a length, and the request's id with noise behind it as far as it goes.
static void noise_say(Connection *connection, uint32_t id, uint64_t length)
{
    uint8_t payload[ID_BYTES + NOISE_BYTES];
    id_write(payload, id);
    memset(payload + ID_BYTES, 0xff, NOISE_BYTES);
    size_t size = length < sizeof(payload) ? (size_t)length : sizeof(payload);
    frame_say(connection, length, slice(payload, size));
}

static void answer_half(Connection *connection, uint32_t id, Slice request)
{
    (void)request;
    noise_say(connection, id, 2 * NOISE_BYTES);
}

static void answer_4_gib(Connection *connection, uint32_t id, Slice request)
{
    (void)request;
    noise_say(connection, id, UINT64_C(1) << 32);
}

static void answer_2_63(Connection *connection, uint32_t id, Slice request)
{
    (void)request;
    noise_say(connection, id, UINT64_C(1) << 63);
}

static void answer_over(Connection *connection, uint32_t id, Slice request)
{
    (void)request;
    noise_say(connection, id, PAYLOAD_BYTES_MAX + 1);
}

static void answer_noise(Connection *connection, uint32_t id, Slice request)
{
    (void)request;
    noise_say(connection, id, ID_BYTES + NOISE_BYTES);
}

static void answer_no_id(Connection *connection, uint32_t id, Slice request)
{
    (void)request;
    noise_say(connection, id, 2);
}

static void answer_another(Connection *connection, uint32_t id, Slice request)
{
    (void)request;
    ok_say(connection, id ^ 0x00123456);
}

static void answer_twice(Connection *connection, uint32_t id, Slice request)
{
    (void)request;
    ok_say(connection, id);
    ok_say(connection, id);
}

static const Mode MODES[] = {
    {.name = "status", .answer = answer_as_asked},
    {.name = "garbage", .hello = HELLO_NOISE},
    {.name = "bad-hello", .hello = HELLO_PUB},
    {.name = "half-hello", .hello = HELLO_HALF},
    {.name = "silent", .hello = HELLO_NONE},
    {.name = "hello-then-silent"},
    {.name = "hang-up", .ends_at_once = true},
    {.name = "hang-up-after-hello", .ends_after_hello = true},
    {.name = "hang-up-on-request", .ends_on_request = true},
    {.name = "half-frame", .answer = answer_half},
    {.name = "half-frame-close", .answer = answer_half, .ends_after_answer = true},
    {.name = "length-bomb", .answer = answer_4_gib},
    {.name = "length-huge", .answer = answer_2_63},
    {.name = "length-over", .answer = answer_over},
    {.name = "wrong-id", .answer = answer_another},
    {.name = "no-id", .answer = answer_no_id},
    {.name = "garbage-reply", .answer = answer_noise},
    {.name = "twice", .answer = answer_twice},
    {.name = "flood", .floods = true},
};

static const Mode *mode_named(const char *name)
{
    enum { MODE_COUNT = sizeof(MODES) / sizeof(*MODES) };
    for (size_t i = 0; i < MODE_COUNT; i++) {
        if (strcmp(MODES[i].name, name) == 0) return &MODES[i];
    }
    fprintf(stderr, "wire_peer: no mode '%s'; there are:", name);
    for (size_t i = 0; i < MODE_COUNT; i++)
        fprintf(stderr, " %s", MODES[i].name);
    fputc('\n', stderr);
    exit(2);
}
