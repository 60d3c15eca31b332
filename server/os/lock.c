// Locks, with flock(2).
//
// A lock file may be removed while another process waits for its lock. Only the file that the path
// names counts, so after taking the lock it is checked whether the path still names that file.

#include "os/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { PID_TEXT_BYTES = 32, LOCK_MODE = 0600, LOOKS_MAX = 500, LOCKS_LINE_BYTES = 256 };

// Returns the pid of the process that holds a lock; 0 if it cannot be found out. The holder writes
// its pid shortly after it got the lock. Until then the file is empty or names a dead process.
static long holder_of(int descriptor)
{
    for (int looks = 0; looks < LOOKS_MAX; looks++) {
        char text[PID_TEXT_BYTES] = {0};
        if (pread(descriptor, text, sizeof(text) - 1, 0) < 0) return 0;
        long pid = strtol(text, NULL, 10);
        if (pid > 0 && (kill((pid_t)pid, 0) == 0 || errno == EPERM)) return pid;
        (void)poll(NULL, 0, 1);
    }
    return 0;
}

// Tries once to open and lock the file. `*out_is_gone`: it was removed meanwhile; try again.
// Returns -1 and sets errno on failure.
static int open_locked(const char *path, bool *out_is_gone, bool *out_is_held)
{
    *out_is_gone = *out_is_held = false;
    int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, LOCK_MODE);
    if (descriptor < 0) return -1;
    struct stat ours, named;
    *out_is_held = flock(descriptor, LOCK_EX | LOCK_NB) != 0;
    if (*out_is_held && errno == EWOULDBLOCK) return descriptor;
    *out_is_gone = !*out_is_held && (fstat(descriptor, &ours) != 0 || stat(path, &named) != 0 ||
                                     ours.st_ino != named.st_ino || ours.st_dev != named.st_dev);
    if (!*out_is_held && !*out_is_gone) return descriptor;
    int error = errno;
    close(descriptor);
    errno = error;
    return -1;
}

// `holder`: a pid; 0: not known.
static Error say_held(const char *what, long holder, const char *advice, ErrorDetail *detail)
{
    char pid[PID_TEXT_BYTES] = "unknown";
    if (holder) snprintf(pid, sizeof(pid), "%ld", holder);
    return error_say(detail, ERROR_UNAVAILABLE, "%s is in use by the process with pid %s; %s", what,
                     pid, advice);
}

Error lock_take(const char *path, const char *what, const char *advice, ErrorDetail *detail,
                int *out_descriptor)
{
    bool is_gone, is_held;
    int descriptor;
    do {
        descriptor = open_locked(path, &is_gone, &is_held);
    } while (is_gone);
    if (descriptor < 0) {
        return error_say_errno(detail, errno, "cannot %s %s", is_held ? "lock" : "open", path);
    }
    if (is_held) {
        long holder = holder_of(descriptor);
        close(descriptor);
        return say_held(what, holder, advice, detail);
    }
    char pid[PID_TEXT_BYTES];
    int size = snprintf(pid, sizeof(pid), "%ld", (long)getpid());
    if (ftruncate(descriptor, 0) != 0 || pwrite(descriptor, pid, (size_t)size, 0) < 0) {
        // The pid is only for messages, so a full disk is no reason to fail.
    }
    *out_descriptor = descriptor;
    return ERROR_NONE;
}

// Reads from the kernel's list of locks which process holds the flock of an open file. Returns 0 if
// it does not say, as for a process that is not visible here.
static long holder_in_kernel(int descriptor)
{
    struct stat ours;
    FILE *locks = fopen("/proc/locks", "re");
    if (!locks) return 0;
    char line[LOCKS_LINE_BYTES];
    long holder = 0;
    bool is_known = fstat(descriptor, &ours) == 0;
    while (is_known && holder == 0 && fgets(line, sizeof(line), locks)) {
        unsigned major_number, minor_number;
        unsigned long inode;
        long pid;
        if (sscanf(line, "%*d: FLOCK %*s WRITE %ld %x:%x:%lu", &pid, &major_number, &minor_number,
                   &inode) == 4 &&
            inode == ours.st_ino && makedev(major_number, minor_number) == ours.st_dev) {
            holder = pid;
        }
    }
    fclose(locks);
    return holder > 0 ? holder : 0;
}

Error lock_take_directory(const char *path, const char *advice, ErrorDetail *detail,
                          int *out_descriptor)
{
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return error_say_errno(detail, errno, "cannot open %s", path);
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
        *out_descriptor = descriptor;
        return ERROR_NONE;
    }
    int code = errno;
    long holder = code == EWOULDBLOCK ? holder_in_kernel(descriptor) : 0;
    close(descriptor);
    return code == EWOULDBLOCK ? say_held(path, holder, advice, detail)
                               : error_say_errno(detail, code, "cannot lock %s", path);
}

void lock_remove(const char *path, int descriptor)
{
    if (descriptor < 0) return;
    (void)unlink(path);
    close(descriptor);
}
