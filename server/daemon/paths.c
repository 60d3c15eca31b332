// Paths.

#include "daemon/paths.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/limits.h"

enum { DIRECTORY_MODE = 0700 };

static Error too_long(ErrorDetail *detail, const char *what)
{
    return error_say(detail, ERROR_INVALID_ARGUMENT, "%s is too long", what);
}

// XDG: a value that is not an absolute path is to be ignored.
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

Error path_make_absolute(char *path, size_t path_bytes, ErrorDetail *detail)
{
    if (path[0] == '/') return ERROR_NONE;
    char here[PATH_BYTES_MAX], whole[2 * PATH_BYTES_MAX];
    if (!getcwd(here, sizeof(here))) {
        return error_say(detail, ERROR_INVALID_ARGUMENT, "no current directory: %s",
                         strerror(errno));
    }
    int size = snprintf(whole, sizeof(whole), "%s/%s", here, path);
    if (size < 0 || (size_t)size >= path_bytes) return too_long(detail, path);
    memcpy(path, whole, (size_t)size + 1);
    return ERROR_NONE;
}

void path_directory_of(const char *path, char *out, size_t out_bytes)
{
    const char *slash = strrchr(path, '/');
    size_t size = slash && slash != path ? (size_t)(slash - path) : 1;
    snprintf(out, out_bytes, "%.*s", (int)size, path);
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

// A power cut must not take the directory's name away with a store in it.
static bool flush_name(const char *path)
{
    char above[PATH_BYTES_MAX];
    path_directory_of(path, above, sizeof(above));
    int directory = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_flushed = directory >= 0 && (fsync(directory) == 0 || errno == EINVAL);
    if (directory >= 0) close(directory);
    return is_flushed;
}

Error path_make_directory(const char *path, ErrorDetail *detail)
{
    char part[PATH_BYTES_MAX];
    size_t size = strlen(path);
    for (size_t i = 1; i <= size; i++) {
        if (path[i] != '/' && path[i] != '\0') continue;
        snprintf(part, sizeof(part), "%.*s", (int)i, path);
        bool is_made = mkdir(part, DIRECTORY_MODE) == 0;
        if ((!is_made && errno != EEXIST) || (is_made && !flush_name(part))) {
            return error_say(detail, ERROR_IO, "cannot make %s: %s", part, strerror(errno));
        }
    }
    return ERROR_NONE;
}

Error path_check_private(const char *path, ErrorDetail *detail)
{
    // A link is as private as who made it, and what it names: its own mode says nothing.
    struct stat link, found;
    if (lstat(path, &link) != 0 || stat(path, &found) != 0) {
        return error_say(detail, ERROR_IO, "cannot use %s: %s", path, strerror(errno));
    }
    bool is_ours = (link.st_uid == geteuid() || link.st_uid == 0) &&
                   (found.st_uid == geteuid() || found.st_uid == 0);
    bool is_shared = (found.st_mode & (S_IWGRP | S_IWOTH)) && !(found.st_mode & S_ISVTX);
    if (is_ours && !is_shared) return ERROR_NONE;
    return error_say(detail, ERROR_IO,
                     "%s belongs to others, or others can write to it; choose "
                     "another with --socket",
                     path);
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

void path_remove_directory(const char *path)
{
    DIR *directory = opendir(path);
    if (!directory) return;
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        (void)unlinkat(dirfd(directory), entry->d_name, 0);
    }
    closedir(directory);
    (void)rmdir(path);
}
