// tined's event socket: it comes and goes with the daemon.

#include <signal.h>
#include <sys/stat.h>

#include "os/socket_path.h"
#include "process.h"

static Sp subscribe(const Tined *tined)
{
    char path[SOCKET_PATH_BYTES_MAX + 1];
    CHECK(socket_path_of_events(tined->socket, path));
    struct stat found;
    CHECK_EQ(stat(path, &found), 0);
    CHECK_EQ(found.st_mode & 0777, 0600);
    Sp sp = sp_connect(path);
    CHECK(sp_hello(sp, SP_SUB));
    CHECK_EQ(sp_read_hello(sp), SP_PUB);
    return sp;
}

static void expect_message(Sp sp, const char *topic)
{
    Slice message;
    CHECK(sp_receive_frame(sp, &message));
    CHECK(slice_starts_with(message, slice(topic, strlen(topic) + 1)));
    sp_free(&message);
}

static Slice request_broadcast(const char *type)
{
    BroadcastEventRequest request = BROADCAST_EVENT_REQUEST__INIT;
    request.type = (char *)(uintptr_t)type;
    return engine_request(METHOD_BROADCAST_EVENT, &request, NULL, 0);
}

static void be_heard(const Tined *tined, Sp subscriber)
{
    expect_message(subscriber, "heartbeat");
    Sp sp = sp_open(tined->socket);
    call_expect(sp, request_broadcast("mine"), STATUS_OK);
    expect_message(subscriber, "global/mine");
    sp_close(&sp);
}

TEST(events_go_out_beside_the_socket_until_the_daemon_stops)
{
    CLEANUP(tined_close) Tined tined;
    tined_place(&tined, "d");
    tined_start(&tined, NULL);
    Sp subscriber = subscribe(&tined);
    be_heard(&tined, subscriber);
    CHECK_EQ(tined_stop(&tined, SIGTERM), 0);
    Slice message;
    CHECK(!sp_receive_frame(subscriber, &message));
    sp_close(&subscriber);
    char path[SOCKET_PATH_BYTES_MAX + 1];
    CHECK(socket_path_of_events(tined.socket, path));
    CHECK(!file_exists(path));
}

TEST(an_event_socket_that_a_killed_daemon_left_is_replaced)
{
    CLEANUP(tined_close) Tined tined;
    tined_place(&tined, "d");
    tined_start(&tined, NULL);
    CHECK_EQ(tined_stop(&tined, SIGKILL), -SIGKILL);
    tined_start(&tined, NULL);
    Sp subscriber = subscribe(&tined);
    be_heard(&tined, subscriber);
    sp_close(&subscriber);
    CHECK_EQ(tined_stop(&tined, SIGTERM), 0);
}
