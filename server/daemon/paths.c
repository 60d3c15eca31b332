// Default paths, and checks that make nothing.

#include "daemon/paths.h"

#include <errno.h>
#include <linux/magic.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/limits.h"
#include "os/path.h"

static Error too_long(ErrorDetail *detail, const char *what)
{
    return error_say(detail, ERROR_INVALID_ARGUMENT, "%s is too long", what);
}

// XDG says that a value which is not an absolute path must be ignored.
static const char *xdg_value(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] == '/' ? value : NULL;
}

Error path_data_default(char *out, size_t out_bytes, ErrorDetail *detail)
{
    const char *base = xdg_value("XDG_DATA_HOME"), *below = "/tine";
    if (!base) {
        below = "/.local/share/tine";
        base = xdg_value("HOME");
    }
    if (!base) {
        const struct passwd *user = getpwuid(geteuid());
        base = user ? user->pw_dir : NULL;
    }
    if (!base) {
        return error_say(detail, ERROR_INVALID_ARGUMENT,
                         "there is no home directory; say --data DIRECTORY");
    }
    int size = snprintf(out, out_bytes, "%s%s", base, below);
    return size < 0 || (size_t)size >= out_bytes ? too_long(detail, base) : ERROR_NONE;
}

Error path_socket_default(char *out, size_t out_bytes, ErrorDetail *detail)
{
    const char *base = xdg_value("XDG_RUNTIME_DIR");
    int size = base ? snprintf(out, out_bytes, "%s/tine/tine.sock", base)
                    : snprintf(out, out_bytes, "/tmp/tine-%lu/tine.sock", (unsigned long)geteuid());
    return size < 0 || (size_t)size >= out_bytes ? too_long(detail, base ? base : out) : ERROR_NONE;
}

Error path_check_directory(const char *path, ErrorDetail *detail, char *out_existing)
{
    char above[PATH_BYTES_MAX];
    snprintf(above, sizeof(above), "%s", path);
    struct stat found;
    while (stat(above, &found) != 0) {
        if (errno != ENOENT || strcmp(above, "/") == 0) {
            return error_say(detail, ERROR_IO, "cannot use %s: %s", path, strerror(errno));
        }
        char next[PATH_BYTES_MAX];
        path_directory_of(above, next, sizeof(next));
        memcpy(above, next, sizeof(above));
    }
    if (!S_ISDIR(found.st_mode)) {
        return error_say(detail, ERROR_IO, "cannot use %s: %s is not a directory", path, above);
    }
    if (access(above, W_OK | X_OK) != 0) {
        return error_say(detail, ERROR_IO, "cannot use %s: %s cannot be written to: %s", path,
                         above, strerror(errno));
    }
    memcpy(out_existing, above, sizeof(above));
    return ERROR_NONE;
}

Error path_check_socket(const char *path, ErrorDetail *detail)
{
    struct stat found;
    if (lstat(path, &found) != 0) {
        if (errno == ENOENT) return ERROR_NONE;
        return error_say(detail, ERROR_IO, "cannot use %s: %s", path, strerror(errno));
    }
    if (S_ISSOCK(found.st_mode)) return ERROR_NONE;
    return error_say(detail, ERROR_IO, "%s is there and is no socket; take it away", path);
}

Error path_check_file(const char *path, ErrorDetail *detail)
{
    char directory[PATH_BYTES_MAX];
    path_directory_of(path, directory, sizeof(directory));
    bool can_be = access(path, W_OK) == 0;
    if (!can_be && errno == ENOENT) can_be = access(directory, W_OK | X_OK) == 0;
    if (can_be) return ERROR_NONE;
    return error_say(detail, ERROR_IO, "cannot open %s: %s", path, strerror(errno));
}

static bool is_in_memory(const char *path)
{
    struct statfs found;
    return path && statfs(path, &found) == 0 && found.f_type == TMPFS_MAGIC &&
           access(path, W_OK | X_OK) == 0;
}

Error path_make_ephemeral(char *out, size_t out_bytes, ErrorDetail *detail)
{
    const char *temporary = getenv("TMPDIR");
    const char *choices[] = {"/dev/shm", xdg_value("XDG_RUNTIME_DIR"), temporary, "/tmp"};
    const char *base = temporary && *temporary ? temporary : "/tmp";
    for (size_t i = 0; i < sizeof(choices) / sizeof(*choices); i++) {
        if (!is_in_memory(choices[i])) continue;
        base = choices[i];
        break;
    }
    int size = snprintf(out, out_bytes, "%s/tine-ephemeral-XXXXXX", base);
    if (size < 0 || (size_t)size >= out_bytes) return too_long(detail, base);
    if (mkdtemp(out)) return ERROR_NONE;
    return error_say(detail, ERROR_IO, "cannot make a directory in %s: %s", base, strerror(errno));
}
