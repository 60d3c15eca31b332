// How the fixture's client reaches its engine.

#include "connect.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <nng/nng.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel_local.h"
#include "client.h"
#include "harness.h"
#include "os/clock.h"
#include "reader.h"
#include "transport/transport.h"

static const char TOKEN[] = "a token for the tests, of 38 characters";

// A port that was free a moment ago.
static unsigned port_find(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(fd, (struct sockaddr *)&address, size), 0);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    close(fd);
    return ntohs(address.sin_port);
}

// A short name of the test's directory: its own may be longer than a socket's path can be.
static int directory_open(void)
{
    static int directory = -1;
    if (directory < 0) directory = open(test_dir(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(directory >= 0);
    return directory;
}

static bool is_direct(void)
{
    const char *name = getenv("TINE_TEST_CHANNEL");
    return name && strcmp(name, "direct") == 0;
}

void connect_prepare(Clock clock)
{
    if (!is_direct()) return;
    (void)directory_open();
    reader_start(clock);
}

static void connect_by_socket(Engine *engine, const char *channel, Transport **out_transport,
                              Tine **out_tine)
{
    static bool is_prepared = false;
    // NNG frees closed sockets some time later; what is left by now would look like a leak.
    if (!is_prepared) atexit(nng_fini);
    is_prepared = true;
    char path[64], tcp_url[64], url[128];
    snprintf(path, sizeof(path), "/proc/self/fd/%d/tine.sock", directory_open());
    snprintf(tcp_url, sizeof(tcp_url), "tcp://127.0.0.1:%u", port_find());
    bool is_tcp = strcmp(channel, "tcp") == 0;
    TransportOptions options = {.engine = engine, .socket_path = path};
    if (is_tcp) {
        options.tcp_url = tcp_url;
        options.tcp_token = slice_of(TOKEN);
    }
    ErrorDetail detail = {{0}};
    Error error = transport_start(&options, &detail, out_transport);
    if (error) printf("%s\n", detail.text);
    CHECK_EQ(error, ERROR_NONE);
    snprintf(url, sizeof(url), "%sipc://%s", strcmp(channel, "nng") == 0 ? "nng+" : "", path);
    TineOpenOptions open_options = {.token = is_tcp ? TOKEN : NULL, .wait_for_server = true};
    TineStatus status;
    int code = tine_open_with(is_tcp ? tcp_url : url, &open_options, &status, out_tine);
    if (code) printf("%s\n", status.message);
    CHECK_EQ(code, STATUS_OK);
    if (is_direct()) (*out_tine)->channel = reader_channel((*out_tine)->channel, path);
    (*out_tine)->makes_no_ids = true; // tests count the rows that an operation_id leaves
}

void connect_engine(Engine *engine, Transport **out_transport, Tine **out_tine)
{
    const char *name = getenv("TINE_TEST_CHANNEL");
    *out_transport = NULL;
    if (name && *name && strcmp(name, "local") != 0) {
        CHECK(strcmp(name, "sp") == 0 || strcmp(name, "nng") == 0 || strcmp(name, "tcp") == 0 ||
              is_direct());
        connect_by_socket(engine, name, out_transport, out_tine);
        return;
    }
    Channel *channel;
    CHECK_EQ(channel_local_borrow(engine, &channel), STATUS_OK);
    CHECK_EQ(tine_from_channel(channel, out_tine), STATUS_OK);
}

void disconnect_engine(Engine *engine, Transport *transport, Tine *tine)
{
    tine_close(tine);
    if (transport) {
        transport_stop_intake(transport);
        engine_stop_waiting(engine);
        CHECK(transport_drain(transport,
                              clock_monotonic_ns() + HARNESS_PATIENCE_MS * INT64_C(1000000)));
        transport_close(transport);
    }
    engine_close(engine);
    transport_free(transport);
}
