// The SP peer of the tests: connects, writes and reads frames with blocking calls.

#include "sp.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FRAME_TYPE = 1, ID_BYTES = 4, LENGTH_BYTES = 8, PAYLOAD_BYTES_MAX = 64 * 1024 * 1024 };

static const uint32_t REQUEST_ID_BIT = 0x80000000;

// False: nobody listens there.
static bool try_connect(const char *path, Sp *out)
{
    *out = (Sp){.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    CHECK(out->fd >= 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CHECK(strlen(path) < sizeof(address.sun_path));
    memcpy(address.sun_path, path, strlen(path));
    if (connect(out->fd, (struct sockaddr *)&address, sizeof(address)) == 0) return true;
    sp_close(out);
    return false;
}

Sp sp_connect(const char *path)
{
    Sp sp;
    CHECK(try_connect(path, &sp));
    return sp;
}

Sp sp_connect_tcp(uint16_t port)
{
    Sp sp = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .is_tcp = true};
    CHECK(sp.fd >= 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    CHECK_EQ(connect(sp.fd, (struct sockaddr *)&address, sizeof(address)), 0);
    int is_set = 1; // a frame is written in parts, each of which would wait for the one before
    CHECK_EQ(setsockopt(sp.fd, IPPROTO_TCP, TCP_NODELAY, &is_set, sizeof(is_set)), 0);
    return sp;
}

void sp_close(Sp *sp)
{
    if (sp->fd >= 0) close(sp->fd);
    sp->fd = -1;
}

bool sp_write(Sp sp, const void *bytes, size_t size)
{
    const uint8_t *rest = bytes;
    while (size > 0) {
        ssize_t sent = send(sp.fd, rest, size, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        rest += sent;
        size -= (size_t)sent;
    }
    return true;
}

static bool sp_read(Sp sp, void *bytes, size_t size)
{
    uint8_t *rest = bytes;
    while (size > 0) {
        ssize_t got = recv(sp.fd, rest, size, 0);
        if (got <= 0) return false;
        rest += got;
        size -= (size_t)got;
    }
    return true;
}

bool sp_hello(Sp sp, unsigned protocol)
{
    uint8_t hello[PEER_HELLO_BYTES] = {0, 'S', 'P', 0, 0, (uint8_t)protocol, 0, 0};
    return sp_write(sp, hello, sizeof(hello));
}

int sp_read_hello(Sp sp)
{
    uint8_t hello[PEER_HELLO_BYTES];
    if (!sp_read(sp, hello, sizeof(hello))) return -1;
    CHECK(hello[0] == 0 && hello[1] == 'S' && hello[2] == 'P' && hello[3] == 0);
    return hello[4] << 8 | hello[5];
}

static Sp shake(Sp sp)
{
    CHECK(sp_hello(sp, SP_REQ));
    CHECK_EQ(sp_read_hello(sp), SP_REP);
    return sp;
}

Sp sp_open(const char *path)
{
    return shake(sp_connect(path));
}

Sp sp_open_when_there(const char *path)
{
    Sp sp;
    while (!try_connect(path, &sp))
        sched_yield();
    return shake(sp);
}

Sp sp_open_tcp(uint16_t port)
{
    return shake(sp_connect_tcp(port));
}

static void put_u64(uint8_t *out, uint64_t value)
{
    for (int i = 0; i < LENGTH_BYTES; i++)
        out[i] = (uint8_t)(value >> (56 - 8 * i));
}

bool sp_send(Sp sp, uint32_t id, Slice request)
{
    uint8_t head[1 + LENGTH_BYTES + ID_BYTES] = {FRAME_TYPE};
    put_u64(head + 1, request.size + ID_BYTES);
    id |= REQUEST_ID_BIT;
    for (int i = 0; i < ID_BYTES; i++)
        head[1 + LENGTH_BYTES + i] = (uint8_t)(id >> (24 - 8 * i));
    size_t skipped = sp.is_tcp ? 1 : 0;
    return sp_write(sp, head + skipped, sizeof(head) - skipped) &&
           sp_write(sp, request.bytes, request.size);
}

bool sp_receive_frame(Sp sp, Slice *out_payload)
{
    uint8_t head[1 + LENGTH_BYTES] = {FRAME_TYPE};
    size_t skipped = sp.is_tcp ? 1 : 0;
    if (!sp_read(sp, head + skipped, sizeof(head) - skipped)) return false;
    CHECK_EQ(head[0], FRAME_TYPE);
    uint64_t size = 0;
    for (int i = 0; i < LENGTH_BYTES; i++)
        size = size << 8 | head[1 + i];
    CHECK(size <= PAYLOAD_BYTES_MAX);
    uint8_t *bytes = malloc(size + 1);
    CHECK(bytes != NULL);
    if (!sp_read(sp, bytes, size)) {
        free(bytes);
        return false;
    }
    *out_payload = slice(bytes, size);
    return true;
}

bool sp_receive(Sp sp, uint32_t *out_id, Slice *out_reply)
{
    Slice payload;
    if (!sp_receive_frame(sp, &payload)) return false;
    CHECK(payload.size >= ID_BYTES);
    uint8_t *bytes = (uint8_t *)(uintptr_t)payload.bytes;
    *out_id = 0;
    for (int i = 0; i < ID_BYTES; i++)
        *out_id = *out_id << 8 | bytes[i];
    CHECK(*out_id & REQUEST_ID_BIT);
    *out_id &= ~REQUEST_ID_BIT;
    memmove(bytes, bytes + ID_BYTES, payload.size - ID_BYTES);
    *out_reply = slice(bytes, payload.size - ID_BYTES);
    return true;
}

void sp_free(Slice *payload)
{
    free((void *)(uintptr_t)payload->bytes);
    *payload = (Slice){NULL, 0};
}

bool sp_is_readable(Sp sp)
{
    struct pollfd wanted = {.fd = sp.fd, .events = POLLIN};
    return poll(&wanted, 1, 0) == 1;
}

bool sp_is_closed(Sp sp)
{
    struct pollfd wanted = {.fd = sp.fd, .events = POLLRDHUP};
    return poll(&wanted, 1, 0) == 1;
}

void sp_wait_closed(Sp sp)
{
    struct pollfd wanted = {.fd = sp.fd, .events = POLLRDHUP}; // POLLHUP and POLLERR come unasked
    while (poll(&wanted, 1, -1) != 1)
        continue;
}

Slice sp_call(Sp sp, Slice request)
{
    uint32_t id;
    Slice reply;
    CHECK(sp_send(sp, 1, request));
    CHECK(sp_receive(sp, &id, &reply));
    CHECK_EQ(id, 1);
    return reply;
}
