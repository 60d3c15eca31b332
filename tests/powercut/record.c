// The record. Every call is made with the mutex held, but for flushes, so that the order of the
// record is the order of the page cache; a flush covers what was written before it began.

#include "record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"
#include "keep.h"

enum { DESCRIPTORS_MAX = 1024, PATH_MAX_BYTES = 4096, HOLD_LOG_NS = 3 * 1000 * 1000 };
#define LOG_NAME_END ".log"

typedef struct Descriptor {
    int node; // 0: not ours; else the node plus 1
    bool is_dsync;
} Descriptor;

static struct {
    pthread_mutex_t mutex;
    bool is_on;
    bool is_dead;
    size_t fail_in; // flushes of files; 0: none fails
    bool has_failed;
    size_t hold_in; // … none is held
    bool holds_log;
    bool is_holding;
    size_t kill_in; // writes; 0: it lives
    Keep *kept;     // of the files when it died
    char root[PATH_MAX_BYTES];
    Descriptor descriptors[DESCRIPTORS_MAX];
    ino_t inodes[RECORD_NODES_MAX]; // 0: gone
    Recording recording;
} recorder = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static pthread_cond_t released = PTHREAD_COND_INITIALIZER;

static long call(long code)
{
    return code; // syscall() has set errno
}

static Record *add(RecordKind kind, int node)
{
    Recording *recording = &recorder.recording;
    if (recording->count == recording->capacity) {
        recording->capacity = recording->capacity ? 2 * recording->capacity : 4096;
        recording->records =
            realloc(recording->records, recording->capacity * sizeof(*recording->records));
        if (!recording->records) abort();
    }
    Record *record = &recording->records[recording->count++];
    *record = (Record){.kind = kind, .node = node};
    return record;
}

static int node_of_inode(ino_t inode)
{
    for (int i = 0; i < recorder.recording.node_count; i++) {
        if (recorder.inodes[i] == inode) return i;
    }
    return RECORD_NO_NODE;
}

static int node_new(ino_t inode, bool is_directory)
{
    int node = recorder.recording.node_count++;
    if (node >= RECORD_NODES_MAX) abort();
    recorder.inodes[node] = inode;
    recorder.recording.is_directory[node] = is_directory;
    return node;
}

static bool is_in_root(const char *path)
{
    size_t size = strlen(recorder.root);
    return recorder.is_on && strncmp(path, recorder.root, size) == 0 &&
           (path[size] == '/' || path[size] == '\0');
}

static bool is_below_root(const char *path)
{
    return is_in_root(path) && !recorder.is_dead;
}

// A dead process changes no names: record_revive restores only what is in the files.
static bool is_of_dead(const char *path)
{
    return is_in_root(path) && recorder.is_dead;
}

// The directory of a path, and the name in it.
static int directory_of(const char *path, const char **out_name)
{
    char above[PATH_MAX_BYTES];
    const char *slash = strrchr(path, '/');
    snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
    *out_name = slash + 1;
    struct stat status;
    return stat(above, &status) == 0 ? node_of_inode(status.st_ino) : RECORD_NO_NODE;
}

static void entry_fill(RecordEntry *entry, const char *name, int node)
{
    size_t size = strlen(name), end = strlen(LOG_NAME_END);
    CHECK(size < sizeof(entry->name));
    memcpy(entry->name, name, size + 1);
    if (node != RECORD_NO_NODE && size > end && strcmp(name + size - end, LOG_NAME_END) == 0)
        recorder.recording.is_log[node] = true;
    entry->node = node;
}

static void add_name(int directory, const char *name, int node)
{
    if (directory == RECORD_NO_NODE) return;
    entry_fill(&add(RECORD_NAME, directory)->entries[0], name, node);
}

// The entry of a path becomes the node's.
static void add_name_of(const char *path, int node)
{
    const char *name;
    int directory = directory_of(path, &name);
    add_name(directory, name, node);
}

static int node_of_path(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 ? node_of_inode(status.st_ino) : RECORD_NO_NODE;
}

static size_t add_bytes(int node, uint64_t offset, const void *bytes, size_t size)
{
    Record *record = add(RECORD_WRITE, node);
    record->offset = offset;
    record->size = size;
    record->bytes = malloc(size ? size : 1);
    if (!record->bytes) abort();
    memcpy(record->bytes, bytes, size);
    return recorder.recording.count - 1;
}

static Descriptor *descriptor_of(int file)
{
    if (!recorder.is_on || recorder.is_dead || file < 0 || file >= DESCRIPTORS_MAX) return NULL;
    return recorder.descriptors[file].node ? &recorder.descriptors[file] : NULL;
}

static int record_open(const char *path, int flags, mode_t mode)
{
    pthread_mutex_lock(&recorder.mutex);
    bool is_ours = is_below_root(path);
    CHECK(!is_ours || !(flags & O_APPEND)); // where its writes go is not followed
    bool is_new = is_ours && (flags & O_CREAT) && access(path, F_OK) != 0;
    if (is_of_dead(path)) flags &= ~O_CREAT;
    int file = (int)call(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
    int code = errno;
    struct stat status;
    if (file >= 0 && file < DESCRIPTORS_MAX) recorder.descriptors[file] = (Descriptor){0, false};
    if (file >= 0 && is_ours && file < DESCRIPTORS_MAX && fstat(file, &status) == 0) {
        if (is_new) {
            int node = node_new(status.st_ino, false);
            add_name_of(path, node);
        }
        int node = node_of_inode(status.st_ino);
        bool is_dsync = (flags & O_DSYNC) != 0;
        if (node != RECORD_NO_NODE) recorder.descriptors[file] = (Descriptor){node + 1, is_dsync};
        if (flags & O_TRUNC) add(RECORD_SIZE, node);
    }
    pthread_mutex_unlock(&recorder.mutex);
    errno = code;
    return file;
}

int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT ? (mode_t)va_arg(arguments, int) : 0;
    va_end(arguments);
    return record_open(path, flags, mode);
}

int close(int file)
{
    pthread_mutex_lock(&recorder.mutex);
    if (file >= 0 && file < DESCRIPTORS_MAX) recorder.descriptors[file].node = 0;
    int code = (int)call(syscall(SYS_close, file));
    pthread_mutex_unlock(&recorder.mutex);
    return code;
}

// The mutex is held.
static void die(void)
{
    recorder.is_dead = true;
    recorder.kill_in = recorder.fail_in = recorder.hold_in = 0;
    recorder.is_holding = recorder.holds_log = false;
    recorder.kept = keep_files(recorder.root);
    pthread_cond_broadcast(&released);
}

// One write at `offset`, or (is_positioned unset) where the file stands.
static ssize_t record_writev(int file, const struct iovec *parts, int count, off_t offset,
                             bool is_positioned)
{
    pthread_mutex_lock(&recorder.mutex);
    Descriptor *descriptor = descriptor_of(file);
    off_t at = is_positioned ? offset : descriptor ? lseek(file, 0, SEEK_CUR) : 0;
    ssize_t written = is_positioned
                          ? call(syscall(SYS_pwritev, file, parts, count, (long)offset, 0L))
                          : call(syscall(SYS_writev, file, parts, count));
    int code = errno;
    size_t first = recorder.recording.count;
    ssize_t left = written;
    for (int i = 0; descriptor && left > 0 && i < count; i++) {
        size_t size = (ssize_t)parts[i].iov_len < left ? parts[i].iov_len : (size_t)left;
        add_bytes(descriptor->node - 1, (uint64_t)at, parts[i].iov_base, size);
        at += (off_t)size;
        left -= (ssize_t)size;
    }
    bool is_killed =
        descriptor && !recorder.has_failed && recorder.kill_in > 0 && --recorder.kill_in == 0;
    if (is_killed) die();
    for (size_t i = first, end = recorder.recording.count;
         descriptor && descriptor->is_dsync && !is_killed && i < end; i++) {
        add(RECORD_WRITTEN, descriptor->node - 1)->begun = i;
    }
    pthread_mutex_unlock(&recorder.mutex);
    errno = code;
    return written;
}

ssize_t pwrite(int file, const void *bytes, size_t size, off_t offset)
{
    struct iovec part = {(void *)(uintptr_t)bytes, size};
    return record_writev(file, &part, 1, offset, /* is_positioned= */ true);
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t offset)
{
    return record_writev(file, parts, count, offset, /* is_positioned= */ true);
}

ssize_t write(int file, const void *bytes, size_t size)
{
    struct iovec part = {(void *)(uintptr_t)bytes, size};
    return record_writev(file, &part, 1, 0, /* is_positioned= */ false);
}

ssize_t writev(int file, const struct iovec *parts, int count)
{
    return record_writev(file, parts, count, 0, /* is_positioned= */ false);
}

int ftruncate(int file, off_t size)
{
    pthread_mutex_lock(&recorder.mutex);
    Descriptor *descriptor = descriptor_of(file);
    if (descriptor) add(RECORD_SIZE, descriptor->node - 1)->size = (uint64_t)size;
    int code = (int)call(syscall(SYS_ftruncate, file, size));
    pthread_mutex_unlock(&recorder.mutex);
    return code;
}

// Zeros up to the new end of the file, as ftruncate makes them. What is there stays as it is.
int posix_fallocate(int file, off_t offset, off_t size)
{
    pthread_mutex_lock(&recorder.mutex);
    const Descriptor *descriptor = descriptor_of(file);
    struct stat status;
    off_t end = offset + size;
    bool is_larger = descriptor && fstat(file, &status) == 0 && end > status.st_size;
    if (is_larger) add(RECORD_SIZE, descriptor->node - 1)->size = (uint64_t)end;
    int code = call(syscall(SYS_fallocate, file, 0, offset, size)) == 0 ? 0 : errno;
    pthread_mutex_unlock(&recorder.mutex);
    return code;
}

// The mutex is held.
static void hold(int node)
{
    bool is_log = recorder.recording.is_log[node];
    bool is_held = is_log ? recorder.holds_log : recorder.hold_in > 0 && --recorder.hold_in == 0;
    if (!is_held) return;
    recorder.holds_log = false;
    recorder.is_holding = true;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += HOLD_LOG_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    for (int code = 0; recorder.is_holding && code == 0;) {
        code = is_log ? pthread_cond_timedwait(&released, &recorder.mutex, &until)
                      : pthread_cond_wait(&released, &recorder.mutex);
    }
    recorder.is_holding = false;
}

static int record_flush(int file)
{
    pthread_mutex_lock(&recorder.mutex);
    Descriptor *descriptor = descriptor_of(file);
    int node = descriptor ? descriptor->node - 1 : RECORD_NO_NODE;
    size_t begun = recorder.recording.count;
    if (descriptor) add(RECORD_FLUSH_BEGIN, node);
    pthread_mutex_unlock(&recorder.mutex);
    if (!descriptor) return 0;
    sched_yield(); // others may write meanwhile
    pthread_mutex_lock(&recorder.mutex);
    bool is_file = !recorder.recording.is_directory[node];
    if (is_file) hold(node);
    bool is_recorded = recorder.is_on && !recorder.is_dead;
    bool fails = is_recorded && recorder.fail_in > 0 && is_file && --recorder.fail_in == 0;
    if (fails) recorder.has_failed = true;
    if (is_recorded) add(fails ? RECORD_FLUSH_FAILED : RECORD_FLUSH_END, node)->begun = begun;
    pthread_mutex_unlock(&recorder.mutex);
    errno = EIO;
    return fails ? -1 : 0;
}

int fsync(int file)
{
    return record_flush(file);
}

int fdatasync(int file)
{
    return record_flush(file);
}

// Of a map that LMDB does not write through; were it to, nothing here would see it.
int msync(void *address, size_t size, int flags)
{
    (void)address;
    (void)size;
    (void)flags;
    CHECK_STR("msync is not recorded", NULL);
    return -1;
}

int mkdir(const char *path, mode_t mode)
{
    pthread_mutex_lock(&recorder.mutex);
    bool is_dead = is_of_dead(path);
    int code = is_dead ? -1 : (int)call(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
    if (is_dead) errno = EIO;
    struct stat status;
    if (code == 0 && is_below_root(path) && stat(path, &status) == 0) {
        add_name_of(path, node_new(status.st_ino, true));
    }
    pthread_mutex_unlock(&recorder.mutex);
    return code;
}

// The path of an open directory, as the kernel knows it.
static bool path_of_file(int file, char out[PATH_MAX_BYTES])
{
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, out, PATH_MAX_BYTES - RECORD_NAME_BYTES - 2);
    if (size > 0) out[size] = '\0';
    return size > 0;
}

static int record_remove(const char *path, int flags)
{
    pthread_mutex_lock(&recorder.mutex);
    struct stat status = {.st_nlink = 0};
    bool is_ours = is_below_root(path) && lstat(path, &status) == 0;
    int code = is_of_dead(path) ? 0 : (int)call(syscall(SYS_unlinkat, AT_FDCWD, path, flags));
    if (code == 0 && is_ours) {
        add_name_of(path, RECORD_NO_NODE);
        int node = node_of_inode(status.st_ino);
        // The inode's number may be given to another file.
        if (node != RECORD_NO_NODE && (flags || status.st_nlink == 1)) recorder.inodes[node] = 0;
    }
    pthread_mutex_unlock(&recorder.mutex);
    return code;
}

int unlink(const char *path)
{
    return record_remove(path, 0);
}

int rmdir(const char *path)
{
    return record_remove(path, AT_REMOVEDIR);
}

int record_remove_in(int directory, const char *name, int flags)
{
    char path[PATH_MAX_BYTES];
    pthread_mutex_lock(&recorder.mutex);
    bool is_ours = directory >= 0 && path_of_file(directory, path) && is_in_root(path);
    pthread_mutex_unlock(&recorder.mutex);
    if (!is_ours) return (int)syscall(SYS_unlinkat, directory, name, flags);
    snprintf(path + strlen(path), sizeof(path) - strlen(path), "/%s", name);
    return record_remove(path, flags);
}

int link(const char *from, const char *to)
{
    pthread_mutex_lock(&recorder.mutex);
    bool is_dead = is_of_dead(to);
    int code = is_dead ? 0 : (int)call(syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
    if (code == 0 && is_below_root(to)) {
        add_name_of(to, node_of_path(to));
    }
    pthread_mutex_unlock(&recorder.mutex);
    return code;
}

int rename(const char *from, const char *to)
{
    pthread_mutex_lock(&recorder.mutex);
    struct stat replaced;
    bool has_replaced = is_below_root(to) && lstat(to, &replaced) == 0 && replaced.st_nlink == 1;
    bool is_dead = is_of_dead(to);
    int code = is_dead ? 0 : (int)call(syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to));
    if (code == 0 && is_below_root(to)) {
        if (has_replaced) {
            int gone = node_of_inode(replaced.st_ino);
            if (gone != RECORD_NO_NODE) recorder.inodes[gone] = 0;
        }
        const char *from_name, *to_name;
        int from_directory = directory_of(from, &from_name);
        int to_directory = directory_of(to, &to_name);
        Record *record = add(RECORD_NAME, to_directory);
        entry_fill(&record->entries[0], to_name, node_of_path(to));
        if (from_directory == to_directory) {
            entry_fill(&record->entries[1], from_name, RECORD_NO_NODE);
        } else {
            add_name(from_directory, from_name, RECORD_NO_NODE);
        }
    }
    pthread_mutex_unlock(&recorder.mutex);
    return code;
}

static void flushed(int node)
{
    size_t begun = recorder.recording.count;
    add(RECORD_FLUSH_BEGIN, node);
    add(RECORD_FLUSH_END, node)->begun = begun;
}

static void take_file(int node, const char *path)
{
    static uint8_t bytes[1 << 16];
    int file = (int)call(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY));
    uint64_t offset = 0;
    for (ssize_t size; (size = read(file, bytes, sizeof(bytes))) > 0; offset += (uint64_t)size) {
        add_bytes(node, offset, bytes, (size_t)size);
    }
    (void)call(syscall(SYS_close, file));
}

static void take_directory(int node, const char *path)
{
    DIR *directory = opendir(path);
    CHECK(directory != NULL);
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        char below[PATH_MAX_BYTES];
        snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
        struct stat status;
        CHECK_EQ(lstat(below, &status), 0);
        int child = node_new(status.st_ino, S_ISDIR(status.st_mode));
        add_name(node, entry->d_name, child);
        if (S_ISDIR(status.st_mode)) {
            take_directory(child, below);
        } else {
            take_file(child, below);
        }
        flushed(child);
    }
    closedir(directory);
    flushed(node);
}

void record_begin(const char *root)
{
    snprintf(recorder.root, sizeof(recorder.root), "%s", root);
    memset(&recorder.recording, 0, sizeof(recorder.recording));
    struct stat status;
    CHECK_EQ(stat(root, &status), 0);
    take_directory(node_new(status.st_ino, true), root);
    recorder.is_on = true;
}

void record_mark(uint64_t number)
{
    pthread_mutex_lock(&recorder.mutex);
    add(RECORD_MARK, RECORD_NO_NODE)->number = number;
    pthread_mutex_unlock(&recorder.mutex);
}

bool record_fail_flush(size_t nth)
{
    pthread_mutex_lock(&recorder.mutex);
    bool has_failed = recorder.has_failed;
    recorder.has_failed = false;
    recorder.fail_in = nth;
    pthread_mutex_unlock(&recorder.mutex);
    return has_failed;
}

void record_hold_flush(size_t nth)
{
    pthread_mutex_lock(&recorder.mutex);
    recorder.hold_in = nth;
    pthread_mutex_unlock(&recorder.mutex);
}

void record_hold_log_flush(void)
{
    pthread_mutex_lock(&recorder.mutex);
    recorder.holds_log = true;
    pthread_mutex_unlock(&recorder.mutex);
}

bool record_has_held(void)
{
    pthread_mutex_lock(&recorder.mutex);
    bool has_held = recorder.hold_in == 0 && !recorder.holds_log;
    pthread_mutex_unlock(&recorder.mutex);
    return has_held;
}

void record_release_flush(void)
{
    pthread_mutex_lock(&recorder.mutex);
    recorder.hold_in = 0;
    recorder.holds_log = false;
    recorder.is_holding = false;
    pthread_cond_broadcast(&released);
    pthread_mutex_unlock(&recorder.mutex);
}

void record_kill(void)
{
    pthread_mutex_lock(&recorder.mutex);
    if (!recorder.is_dead && !recorder.has_failed) die();
    pthread_mutex_unlock(&recorder.mutex);
}

void record_kill_in(size_t nth)
{
    pthread_mutex_lock(&recorder.mutex);
    recorder.kill_in = nth;
    pthread_mutex_unlock(&recorder.mutex);
}

bool record_is_dead(void)
{
    pthread_mutex_lock(&recorder.mutex);
    bool is_dead = recorder.is_dead;
    pthread_mutex_unlock(&recorder.mutex);
    return is_dead;
}

void record_revive(void)
{
    pthread_mutex_lock(&recorder.mutex);
    keep_restore(recorder.kept);
    recorder.kept = NULL;
    recorder.is_dead = false;
    pthread_mutex_unlock(&recorder.mutex);
}

bool record_has_file(int file)
{
    pthread_mutex_lock(&recorder.mutex);
    bool has = descriptor_of(file) != NULL;
    pthread_mutex_unlock(&recorder.mutex);
    return has;
}

bool record_has_path(const char *path)
{
    pthread_mutex_lock(&recorder.mutex);
    bool has = is_below_root(path);
    pthread_mutex_unlock(&recorder.mutex);
    return has;
}

size_t record_count(void)
{
    pthread_mutex_lock(&recorder.mutex);
    size_t count = recorder.recording.count;
    pthread_mutex_unlock(&recorder.mutex);
    return count;
}

void record_end(Recording *out)
{
    pthread_mutex_lock(&recorder.mutex);
    recorder.is_on = false;
    *out = recorder.recording;
    memset(recorder.descriptors, 0, sizeof(recorder.descriptors));
    pthread_mutex_unlock(&recorder.mutex);
}

void record_free(Recording *recording)
{
    for (size_t i = 0; i < recording->count; i++)
        free(recording->records[i].bytes);
    free(recording->records);
}
