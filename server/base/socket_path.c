// Paths of sockets.

#include "base/socket_path.h"

#include <stdio.h>
#include <string.h>

bool socket_path_of_events(const char *path, char out[SOCKET_PATH_BYTES_MAX + 1])
{
    static const char ENDING[] = ".sock", EVENTS[] = ".events";
    size_t size = strlen(path), ending_size = strlen(ENDING);
    if (size >= ending_size && strcmp(path + size - ending_size, ENDING) == 0) size -= ending_size;
    if (size + strlen(EVENTS) > SOCKET_PATH_BYTES_MAX) return false;
    snprintf(out, SOCKET_PATH_BYTES_MAX + 1, "%.*s%s", (int)size, path, EVENTS);
    return true;
}
