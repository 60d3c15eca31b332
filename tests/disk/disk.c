// libc's calls, defined in the program, so that liblmdb calls them, too.

#include "disk.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "harness.h"

enum { PAGE_BYTES = 4096, META_PAGES = 2 };

static struct {
    pthread_mutex_t mutex;
    DiskFault fault; // .name NULL: none
    size_t count;    // of its calls
    bool has_failed;
    unsigned char *kept;
    size_t kept_bytes;
} disk = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void disk_fail(DiskFault fault)
{
    pthread_mutex_lock(&disk.mutex);
    disk.fault = fault;
    disk.count = 0;
    disk.has_failed = false;
    pthread_mutex_unlock(&disk.mutex);
}

void disk_mend(void)
{
    pthread_mutex_lock(&disk.mutex);
    disk.fault.name = NULL;
    pthread_mutex_unlock(&disk.mutex);
}

bool disk_has_failed(void)
{
    pthread_mutex_lock(&disk.mutex);
    bool has_failed = disk.has_failed;
    pthread_mutex_unlock(&disk.mutex);
    return has_failed;
}

static bool is_named(int file, const char *name)
{
    char link[64], path[4096];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof(path) - 1);
    if (size <= 0) return false;
    path[size] = '\0';
    const char *slash = strrchr(path, '/');
    return slash && strcmp(slash + 1, name) == 0;
}

// Sets errno if the call is to fail.
static bool fails(DiskCall call, int file)
{
    pthread_mutex_lock(&disk.mutex);
    const DiskFault *fault = &disk.fault;
    bool is_it = fault->name && fault->call == call && is_named(file, fault->name);
    if (is_it) {
        disk.count++;
        is_it = disk.count == fault->nth || (fault->is_for_ever && disk.count > fault->nth);
    }
    if (is_it) disk.has_failed = true;
    int code = fault->code;
    pthread_mutex_unlock(&disk.mutex);
    if (is_it) errno = code;
    return is_it;
}

int fdatasync(int file)
{
    return fails(DISK_FLUSH, file) ? -1 : (int)syscall(SYS_fdatasync, file);
}

int fsync(int file)
{
    return fails(DISK_FLUSH, file) ? -1 : (int)syscall(SYS_fsync, file);
}

ssize_t pwrite(int file, const void *bytes, size_t size, off_t offset)
{
    return fails(DISK_WRITE, file) ? -1 : syscall(SYS_pwrite64, file, bytes, size, offset);
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t offset)
{
    return fails(DISK_WRITE, file) ? -1 : syscall(SYS_pwritev, file, parts, count, offset, 0L);
}

ssize_t writev(int file, const struct iovec *parts, int count)
{
    return fails(DISK_WRITE, file) ? -1 : syscall(SYS_writev, file, parts, count);
}

static int open_data(const char *store, size_t *out_bytes)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/data.mdb", store);
    int file = open(path, O_RDWR | O_CLOEXEC);
    struct stat status;
    CHECK(file >= 0);
    CHECK_EQ(fstat(file, &status), 0);
    *out_bytes = (size_t)status.st_size;
    return file;
}

void disk_keep(const char *store)
{
    int file = open_data(store, &disk.kept_bytes);
    free(disk.kept);
    disk.kept = malloc(disk.kept_bytes);
    CHECK(disk.kept != NULL);
    CHECK_EQ(pread(file, disk.kept, disk.kept_bytes, 0), disk.kept_bytes);
    close(file);
}

void disk_lose(const char *store)
{
    static const unsigned char ZEROS[PAGE_BYTES];
    size_t bytes;
    int file = open_data(store, &bytes);
    for (size_t at = META_PAGES * PAGE_BYTES; at < bytes; at += PAGE_BYTES) {
        const void *page = at < disk.kept_bytes ? disk.kept + at : ZEROS;
        CHECK_EQ(syscall(SYS_pwrite64, file, page, PAGE_BYTES, at), PAGE_BYTES);
    }
    close(file);
    free(disk.kept);
    disk.kept = NULL;
}
