// Paths of sockets.

#include "os/socket_path.h"

#include <string.h>

#include "harness.h"

static const char *events_of(const char *path)
{
    static char events[SOCKET_PATH_BYTES_MAX + 1];
    return socket_path_of_events(path, events) ? events : NULL;
}

TEST(socket_path_of_events_is_beside_the_requests)
{
    CHECK_STR(events_of("/run/user/1000/tine/tine.sock"), "/run/user/1000/tine/tine.events");
    CHECK_STR(events_of("/tmp/s"), "/tmp/s.events");
    CHECK_STR(events_of("/tmp/a.sock.d/s"), "/tmp/a.sock.d/s.events");
    CHECK_STR(events_of("/tmp/a.sock.sock"), "/tmp/a.sock.events");
    CHECK_STR(events_of("sock"), "sock.events");
}

TEST(socket_path_of_events_holds_the_kernels_limit)
{
    char path[SOCKET_PATH_BYTES_MAX + 1];
    memset(path, 'p', sizeof(path));
    path[0] = '/';
    path[SOCKET_PATH_BYTES_MAX - strlen(".events")] = '\0';
    CHECK_EQ(strlen(events_of(path)), SOCKET_PATH_BYTES_MAX);
    path[SOCKET_PATH_BYTES_MAX - strlen(".events")] = 'p';
    path[SOCKET_PATH_BYTES_MAX - strlen(".events") + 1] = '\0';
    CHECK(events_of(path) == NULL);

    // One of 107 bytes for requests has none for events: its ending is two bytes shorter.
    memset(path, 'p', sizeof(path));
    memcpy(path + SOCKET_PATH_BYTES_MAX - strlen(".sock"), ".sock", sizeof(".sock"));
    CHECK(events_of(path) == NULL);
    memmove(path, path + 2, sizeof(path) - 2);
    CHECK_EQ(strlen(events_of(path)), SOCKET_PATH_BYTES_MAX);
}
