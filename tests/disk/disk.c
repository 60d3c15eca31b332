// libc's calls, defined in the program, so that liblmdb calls them, too.

#include "disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "harness.h"

enum { PAGE_BYTES = 4096, META_PAGES = 2, FAULTS_MAX = 2, PARTS_MAX = 64, KEPT_MAX = 32 };

typedef struct Fault {
    DiskFault fault; // .name NULL: none
    size_t count;    // of its calls
} Fault;

typedef struct Kept {
    char name[64];
    unsigned char *bytes;
    size_t size;
} Kept;

static struct {
    pthread_mutex_t mutex;
    Fault faults[FAULTS_MAX];
    bool has_failed;
    atomic_bool flushes_nothing;
    Kept kept[KEPT_MAX];
    size_t kept_count;
} disk = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void set_fault(size_t at, DiskFault fault)
{
    pthread_mutex_lock(&disk.mutex);
    disk.faults[at] = (Fault){.fault = fault};
    if (at == 0) {
        disk.faults[1].fault.name = NULL;
        disk.has_failed = false;
    }
    pthread_mutex_unlock(&disk.mutex);
}

void disk_fail(DiskFault fault)
{
    set_fault(0, fault);
}

void disk_fail_also(DiskFault fault)
{
    set_fault(1, fault);
}

void disk_mend(void)
{
    pthread_mutex_lock(&disk.mutex);
    for (size_t i = 0; i < FAULTS_MAX; i++)
        disk.faults[i].fault.name = NULL;
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
    if (!slash) return false;
    size_t wanted = strlen(name + 1), had = strlen(slash + 1);
    if (*name == '*') return had >= wanted && strcmp(slash + 1 + had - wanted, name + 1) == 0;
    return strcmp(slash + 1, name) == 0;
}

static bool is_about(const DiskFault *fault, DiskCall call, int file)
{
    bool is_call = fault->call == call || (fault->call == DISK_FLUSH && call == DISK_FLUSH_DATA) ||
                   (fault->call == DISK_WRITE_PART && call == DISK_WRITE);
    return fault->name && is_call && is_named(file, fault->name);
}

typedef enum Fate { FATE_DONE, FATE_PART, FATE_FAILS } Fate;

// Sets errno if the call is to fail.
static Fate fate_of(DiskCall call, int file)
{
    Fate fate = FATE_DONE;
    int code = 0;
    pthread_mutex_lock(&disk.mutex);
    for (size_t i = 0; i < FAULTS_MAX; i++) {
        const DiskFault *fault = &disk.faults[i].fault;
        if (!is_about(fault, call, file)) continue;
        size_t count = ++disk.faults[i].count;
        if (count != fault->nth && !(fault->is_for_ever && count > fault->nth)) continue;
        bool is_part = fault->call == DISK_WRITE_PART && count == fault->nth;
        fate = is_part ? FATE_PART : FATE_FAILS;
        code = fault->code;
        disk.has_failed = true;
    }
    pthread_mutex_unlock(&disk.mutex);
    if (fate == FATE_FAILS) errno = code;
    return fate;
}

static bool fails(DiskCall call, int file)
{
    return fate_of(call, file) == FATE_FAILS;
}

void disk_flush_nothing(void)
{
    atomic_store(&disk.flushes_nothing, true);
}

static int flush(DiskCall call, long number, int file)
{
    if (fails(call, file)) return -1;
    return atomic_load(&disk.flushes_nothing) ? 0 : (int)syscall(number, file);
}

int fdatasync(int file)
{
    return flush(DISK_FLUSH_DATA, SYS_fdatasync, file);
}

int fsync(int file)
{
    return flush(DISK_FLUSH, SYS_fsync, file);
}

ssize_t pwrite(int file, const void *bytes, size_t size, off_t offset)
{
    Fate fate = fate_of(DISK_WRITE, file);
    if (fate == FATE_PART) size /= 2;
    return fate == FATE_FAILS ? -1 : syscall(SYS_pwrite64, file, bytes, size, offset);
}

// Cuts the parts to half of their bytes. Returns how many there are.
static int halve(const struct iovec *parts, int count, struct iovec out[PARTS_MAX])
{
    size_t size = 0;
    int used = 0;
    CHECK(count <= PARTS_MAX);
    for (int i = 0; i < count; i++)
        size += parts[i].iov_len;
    for (size_t left = size / 2; left > 0; used++) {
        out[used] = parts[used];
        if (out[used].iov_len > left) out[used].iov_len = left;
        left -= out[used].iov_len;
    }
    return used;
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t offset)
{
    struct iovec half[PARTS_MAX];
    Fate fate = fate_of(DISK_WRITE, file);
    if (fate == FATE_PART) {
        count = halve(parts, count, half);
        parts = half;
    }
    return fate == FATE_FAILS ? -1 : syscall(SYS_pwritev, file, parts, count, offset, 0L);
}

int fallocate(int file, int mode, off_t offset, off_t size)
{
    return fails(DISK_ALLOCATE, file) ? -1 : (int)syscall(SYS_fallocate, file, mode, offset, size);
}

int posix_fallocate(int file, off_t offset, off_t size)
{
    return fallocate(file, 0, offset, size) == 0 ? 0 : errno;
}

ssize_t writev(int file, const struct iovec *parts, int count)
{
    return fails(DISK_WRITE, file) ? -1 : syscall(SYS_writev, file, parts, count);
}

static void keep(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 && errno == ENOENT) return; // a segment that was not needed any more
    CHECK(disk.kept_count < KEPT_MAX);
    Kept *kept = &disk.kept[disk.kept_count++];
    struct stat status;
    CHECK(file >= 0);
    CHECK_EQ(fstat(file, &status), 0);
    snprintf(kept->name, sizeof(kept->name), "%s", strrchr(path, '/') + 1);
    kept->size = (size_t)status.st_size;
    kept->bytes = malloc(kept->size + 1);
    CHECK(kept->bytes != NULL);
    CHECK_EQ(pread(file, kept->bytes, kept->size, 0), kept->size);
    close(file);
}

// Gives the pages from `begin` on what they were, or zeros if they are newer.
static void lose(const char *path, size_t begin)
{
    static const unsigned char ZEROS[PAGE_BYTES];
    const Kept *kept = disk.kept, *end = disk.kept + disk.kept_count;
    const char *name = strrchr(path, '/') + 1;
    while (kept < end && strcmp(kept->name, name) != 0)
        kept++;
    int file = open(path, O_RDWR | O_CLOEXEC);
    struct stat status;
    CHECK(file >= 0);
    CHECK_EQ(fstat(file, &status), 0);
    for (size_t at = begin; at < (size_t)status.st_size; at += PAGE_BYTES) {
        bool is_kept = kept < end && at < kept->size;
        const void *page = is_kept ? kept->bytes + at : ZEROS;
        CHECK_EQ(syscall(SYS_pwrite64, file, page, PAGE_BYTES, at), PAGE_BYTES);
    }
    close(file);
}

static void visit_log(const char *store, void (*visit)(const char *path))
{
    char path[4096], name[600];
    snprintf(path, sizeof(path), "%s/log", store);
    DIR *directory = opendir(path);
    CHECK(directory != NULL);
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (entry->d_name[0] == '.') continue;
        snprintf(name, sizeof(name), "%s/log/%.255s", store, entry->d_name);
        visit(name);
    }
    closedir(directory);
}

void disk_keep(const char *store)
{
    char path[4096];
    for (size_t i = 0; i < disk.kept_count; i++)
        free(disk.kept[i].bytes);
    disk.kept_count = 0;
    snprintf(path, sizeof(path), "%s/data.mdb", store);
    keep(path);
    visit_log(store, keep);
}

void disk_lose_data(const char *store)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/data.mdb", store);
    lose(path, META_PAGES * PAGE_BYTES);
}

static void lose_segment(const char *path)
{
    lose(path, 0);
}

void disk_lose_log(const char *store)
{
    visit_log(store, lose_segment);
}
