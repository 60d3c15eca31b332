// Lingering. NNG tells nobody what a connection still has to write, so the kernel is asked: what
// waits here waits because the socket is full. NNG writes on at once when it no longer is, so one
// that has room several times in a row has got all.

#include "transport/linger.h"

#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"

enum { PAUSE_MS = 2, ROOM_LOOKS = 4 };

// Whether a descriptor is a connection that came in at these places.
static bool is_connection(int descriptor, const LingerPlaces *places)
{
    union {
        struct sockaddr any;
        struct sockaddr_un un;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } address = {.un = {.sun_family = AF_UNSPEC}};
    int is_listening = 0;
    socklen_t size = sizeof(is_listening);
    if (getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) != 0) return false;
    size = sizeof(address);
    if (is_listening || getsockname(descriptor, &address.any, &size) != 0) return false;
    switch (address.any.sa_family) {
    case AF_UNIX:
        return strncmp(address.un.sun_path, places->socket_path, sizeof(address.un.sun_path)) == 0;
    case AF_INET: return places->tcp_port && address.in.sin_port == places->tcp_port;
    case AF_INET6: return places->tcp_port && address.in6.sin6_port == places->tcp_port;
    default: return false;
    }
}

static bool has_room(int descriptor)
{
    struct pollfd wanted = {.fd = descriptor, .events = POLLOUT};
    return poll(&wanted, 1, 0) != 0; // one that is gone has room for anything
}

static bool all_have_room(const LingerPlaces *places)
{
    DIR *directory = opendir("/proc/self/fd");
    if (!directory) return true; // nothing can be known
    bool is_room = true;
    for (struct dirent *entry; is_room && (entry = readdir(directory));) {
        char *end;
        int descriptor = (int)strtol(entry->d_name, &end, 10);
        if (*end || !is_connection(descriptor, places)) continue;
        is_room = has_room(descriptor);
    }
    closedir(directory);
    return is_room;
}

bool linger(const LingerPlaces *places, int64_t until_ns)
{
    for (int looks = 0; looks < ROOM_LOOKS;) {
        looks = all_have_room(places) ? looks + 1 : 0;
        if (clock_monotonic_ns() >= until_ns) return looks > 0;
        if (looks < ROOM_LOOKS) (void)poll(NULL, 0, PAUSE_MS);
    }
    return true;
}
