// Verification. The child process sends its result through a pipe. If it died, it sends nothing.

#include "store/verify.h"
#include "store/open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Checking {
    const char *directory;
    bool may_write;
    StoreCheckOptions options;
} Checking;

static void check(const Checking *checking, Verified *out)
{
    StoreOptions options = {.directory = checking->directory, .is_read_only = !checking->may_write};
    Store *store = NULL;
    out->error = store_open(&options, &out->detail, &store);
    if (out->error) return;
    snprintf(out->instance_id, sizeof(out->instance_id), "%s", store_instance_id(store));
    out->error = store_check(store, &checking->options, &out->result);
    out->is_read = out->error == ERROR_NONE;
    store_close(store);
}

static void become_checker(const Checking *checking, int out)
{
    Verified verified = {.is_read = false};
    check(checking, &verified);
    fflush(NULL);
    ssize_t size = write(out, &verified, sizeof(verified));
    _exit(size == sizeof(verified) ? 0 : 1);
}

static void read_result(int in, Verified *out)
{
    Verified verified;
    size_t got = 0;
    while (got < sizeof(verified)) {
        ssize_t size = read(in, (uint8_t *)&verified + got, sizeof(verified) - got);
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) return;
        got += (size_t)size;
    }
    *out = verified;
}

static void wait_for(pid_t child, Verified *out)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (out->is_read || out->error) return;
    out->error = ERROR_CORRUPT;
    const char *end = WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "a failure";
    snprintf(out->detail.text, sizeof(out->detail.text),
             "the file is broken: the process that read it was ended by %s", end);
}

static Error verify(const Checking *checking, ErrorDetail *detail, Verified *out)
{
    int ends[2];
    *out = (Verified){.is_read = false};
    fflush(NULL);
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return error_say(detail, ERROR_IO, "cannot start the check: pipe: %s", strerror(errno));
    }
    pid_t child = fork();
    if (child == 0) become_checker(checking, ends[1]);
    int fork_errno = errno;
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return error_say(detail, ERROR_IO, "cannot start the check: fork: %s",
                         strerror(fork_errno));
    }
    read_result(ends[0], out);
    close(ends[0]);
    wait_for(child, out);
    return ERROR_NONE;
}

Error verify_store(const char *directory, void (*found)(void *context, const Damage *damage),
                   void *context, ErrorDetail *detail, Verified *out)
{
    Checking checking = {.directory = directory, .options = {found, context}};
    return verify(&checking, detail, out);
}

Error verify_copy(const char *directory, ErrorDetail *detail, Verified *out)
{
    Checking checking = {.directory = directory, .may_write = true};
    return verify(&checking, detail, out);
}

bool verified_is_clean(const Verified *verified)
{
    return verified->is_read && verified->result.damage_count == 0;
}

Error verified_say(const Verified *verified, const char *what, ErrorDetail *detail)
{
    if (!verified->is_read) {
        return error_say(detail, verified->error, "%s: %s", what,
                         verified->detail.text[0] ? verified->detail.text
                                                  : error_text(verified->error));
    }
    return error_say(detail, ERROR_CORRUPT, "%s is damaged in %llu places; `tine check` names them",
                     what, (unsigned long long)verified->result.damage_count);
}
