// When a link connects again after an attempt that failed.

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "os/clock.h"
#include "sp_link.h"
#include "steps.h"
#include "wire_server.h"

enum { MS = 1000000 };

static void link_freep(SpLink **link)
{
    sp_link_free(*link);
}

// Connects until so many attempts have failed.
static void fail(SpLink *link, unsigned attempts)
{
    ChannelCall call = {.deadline_ns = INT64_MAX};
    pthread_mutex_lock(&link->mutex);
    while (link->attempts < attempts)
        CHECK_EQ(sp_link_connect(link, &call, NULL), STATUS_UNAVAILABLE);
    pthread_mutex_unlock(&link->mutex);
}

// The next attempt may follow within `ms`.
static void next_is_within(const SpLink *link, int64_t ms)
{
    CHECK(link->connect_after_ns <= clock_monotonic_ns() + ms * MS);
}

TEST(a_socket_that_is_not_there_is_tried_again_after_1_ms)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/s", test_dir());
    CLEANUP(link_freep) SpLink *link = sp_link_make(path, NULL);
    fail(link, 1);
    next_is_within(link, 1);
    fail(link, 4);
    next_is_within(link, 8);
}

TEST(a_socket_that_nobody_listens_on_is_tried_again_after_1_ms)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int size = snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", test_dir());
    CHECK(size < (int)sizeof(address.sun_path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
    CLEANUP(link_freep) SpLink *link = sp_link_make(address.sun_path, NULL);
    fail(link, 1);
    next_is_within(link, 1);
}

static void hang_up(WireConnection *connection)
{
    (void)connection;
}

TEST(a_server_that_hangs_up_is_tried_again_after_50_ms)
{
    CLEANUP(wire_server_stop) WireServer *server = wire_server_start(hang_up, NULL);
    CLEANUP(link_freep)
    SpLink *link = sp_link_make(wire_server_url(server) + strlen("ipc://"), NULL);
    int64_t before_ns = clock_monotonic_ns();
    fail(link, 1);
    CHECK(link->connect_after_ns >= before_ns + 50 * MS);
}
