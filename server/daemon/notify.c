// Like sd_notify, without its library: one datagram to a socket that the environment names.

#include "daemon/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void notify_send(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(address.sun_path)) {
        return;
    }
    size_t size = strlen(path);
    memcpy(address.sun_path, path, size);
    if (path[0] == '@') address.sun_path[0] = '\0'; // an abstract socket
    int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return;
    socklen_t address_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
    (void)sendto(descriptor, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address,
                 address_bytes);
    close(descriptor);
}
