// Locks. The file is never removed: whoever waited for it would then hold a lock that nobody sees.

#include "daemon/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { PID_TEXT_BYTES = 32, LOCK_MODE = 0600 };

Error lock_take(const char *path, ErrorDetail *detail, int *out_descriptor)
{
    int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, LOCK_MODE);
    if (descriptor < 0) {
        return error_say(detail, ERROR_IO, "cannot open %s: %s", path, strerror(errno));
    }
    char pid[PID_TEXT_BYTES] = {0};
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
        Error error = errno == EWOULDBLOCK ? ERROR_UNAVAILABLE : ERROR_IO;
        const char *reason = strerror(errno);
        if (pread(descriptor, pid, sizeof(pid) - 1, 0) <= 0) {
            snprintf(pid, sizeof(pid), "unknown");
        }
        close(descriptor);
        if (error == ERROR_IO) return error_say(detail, error, "cannot lock %s: %s", path, reason);
        return error_say(detail, error, "%s is held by the process with pid %s", path, pid);
    }
    int size = snprintf(pid, sizeof(pid), "%ld", (long)getpid());
    if (ftruncate(descriptor, 0) != 0 || pwrite(descriptor, pid, (size_t)size, 0) < 0) {
        // The pid is a courtesy; a full disk must not keep a daemon from starting.
    }
    *out_descriptor = descriptor;
    return ERROR_NONE;
}
