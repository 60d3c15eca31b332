// Directories: the system calls, and the two rules of what is private.

#include "os/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"

enum { DIRECTORY_MODE = 0700 };

static Error fail(ErrorDetail *detail, const char *what, const char *path)
{
    return error_say_errno(detail, errno, "cannot %s %s", what, path);
}

Error directory_make(const char *path, ErrorDetail *detail)
{
    char part[PATH_BYTES_MAX];
    size_t size = strlen(path);
    if (size >= sizeof(part)) {
        errno = ENAMETOOLONG;
        return fail(detail, "make", path);
    }
    for (size_t i = 1; i <= size; i++) {
        if (path[i] != '/' && path[i] != '\0') continue;
        snprintf(part, sizeof(part), "%.*s", (int)i, path);
        if (mkdir(part, DIRECTORY_MODE) == 0) {
            Error error = directory_flush_above(part, detail);
            if (error) return error;
        } else if (errno != EEXIST) {
            return fail(detail, "make", part);
        }
    }
    return ERROR_NONE;
}

Error directory_flush(const char *path, ErrorDetail *detail)
{
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return fail(detail, "open", path);
    // EINVAL: the file system cannot flush directories.
    bool is_flushed = fsync(directory) == 0 || errno == EINVAL;
    Error error = is_flushed ? ERROR_NONE : fail(detail, "flush", path);
    close(directory);
    return error;
}

Error directory_flush_above(const char *path, ErrorDetail *detail)
{
    char above[PATH_BYTES_MAX + 4];
    snprintf(above, sizeof(above), "%s/..", path);
    return directory_flush(above, detail);
}

static bool is_trusted_user(uid_t user)
{
    return user == geteuid() || user == 0;
}

Error directory_check_private(const char *path, ErrorDetail *detail)
{
    // The owner of a link can point it elsewhere. The mode of a link says nothing.
    struct stat link, found;
    if (lstat(path, &link) != 0 || stat(path, &found) != 0) return fail(detail, "use", path);
    bool is_ours = is_trusted_user(link.st_uid) && is_trusted_user(found.st_uid);
    bool is_shared = (found.st_mode & (S_IWGRP | S_IWOTH)) && !(found.st_mode & S_ISVTX);
    if (is_ours && !is_shared) return ERROR_NONE;
    return error_say(detail, ERROR_IO,
                     "%s belongs to others, or others can write to it; choose another with "
                     "--socket",
                     path);
}

bool directory_is_exclusive(const char *path)
{
    struct stat found;
    if (lstat(path, &found) != 0) return errno == ENOENT;
    return S_ISDIR(found.st_mode) && is_trusted_user(found.st_uid) &&
           (found.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Removes the files of an open directory, and of those in it down to `depth`. Closes it.
static void remove_files(int file, unsigned depth)
{
    DIR *directory = fdopendir(file);
    if (!directory) {
        close(file);
        return;
    }
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (unlinkat(file, entry->d_name, 0) == 0 || depth == 0) continue;
        int below = openat(file, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below < 0) continue;
        remove_files(below, depth - 1);
        (void)unlinkat(file, entry->d_name, AT_REMOVEDIR);
    }
    closedir(directory);
}

void directory_remove(const char *path)
{
    int file = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0) return;
    remove_files(file, /* depth= */ 1);
    (void)rmdir(path);
}
