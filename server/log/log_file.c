// The log in files. The thread that appends writes into the current segment and takes the one that
// is ready when it is full. The keeper, a thread of its own, makes that one ready, takes back those
// that are not needed, and flushes a relaxed log.
//
// `make_mutex` is held from giving a segment its number until it has its place, so that numbers
// rise; `flush_mutex` while a flush runs, and to take a segment out of the list; `mutex` guards the
// list and what the keeper waits for. They are taken in this order.

#include "log/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/condition.h"
#include "os/directory.h"
#include "os/thread.h"
#include "report/log.h"

// At the end of each segment there is room for a VOID of the record before it.
enum { VOID_BYTES = LOG_HEADER_BYTES, SEGMENT_BYTES_UNIT = 64 * 1024 };

typedef struct LogFile {
    Log log; // the first
    char directory[PATH_BYTES_MAX];
    int64_t flush_ns;
    uint64_t segment_bytes_min, segment_bytes_max;
    pthread_t keeper;

    pthread_mutex_t make_mutex;
    pthread_mutex_t flush_mutex;

    pthread_mutex_t mutex; // guards all below
    pthread_cond_t wakes;
    Segment *segments; // owned; that have or had records; the last one is the current one
    size_t count, capacity;
    bool has_current;
    Segment ready; // .file -1: there is none
    uint64_t last_number;
    uint64_t trimmed; // records up to this position are not needed
    bool wants_ready, wants_trim, is_stopping;
} LogFile;

static Error append(Log *log, const LogRecord *record, const uint8_t header[LOG_HEADER_BYTES],
                    ErrorDetail *detail);
static Error flush(Log *log, ErrorDetail *detail);
static void trim(Log *log, uint64_t through);
static void close_log(Log *log);
static void *keep(void *context);

static const LogOps OPS = {.append = append, .flush = flush, .trim = trim, .close = close_log};

// Copies the path of the directory, to which names of segments are added.
static Error copy_path(const char *directory, ErrorDetail *detail, char out[PATH_BYTES_MAX])
{
    if (snprintf(out, PATH_BYTES_MAX, "%s", directory) < PATH_BYTES_MAX - 32) return ERROR_NONE;
    return error_say(detail, ERROR_INVALID_ARGUMENT, "the path of the log is too long");
}

static LogFile *log_new(const LogFileOptions *options)
{
    LogFile *log = calloc(1, sizeof(LogFile));
    if (!log) return NULL;
    log->log.ops = &OPS;
    log->flush_ns = (int64_t)options->flush_ms * 1000000;
    log->segment_bytes_min =
        options->segment_bytes_min ? options->segment_bytes_min : LOG_SEGMENT_BYTES_MIN;
    log->segment_bytes_max =
        options->segment_bytes_max ? options->segment_bytes_max : LOG_SEGMENT_BYTES_MAX;
    log->ready.file = -1;
    pthread_mutex_init(&log->make_mutex, NULL);
    pthread_mutex_init(&log->flush_mutex, NULL);
    pthread_mutex_init(&log->mutex, NULL);
    condition_init(&log->wakes);
    return log;
}

static void log_free(LogFile *log)
{
    for (size_t i = 0; i < log->count; i++)
        if (log->segments[i].file >= 0) close(log->segments[i].file);
    if (log->ready.file >= 0) close(log->ready.file);
    free(log->segments);
    pthread_mutex_destroy(&log->make_mutex);
    pthread_mutex_destroy(&log->flush_mutex);
    pthread_mutex_destroy(&log->mutex);
    pthread_cond_destroy(&log->wakes);
    free(log);
}

// The segments of earlier runs are only waiting to be removed: the rows get all their records now.
static Error take_over(LogFile *log, LogScanOptions scan, const LogTaker *taker,
                       ErrorDetail *detail, LogFound *out_found)
{
    Error error = segment_list(log->directory, detail, &log->segments, &log->count);
    if (error) return error;
    log->capacity = log->count;
    scan.directory = log->directory;
    scan.segments = log->segments;
    scan.count = log->count;
    error = log_scan(&scan, taker, detail, out_found);
    if (error) return error;
    for (size_t i = 0; i < log->count; i++)
        log->segments[i].last_position = out_found->end.position;
    if (log->count > 0) log->last_number = log->segments[log->count - 1].number;
    // A process that died may have made the directory, and not flushed its name.
    if (log->count == 0) error = directory_flush_above(log->directory, detail);
    if (error) return error;
    atomic_store(&log->log.appended, out_found->end.position);
    atomic_store(&log->log.flushed, out_found->end.position);
    return ERROR_NONE;
}

Error log_file_open(const LogFileOptions *options, LogPlace rows, const LogTaker *taker,
                    ErrorDetail *detail, LogFound *out_found, Log **out_log)
{
    LogFile *log = log_new(options);
    if (!log) return error_say(detail, ERROR_OUT_OF_MEMORY, "no memory to open the log");
    Error error = copy_path(options->directory, detail, log->directory);
    if (!error) error = directory_make(log->directory, detail);
    LogScanOptions scan = {.rows = rows, .key = options->key};
    if (!error) error = take_over(log, scan, taker, detail, out_found);
    if (!error) error = thread_start(&log->keeper, keep, log, "keep the log", detail);
    if (error) {
        log_free(log);
        return error;
    }
    *out_log = &log->log;
    return ERROR_NONE;
}

// Logs a failure and notes it for good, unless there was one before. `flush_mutex` must be held.
static Error fail(LogFile *log, int code, const char *what, uint64_t number)
{
    if (atomic_load(&log->log.has_failed)) return ERROR_IO;
    char path[PATH_BYTES_MAX];
    segment_path(log->directory, number, path);
    Error error = error_say_errno(&log->log.failure, code, "cannot %s %s", what, path);
    log_write(LOG_ERROR, "the log cannot be written", "detail=\"%s\"", log->log.failure.text);
    atomic_store(&log->log.has_failed, true);
    return error ? ERROR_IO : ERROR_NONE;
}

static Error explain(const LogFile *log, Error error, ErrorDetail *detail)
{
    return error ? error_say(detail, error, "%s", log->log.failure.text) : ERROR_NONE;
}

// ---- Segments ----

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + SEGMENT_BYTES_UNIT - 1) / SEGMENT_BYTES_UNIT * SEGMENT_BYTES_UNIT;
}

// Returns how large the next segment is: twice the current one, within the bounds. `mutex` must be
// held.
static uint64_t bytes_of_next(const LogFile *log, uint64_t needed)
{
    uint64_t bytes = log->segment_bytes_min;
    if (log->has_current) bytes = 2 * log->segments[log->count - 1].bytes;
    if (bytes > log->segment_bytes_max) bytes = log->segment_bytes_max;
    if (bytes < log->segment_bytes_min) bytes = log->segment_bytes_min;
    return needed > bytes ? round_up(needed) : bytes;
}

// Takes a segment that is not needed off the list, if there is one of at least `bytes` bytes, or,
// with `bytes` 0, any. `flush_mutex` and `mutex` must be held.
static bool take_trimmed(LogFile *log, uint64_t bytes, Segment *out)
{
    size_t old_count = log->has_current ? log->count - 1 : log->count;
    for (size_t i = 0; i < old_count; i++) {
        const Segment *segment = &log->segments[i];
        if (segment->last_position > log->trimmed || segment->bytes < bytes) continue;
        *out = *segment;
        memmove(&log->segments[i], &log->segments[i + 1], (log->count - i - 1) * sizeof(Segment));
        log->count--;
        return true;
    }
    return false;
}

static bool take_trimmed_locked(LogFile *log, uint64_t bytes, Segment *out)
{
    pthread_mutex_lock(&log->flush_mutex);
    pthread_mutex_lock(&log->mutex);
    bool is_taken = take_trimmed(log, bytes, out);
    pthread_mutex_unlock(&log->mutex);
    pthread_mutex_unlock(&log->flush_mutex);
    return is_taken;
}

static Error reopen(const LogFile *log, Segment *segment, ErrorDetail *detail)
{
    if (segment->file >= 0) return ERROR_NONE;
    char path[PATH_BYTES_MAX];
    segment_path(log->directory, segment->number, path);
    segment->file = open(path, O_RDWR | O_CLOEXEC);
    if (segment->file >= 0) return ERROR_NONE;
    return error_say_errno(detail, errno, "cannot open %s", path);
}

// Gives a segment that was taken off the list a new number, or removes it.
static bool reuse(const LogFile *log, uint64_t number, ErrorDetail *detail, Segment *segment)
{
    bool is_reused = reopen(log, segment, detail) == ERROR_NONE &&
                     segment_reuse(log->directory, number, detail, segment) == ERROR_NONE;
    if (!is_reused) segment_remove(log->directory, segment);
    return is_reused;
}

// Makes a segment: an old one under a new number, or a new file. `make_mutex` must be held.
static Error prepare(LogFile *log, uint64_t needed, ErrorDetail *detail, Segment *out)
{
    pthread_mutex_lock(&log->mutex);
    uint64_t number = ++log->last_number;
    uint64_t bytes = bytes_of_next(log, needed);
    pthread_mutex_unlock(&log->mutex);
    if (take_trimmed_locked(log, bytes, out) && reuse(log, number, detail, out)) return ERROR_NONE;
    return segment_make(log->directory, number, bytes, detail, out);
}

// On a full disk: begins the current segment anew, if none of its records is needed, or takes an
// old one that is large enough. The caller is the thread that appends, and holds `make_mutex`.
static bool take_on_full_disk(LogFile *log, uint64_t needed, Segment *out)
{
    ErrorDetail detail;
    pthread_mutex_lock(&log->flush_mutex);
    pthread_mutex_lock(&log->mutex);
    uint64_t number = ++log->last_number;
    uint64_t current = log->has_current ? log->segments[log->count - 1].number : 0;
    log->has_current = false; // so that it may be taken
    bool is_taken = take_trimmed(log, needed, out);
    log->has_current = current > 0 && !(is_taken && out->number == current);
    pthread_mutex_unlock(&log->mutex);
    pthread_mutex_unlock(&log->flush_mutex);
    return is_taken && reuse(log, number, &detail, out);
}

static bool list_reserve(LogFile *log)
{
    if (log->count < log->capacity) return true;
    size_t capacity = 2 * log->capacity + 4;
    Segment *more = realloc(log->segments, capacity * sizeof(Segment));
    if (!more) return false;
    log->segments = more;
    log->capacity = capacity;
    return true;
}

// Returns the segment that is ready, if it has room for `needed` bytes, or makes one. `make_mutex`
// must be held.
static Error take_ready(LogFile *log, uint64_t needed, ErrorDetail *detail, Segment *out)
{
    pthread_mutex_lock(&log->mutex);
    *out = log->ready;
    log->ready.file = -1;
    pthread_mutex_unlock(&log->mutex);
    if (out->file >= 0 && out->bytes >= needed) return ERROR_NONE;
    if (out->file >= 0) segment_remove(log->directory, out);
    Error error = prepare(log, needed, detail, out);
    if (error == ERROR_STORE_FULL && take_on_full_disk(log, needed, out)) return ERROR_NONE;
    return error;
}

// Makes a segment with room for `needed` bytes the current one.
static Error next_segment(LogFile *log, uint64_t needed, ErrorDetail *detail)
{
    Segment next;
    pthread_mutex_lock(&log->make_mutex);
    Error error = take_ready(log, needed, detail, &next);
    if (!error) {
        pthread_mutex_lock(&log->mutex);
        if (list_reserve(log)) {
            log->segments[log->count++] = next;
            log->has_current = true;
        } else {
            error = error_say(detail, ERROR_OUT_OF_MEMORY, "no memory for a segment of the log");
        }
        pthread_mutex_unlock(&log->mutex);
        if (error) segment_remove(log->directory, &next);
    }
    pthread_mutex_unlock(&log->make_mutex);
    return error;
}

// Asks the keeper for the next segment once the current one is half full. `mutex` must be held.
static void want_ready(LogFile *log, const Segment *current)
{
    if (log->ready.file >= 0 || log->wants_ready || current->used < current->bytes / 2) return;
    log->wants_ready = true;
    pthread_cond_signal(&log->wakes);
}

// ---- Appending ----

// What is left of a record that could not be written must not be found after the next start.
static Error invalidate(LogFile *log, const Segment *current, int code, ErrorDetail *detail)
{
    static const uint8_t ZEROS[LOG_HEADER_BYTES];
    bool is_gone = pwrite(current->file, ZEROS, sizeof(ZEROS), (off_t)current->used) ==
                       (ssize_t)sizeof(ZEROS) &&
                   fdatasync(current->file) == 0;
    pthread_mutex_lock(&log->flush_mutex);
    Error error =
        fail(log, code, is_gone ? "write (the record was taken back)" : "write", current->number);
    pthread_mutex_unlock(&log->flush_mutex);
    return explain(log, error, detail);
}

static int write_record(const Segment *current, const LogRecord *record,
                        const uint8_t header[LOG_HEADER_BYTES])
{
    struct iovec pieces[] = {
        {(void *)(uintptr_t)header, LOG_HEADER_BYTES},
        {(void *)(uintptr_t)record->body.bytes, record->body.size},
    };
    ssize_t size = (ssize_t)(LOG_HEADER_BYTES + record->body.size);
    ssize_t written = pwritev(current->file, pieces, 2, (off_t)current->used);
    size_t done = written > 0 ? (size_t)written : 0;
    // A large write may be done in part.
    while (written > 0 && written < size && done >= LOG_HEADER_BYTES && done < (size_t)size) {
        Slice rest = slice_skip(record->body, done - LOG_HEADER_BYTES);
        written = pwrite(current->file, rest.bytes, rest.size, (off_t)(current->used + done));
        if (written > 0) done += (size_t)written;
    }
    if (done == (size_t)size) return 0;
    return written < 0 ? errno : EIO;
}

// Only the thread that appends changes the current segment, but the keeper may move the list.
// Returns false if there is no segment with room for `needed` bytes.
static bool copy_current(LogFile *log, uint64_t needed, Segment *out)
{
    pthread_mutex_lock(&log->mutex);
    if (log->has_current) *out = log->segments[log->count - 1];
    bool is_fit = log->has_current && out->bytes - out->used >= needed;
    pthread_mutex_unlock(&log->mutex);
    return is_fit;
}

static Error append(Log *base, const LogRecord *record, const uint8_t header[LOG_HEADER_BYTES],
                    ErrorDetail *detail)
{
    LogFile *log = (LogFile *)base;
    if (atomic_load(&log->log.has_failed)) return explain(log, ERROR_IO, detail);
    uint64_t size = log_record_bytes(record->body.size);
    uint64_t needed = record->kind == LOG_VOID ? size : size + VOID_BYTES;
    Segment current;
    if (!copy_current(log, needed, &current)) {
        Error error = next_segment(log, needed, detail);
        if (error) return error;
        (void)copy_current(log, needed, &current);
    }
    int code = write_record(&current, record, header);
    if (code) return invalidate(log, &current, code, detail);
    pthread_mutex_lock(&log->mutex);
    Segment *segment = &log->segments[log->count - 1];
    segment->used += size;
    segment->last_position = record->position;
    segment->is_unflushed = true;
    atomic_store(&base->appended, record->position);
    atomic_fetch_add(&base->appended_bytes, size);
    if (log->flush_ns > 0 && atomic_load(&base->oldest_ns) == 0) {
        atomic_store(&base->oldest_ns, clock_monotonic_ns());
        pthread_cond_signal(&log->wakes);
    }
    want_ready(log, segment);
    pthread_mutex_unlock(&log->mutex);
    return ERROR_NONE;
}

// ---- Flushing ----

// Takes the oldest segment that is not flushed. `mutex` must be held.
static bool take_unflushed(LogFile *log, Segment *out)
{
    for (size_t i = 0; i < log->count; i++) {
        if (!log->segments[i].is_unflushed) continue;
        log->segments[i].is_unflushed = false;
        *out = log->segments[i];
        return true;
    }
    return false;
}

// `flush_mutex` must be held: no segment is closed meanwhile.
static Error flush_all(LogFile *log)
{
    if (atomic_load(&log->log.has_failed)) return ERROR_IO;
    Segment segment;
    pthread_mutex_lock(&log->mutex);
    uint64_t appended = atomic_load(&log->log.appended);
    uint64_t bytes = atomic_load(&log->log.appended_bytes);
    atomic_store(&log->log.oldest_ns, 0);
    while (take_unflushed(log, &segment)) {
        pthread_mutex_unlock(&log->mutex);
        if (fdatasync(segment.file) != 0) return fail(log, errno, "flush", segment.number);
        pthread_mutex_lock(&log->mutex);
    }
    pthread_mutex_unlock(&log->mutex);
    atomic_store(&log->log.flushed, appended);
    atomic_store(&log->log.flushed_bytes, bytes);
    return ERROR_NONE;
}

static Error flush(Log *base, ErrorDetail *detail)
{
    LogFile *log = (LogFile *)base;
    Error error = ERROR_NONE;
    uint64_t wanted = atomic_load(&base->appended);
    pthread_mutex_lock(&log->flush_mutex);
    // The thread that had the mutex may have flushed it already.
    if (atomic_load(&base->flushed) < wanted || atomic_load(&log->log.has_failed)) {
        error = flush_all(log);
    }
    pthread_mutex_unlock(&log->flush_mutex);
    return explain(log, error, detail);
}

// ---- The keeper ----

static void trim(Log *base, uint64_t through)
{
    LogFile *log = (LogFile *)base;
    pthread_mutex_lock(&log->mutex);
    if (through > log->trimmed) {
        log->trimmed = through;
        log->wants_trim = true;
        pthread_cond_signal(&log->wakes);
    }
    pthread_mutex_unlock(&log->mutex);
}

// Removes what is not needed, but for one segment that is large enough to be the next one.
static void remove_trimmed(LogFile *log)
{
    Segment kept = {.file = -1}, segment;
    bool has_kept = false;
    while (take_trimmed_locked(log, 0, &segment)) {
        if (has_kept) segment_remove(log->directory, segment.bytes > kept.bytes ? &kept : &segment);
        if (!has_kept || segment.bytes > kept.bytes) kept = segment;
        has_kept = true;
    }
    if (!has_kept) return;
    pthread_mutex_lock(&log->mutex);
    bool is_wanted = log->ready.file < 0 && kept.bytes >= bytes_of_next(log, 0) &&
                     kept.bytes <= log->segment_bytes_max;
    uint64_t number = is_wanted ? ++log->last_number : 0;
    pthread_mutex_unlock(&log->mutex);
    ErrorDetail detail;
    bool is_reused = is_wanted && reopen(log, &kept, &detail) == ERROR_NONE &&
                     segment_reuse(log->directory, number, &detail, &kept) == ERROR_NONE;
    if (!is_reused) {
        segment_remove(log->directory, &kept);
        return;
    }
    pthread_mutex_lock(&log->mutex);
    log->ready = kept;
    pthread_mutex_unlock(&log->mutex);
}

// If it fails, the append that needs the segment tries again and says why.
static void make_ready(LogFile *log)
{
    Segment segment;
    ErrorDetail detail;
    pthread_mutex_lock(&log->mutex);
    bool is_ready = log->ready.file >= 0;
    log->wants_ready = false;
    pthread_mutex_unlock(&log->mutex);
    if (is_ready || prepare(log, 0, &detail, &segment) != ERROR_NONE) return;
    pthread_mutex_lock(&log->mutex);
    log->ready = segment;
    pthread_mutex_unlock(&log->mutex);
}

// Returns when a flush is due. INT64_MAX: nothing waits for one.
static int64_t flush_due_ns(const LogFile *log)
{
    int64_t oldest_ns = atomic_load(&log->log.oldest_ns);
    bool waits = oldest_ns > 0 && !atomic_load(&log->log.has_failed);
    return waits ? oldest_ns + log->flush_ns : INT64_MAX;
}

static void *keep(void *context)
{
    LogFile *log = context;
    pthread_mutex_lock(&log->mutex);
    while (!log->is_stopping) {
        int64_t due_ns = flush_due_ns(log);
        bool flushes = clock_monotonic_ns() >= due_ns, readies = log->wants_ready;
        bool trims = log->wants_trim;
        log->wants_trim = false;
        if (!flushes && !readies && !trims) {
            (void)condition_wait(&log->wakes, &log->mutex, due_ns);
            continue;
        }
        pthread_mutex_unlock(&log->mutex);
        if (flushes) (void)flush(&log->log, NULL); // a failure is kept
        pthread_mutex_lock(&log->make_mutex);
        if (trims) remove_trimmed(log);
        if (readies) make_ready(log);
        pthread_mutex_unlock(&log->make_mutex);
        pthread_mutex_lock(&log->mutex);
    }
    pthread_mutex_unlock(&log->mutex);
    return NULL;
}

static void close_log(Log *base)
{
    LogFile *log = (LogFile *)base;
    pthread_mutex_lock(&log->mutex);
    log->is_stopping = true;
    pthread_cond_signal(&log->wakes);
    pthread_mutex_unlock(&log->mutex);
    pthread_join(log->keeper, NULL);
    (void)flush(base, NULL);
    log_free(log);
}
