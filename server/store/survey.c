// The survey. The child says through a pipe which session it begins to read and how that ended.

#include "store/survey.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "report/log.h"
#include "store/check_pass.h"
#include "store/history.h"
#include "store/open.h"
#include "store/origin.h"

typedef enum ReportKind {
    REPORT_OPENED,
    REPORT_BEGUN, // `session` is read next
    REPORT_READ,  // `error`: why it cannot be read; ERROR_NONE: it can
    REPORT_ENDED, // all were read, or `error`
} ReportKind;

typedef struct Report {
    ReportKind kind;
    Error error;
    Ulid session;
    ErrorDetail detail;
} Report;

// Reads each byte of the rows that begin with the session's id.
static Error read_rows(Txn *txn, StoreTable table, Ulid session)
{
    KvCursor *cursor = NULL;
    Key prefix = key_of_id(session);
    KvRow row;
    bool found;
    volatile uint8_t sum = 0; // so that the reads are not left out
    Error error = kv_cursor_open(txn->kv, (KvTable)table, &cursor);
    if (error) return error;
    error = kv_seek(cursor, key_slice(&prefix), &found, &row);
    while (!error && found && slice_starts_with(row.key, key_slice(&prefix))) {
        for (size_t i = 0; i < row.value.size; i++)
            sum ^= row.value.bytes[i];
        error = kv_next(cursor, &found, &row);
    }
    (void)sum;
    kv_cursor_close(cursor);
    return error;
}

// Reads the history, with the entries of ancestors.
static Error read_history(Txn *txn, Ulid session)
{
    SegmentList segments;
    Buffer page = {.bytes = NULL};
    HistoryQuery query = {.segments = &segments,
                          .kinds = UINT32_MAX,
                          .before = ULID_MAX,
                          .session = session,
                          .limit = UINT32_MAX,
                          .page_bytes = PAGE_BYTES_MAX};
    bool has_more = true;
    Error error = origin_segments(txn, session, ULID_MAX, &segments);
    while (!error && has_more) {
        error = buffer_reset(&page, 0);
        if (!error) error = history_append_page(txn, &query, 1, &page, &has_more, &query.after);
    }
    buffer_free(&page);
    return error;
}

static Error read_session(Txn *txn, Ulid session)
{
    Session *record;
    Error error = session_settings(txn, session, &record);
    if (!error) error = session_head(txn, session, &record);
    for (StoreTable table = 0; !error && table < TABLE_COUNT; table++) {
        if (check_table_is_of_sessions(table)) error = read_rows(txn, table, session);
    }
    return error ? error : read_history(txn, session);
}

// Finds the first session after `after`.
static Error next_session(Txn *txn, Ulid after, bool *out_found, Ulid *out)
{
    KvCursor *cursor = NULL;
    Key key = key_of_id(ulid_next(after));
    KvRow row;
    Error error = kv_cursor_open(txn->kv, (KvTable)TABLE_SESSIONS, &cursor);
    if (error) return error;
    error = kv_seek(cursor, key_slice(&key), out_found, &row);
    if (!error && *out_found && row.key.size < ULID_BYTES) error = kv_refuse_key(cursor, row.key);
    if (!error && *out_found) *out = key_id_at(row.key, 0);
    if (!error && *out_found && ulid_compare(*out, after) <= 0) {
        error = error_say(txn->detail, ERROR_CORRUPT, "the sessions are not in the order of ids");
    }
    kv_cursor_close(cursor);
    return error;
}

static void send(int pipe, const Report *report)
{
    if (write(pipe, report, sizeof(*report)) != sizeof(*report)) _exit(EXIT_FAILURE);
}

static Error read_sessions(Store *store, Ulid after, int pipe, ErrorDetail *detail)
{
    Arena arena;
    Txn txn;
    arena_init(&arena, RUN_BUDGET_BYTES);
    Error error = txn_begin(store, /* is_write= */ false, &arena, detail, &txn);
    while (!error) {
        Report report = {.kind = REPORT_BEGUN};
        bool found;
        error = next_session(&txn, after, &found, &report.session);
        if (error || !found) break;
        send(pipe, &report);
        txn_set_detail(&txn, &report.detail);
        report.kind = REPORT_READ;
        report.error = read_session(&txn, report.session);
        send(pipe, &report);
        txn_set_detail(&txn, detail);
        arena_reset(&arena, RUN_BUDGET_BYTES);
        after = report.session;
    }
    txn_abort(&txn);
    arena_free(&arena);
    return error;
}

__attribute__((noreturn)) static void become_reader(const char *directory, Ulid after, int pipe)
{
    static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGABRT};
    for (size_t i = 0; i < sizeof(SIGNALS) / sizeof(*SIGNALS); i++)
        (void)signal(SIGNALS[i], SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}); // its death is no news
    StoreOptions options = {.directory = directory, .is_read_only = true};
    Report report = {.kind = REPORT_ENDED};
    Store *store = NULL;
    report.error = store_open(&options, &report.detail, &store);
    if (!report.error) {
        send(pipe, &(Report){.kind = REPORT_OPENED});
        report.error = read_sessions(store, after, pipe, &report.detail);
    }
    send(pipe, &report);
    store_close(store);
    _exit(EXIT_SUCCESS);
}

// Returns false at the end of the pipe: the child has ended.
static bool receive(int pipe, Report *out)
{
    size_t got = 0;
    while (got < sizeof(*out)) {
        ssize_t size = read(pipe, (uint8_t *)out + got, sizeof(*out) - got);
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) return false;
        got += (size_t)size;
    }
    return true;
}

static Error leave_out(Survey *survey, Ulid session, const char *cause, ErrorDetail *detail)
{
    char text[ULID_TEXT_BYTES + 1];
    ulid_format(session, text);
    log_write(LOG_ERROR, "a session cannot be read and is left out", "session=%s detail=\"%s\"",
              text, cause);
    if (survey->left_out_count == SURVEY_LEFT_OUT_MAX) {
        return error_say(detail, ERROR_CORRUPT, "more than %d sessions cannot be read",
                         SURVEY_LEFT_OUT_MAX);
    }
    survey->left_out[survey->left_out_count++] = session;
    return ERROR_NONE;
}

// What one child has done.
typedef struct Reading {
    Report last;
    bool is_opened, is_in_session, has_ended;
} Reading;

static Error take_reports(int pipe, Survey *survey, ErrorDetail *detail, Reading *reading)
{
    Error error = ERROR_NONE;
    while (!error && !reading->has_ended && receive(pipe, &reading->last)) {
        const Report *report = &reading->last;
        reading->is_opened |= report->kind == REPORT_OPENED;
        reading->is_in_session = report->kind == REPORT_BEGUN;
        reading->has_ended = report->kind == REPORT_ENDED;
        survey->session_count += report->kind == REPORT_BEGUN;
        if (report->kind == REPORT_READ && report->error) {
            const char *cause =
                report->detail.text[0] ? report->detail.text : error_text(report->error);
            error = leave_out(survey, report->session, cause, detail);
        }
    }
    return error;
}

// Runs one child from the session after `*after`. `*out_is_done`: no other child is needed;
// otherwise the next one goes on after `*after`.
static Error read_on(const char *directory, Ulid *after, Survey *survey, ErrorDetail *detail,
                     bool *out_is_done)
{
    int ends[2];
    *out_is_done = true;
    if (pipe2(ends, O_CLOEXEC) != 0) return error_say_errno(detail, errno, "cannot make a pipe");
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) become_reader(directory, *after, ends[1]);
    int fork_errno = errno;
    close(ends[1]);
    Reading reading = {.is_opened = false};
    Error error = child < 0 ? error_say_errno(detail, fork_errno, "cannot make a process")
                            : take_reports(ends[0], survey, detail, &reading);
    close(ends[0]);
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (error) return error;
    if (reading.has_ended) {
        return reading.last.error
                   ? error_say(detail, reading.last.error, "%s", reading.last.detail.text)
                   : ERROR_NONE;
    }
    char cause[ERROR_DETAIL_BYTES_MAX / 2];
    snprintf(cause, sizeof(cause), "the process that read it was ended by %s",
             WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "a failure");
    if (reading.is_in_session) {
        *out_is_done = false;
        *after = reading.last.session;
        return leave_out(survey, *after, cause, detail);
    }
    const char *what =
        reading.is_opened ? "its sessions cannot be listed" : "the store cannot be opened";
    return error_say(detail, ERROR_CORRUPT, "%s: %s: %s", directory, what, cause);
}

Error survey_run(const char *directory, ErrorDetail *detail, Survey *out)
{
    *out = (Survey){.session_count = 0};
    Ulid after = ULID_ZERO;
    bool is_done = false;
    Error error = ERROR_NONE;
    while (!error && !is_done)
        error = read_on(directory, &after, out, detail, &is_done);
    return error;
}
