// Verification. The child process sends its result through a pipe. If it died, it sends nothing.

#include "store/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kv/commit_row.h"
#include "store/manifest.h"
#include "store/open.h"

typedef struct PageCount {
    const VerifyOptions *options;
    uint64_t count;
} PageCount;

static void count_page(void *context, const PageFinding *finding)
{
    PageCount *pages = context;
    pages->count++;
    if (pages->options->found_page) pages->options->found_page(pages->options->context, finding);
}

static Error read_state(Store *store, Verified *out)
{
    Txn txn;
    StoreState state;
    CommitRow row = {.place.position = 0};
    bool found;
    Error error = txn_begin(store, /* is_write= */ false, NULL, &out->detail, &txn);
    if (!error) error = txn_state(&txn, &state);
    if (!error) error = commit_row_get(txn.kv, &found, &row);
    txn_abort(&txn);
    if (error) return error;
    snprintf(out->instance_id, sizeof(out->instance_id), "%s", store_instance_id(store));
    out->event_sequence = state.last_event_sequence;
    out->log_position = row.place.position;
    return ERROR_NONE;
}

static void check_rows(const VerifyOptions *verify, Verified *out)
{
    PageCount pages = {.options = verify};
    PageWalkOptions walk = {.found = count_page, .context = &pages};
    // A copy is flushed already, so it needs no log while it is checked.
    StoreOptions options = {
        .directory = verify->directory,
        .is_read_only = !verify->is_copy,
        .is_ephemeral = verify->is_copy,
        .walk = &walk,
    };
    StoreCheckOptions check_options = {verify->found, verify->context};
    Store *store = NULL;
    out->error = store_open(&options, &out->detail, &store);
    out->page_damage_count = pages.count;
    if (out->error) return;
    out->error = read_state(store, out);
    if (!out->error) out->error = store_check(store, &check_options, &out->result);
    out->is_read = out->error == ERROR_NONE;
    store_close(store);
}

static void check(const VerifyOptions *verify, Verified *out)
{
    Error error = verify->is_copy
                      ? ERROR_NONE
                      : manifest_verify(verify->directory, &out->detail, &out->has_manifest);
    bool is_other = error == ERROR_CORRUPT;
    if (error && !is_other) {
        out->error = error;
        return;
    }
    if (is_other && verify->found_manifest) {
        verify->found_manifest(verify->context, out->detail.text);
    }
    out->detail.text[0] = '\0';
    check_rows(verify, out);
    out->result.counts[DAMAGE_MANIFEST] += is_other;
    out->result.damage_count += is_other;
}

static void become_checker(const VerifyOptions *options, int out)
{
    Verified verified = {.is_read = false};
    check(options, &verified);
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

Error verify_begin(const VerifyOptions *options, ErrorDetail *detail, Verification *out)
{
    int ends[2];
    fflush(NULL);
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return error_say(detail, ERROR_IO, "cannot start the check: pipe: %s", strerror(errno));
    }
    pid_t child = fork();
    if (child == 0) become_checker(options, ends[1]);
    int fork_errno = errno;
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return error_say(detail, ERROR_IO, "cannot start the check: fork: %s",
                         strerror(fork_errno));
    }
    *out = (Verification){.result = ends[0], .process = child};
    return ERROR_NONE;
}

void verify_end(Verification *verification, Verified *out)
{
    *out = (Verified){.is_read = false};
    read_result(verification->result, out);
    close(verification->result);
    wait_for(verification->process, out);
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
