// Files in a store's directory.

#include "kv/durable/file_at.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"

// Returns false and sets errno if the path is too long.
static bool join(const char *directory, const char *name, char out[PATH_BYTES_MAX])
{
    if (snprintf(out, PATH_BYTES_MAX, "%s/%s", directory, name) < PATH_BYTES_MAX) return true;
    errno = ENAMETOOLONG;
    return false;
}

int file_at_identify(const char *directory, const char *name, FileId *out_id)
{
    char path[PATH_BYTES_MAX];
    struct stat status;
    if (!join(directory, name, path)) return errno;
    if (stat(path, &status) != 0) return errno == ENOENT ? 0 : errno;
    *out_id = (FileId){.device = status.st_dev, .inode = status.st_ino};
    return 0;
}

int file_at_open(const char *directory, const char *name, int flags)
{
    char path[PATH_BYTES_MAX];
    return join(directory, name, path) ? open(path, flags | O_CLOEXEC, 0600) : -1;
}

int file_at_remove(const char *directory, const char *name)
{
    char path[PATH_BYTES_MAX];
    return join(directory, name, path) ? unlink(path) : -1;
}

bool file_at_read(int file, void *bytes, size_t size, uint64_t offset)
{
    memset(bytes, 0, size);
    return pread(file, bytes, size, (off_t)offset) >= 0;
}

bool file_at_write(int file, const void *bytes, size_t size, uint64_t offset)
{
    ssize_t written = pwrite(file, bytes, size, (off_t)offset);
    if (written >= 0 && (size_t)written < size) errno = ENOSPC;
    return written == (ssize_t)size;
}
