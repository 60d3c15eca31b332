// Paths of sockets.

#include "os/socket_path.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool socket_path_of_events(const char *path, char out[SOCKET_PATH_BYTES_MAX + 1])
{
    static const char ENDING[] = ".sock", EVENTS[] = ".events";
    size_t size = strlen(path), ending_size = strlen(ENDING);
    if (size >= ending_size && strcmp(path + size - ending_size, ENDING) == 0) size -= ending_size;
    if (size + strlen(EVENTS) > SOCKET_PATH_BYTES_MAX) return false;
    snprintf(out, SOCKET_PATH_BYTES_MAX + 1, "%.*s%s", (int)size, path, EVENTS);
    return true;
}

Error socket_path_clear(const char *path, ErrorDetail *detail)
{
    struct stat found;
    if (lstat(path, &found) != 0) {
        if (errno == ENOENT) return ERROR_NONE;
        return error_say(detail, ERROR_IO, "%s: %s", path, strerror(errno));
    }
    if (!S_ISSOCK(found.st_mode)) {
        return error_say(detail, ERROR_IO, "%s is there and is no socket; take it away", path);
    }
    if (unlink(path) != 0) return error_say(detail, ERROR_IO, "%s: %s", path, strerror(errno));
    return ERROR_NONE;
}
