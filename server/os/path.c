// Paths: text only, but for the current directory.

#include "os/path.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"

Error path_make_absolute(char *path, size_t path_bytes, ErrorDetail *detail)
{
    if (path[0] == '/') return ERROR_NONE;
    char here[PATH_BYTES_MAX], whole[2 * PATH_BYTES_MAX];
    if (!getcwd(here, sizeof(here))) {
        return error_say(detail, ERROR_INVALID_ARGUMENT, "no current directory: %s",
                         strerror(errno));
    }
    int size = snprintf(whole, sizeof(whole), "%s/%s", here, path);
    if (size < 0 || (size_t)size >= path_bytes) {
        return error_say(detail, ERROR_INVALID_ARGUMENT, "%s is too long", path);
    }
    memcpy(path, whole, (size_t)size + 1);
    return ERROR_NONE;
}

void path_directory_of(const char *path, char *out, size_t out_bytes)
{
    const char *slash = strrchr(path, '/');
    if (!slash) {
        snprintf(out, out_bytes, ".");
    } else {
        snprintf(out, out_bytes, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    }
}
