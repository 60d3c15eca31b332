// Reading a log after a start. The first pass finds where the log ends, and whether it is whole up
// to there; the second gives the records away.
//
// A record says how far the log was on the disk when it was appended. So a record that proves
// itself, behind one that is bad, tells a damaged log from one that the power cut off.

#include "log/log_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Scan {
    const char *directory;
    LogPlace rows;
    uint64_t key; // of the first record that follows, if the rows do not say; 0: none has followed
    LogPlace end;
    const LogTaker *taker; // NULL: the first pass, which only looks
    uint64_t record_count, bytes;
    // Of the first pass:
    uint64_t end_number, end_byte; // the segment and the byte behind the last record
    uint64_t known_flushed;        // by any record that proves itself
    bool is_other;                 // another record has the position that the rows have
    bool has_junk_behind;          // a record lies behind the end
} Scan;

typedef struct SegmentBytes {
    uint8_t *bytes; // owned
    size_t size;
} SegmentBytes;

static Error read_segment(const Scan *scan, const Segment *segment, ErrorDetail *detail,
                          SegmentBytes *out)
{
    char path[PATH_BYTES_MAX];
    segment_path(scan->directory, segment->number, path);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    size_t size = (size_t)segment->bytes;
    *out = (SegmentBytes){.bytes = malloc(size + 1)};
    while (file >= 0 && out->bytes && out->size < size) {
        ssize_t got = pread(file, out->bytes + out->size, size - out->size, (off_t)out->size);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            free(out->bytes);
            out->bytes = NULL;
        }
        if (got <= 0) break;
        out->size += (size_t)got;
    }
    Error error = ERROR_NONE;
    if (file < 0 || !out->bytes) error = error_say_errno(detail, errno, "cannot read %s", path);
    if (file >= 0) close(file);
    if (error) {
        free(out->bytes);
        out->bytes = NULL;
    }
    return error;
}

static bool is_ours(const Scan *scan, const LogRecord *record)
{
    return scan->key == record->key || scan->key == 0;
}

static bool follows(const LogRecord *record, LogPlace place)
{
    return record->position == place.position + 1 &&
           memcmp(record->previous.bytes, place.chain.bytes, HASH_BYTES) == 0;
}

// Only the log's own records are believed: a text can hold bytes that prove themselves.
static void note_flushed(Scan *scan, const LogRecord *record)
{
    if (scan->key == 0 || record->key != scan->key) return;
    if (record->flushed_through > scan->known_flushed) {
        scan->known_flushed = record->flushed_through;
    }
}

static Error give(Scan *scan, const LogRecord *record, const LogRecord *next, ErrorDetail *detail)
{
    bool is_void = record->kind == LOG_VOID || (next && next->kind == LOG_VOID);
    if (is_void || !scan->taker) return ERROR_NONE;
    scan->record_count++;
    return scan->taker->take(scan->taker->context, record, detail);
}

// Walks the records at the beginning of a segment. Those that follow the end move it on. A VOID is
// in the segment of the record before it, so a segment is judged by itself.
static Error walk(Scan *scan, const Segment *segment, Slice bytes, ErrorDetail *detail,
                  size_t *out_walked)
{
    LogRecord record, held;
    bool has_held = false;
    Error error = ERROR_NONE;
    *out_walked = 0;
    while (!error && log_record_read(slice_skip(bytes, *out_walked), &record)) {
        bool is_rows = record.position == scan->rows.position;
        if (is_rows && memcmp(record.chain.bytes, scan->rows.chain.bytes, HASH_BYTES) != 0) {
            scan->is_other = true;
        }
        if (is_ours(scan, &record) && follows(&record, scan->end)) {
            if (has_held) error = give(scan, &held, &record, detail);
            held = record;
            has_held = true;
            scan->key = record.key;
            scan->end = log_record_place(&record);
        } else if (has_held || record.position > scan->end.position) {
            break;
        }
        note_flushed(scan, &record);
        *out_walked += (size_t)log_record_bytes(record.body.size);
        if (*out_walked > bytes.size) *out_walked = bytes.size;
        if (!has_held) continue;
        scan->end_number = segment->number;
        scan->end_byte = *out_walked;
        scan->bytes += log_record_bytes(record.body.size);
    }
    if (!error && has_held) error = give(scan, &held, NULL, detail);
    return error;
}

// Looks for records behind those of the walk, at any place where one can begin.
static void look_behind(Scan *scan, Slice bytes, size_t at)
{
    for (; at + LOG_HEADER_BYTES <= bytes.size; at += LOG_RECORD_ALIGNMENT) {
        LogRecord record;
        if (!log_record_read(slice_skip(bytes, at), &record)) continue;
        if (record.key == scan->key && record.position > scan->end.position) {
            scan->has_junk_behind = true;
        }
        note_flushed(scan, &record);
        at += (size_t)log_record_bytes(record.body.size) - LOG_RECORD_ALIGNMENT;
    }
}

static Error pass(Scan *scan, const Segment *segments, size_t count, ErrorDetail *detail)
{
    Error error = ERROR_NONE;
    for (size_t i = 0; !error && i < count; i++) {
        SegmentBytes segment;
        error = read_segment(scan, &segments[i], detail, &segment);
        if (error) return error;
        Slice bytes = slice(segment.bytes, segment.size);
        size_t walked;
        error = walk(scan, &segments[i], bytes, detail, &walked);
        bool is_first_pass = !scan->taker;
        if (!error && is_first_pass) look_behind(scan, bytes, walked);
        free(segment.bytes);
    }
    return error;
}

static Error judge(const Scan *scan, ErrorDetail *detail)
{
    const char *directory = scan->directory;
    if (scan->known_flushed <= scan->end.position) return ERROR_NONE;
    if (scan->is_other) {
        return error_say(detail, ERROR_CORRUPT,
                         "the log in %s is not that of the rows beside it; if you put another "
                         "data file there, remove %s",
                         directory, directory);
    }
    if (scan->end_number == 0) {
        return error_say(detail, ERROR_CORRUPT,
                         "the log in %s lacks the record %" PRIu64 ", but it was on the disk up to "
                         "%" PRIu64 "; run tine check, or restore a backup (if you put another "
                         "data file there, remove %s)",
                         directory, scan->end.position + 1, scan->known_flushed, directory);
    }
    char path[PATH_BYTES_MAX];
    segment_path(directory, scan->end_number, path);
    return error_say(detail, ERROR_CORRUPT,
                     "the record %" PRIu64 " of the log is damaged, at or behind byte %" PRIu64
                     " of %s; it was on the disk up to %" PRIu64
                     "; run tine check, or restore a backup",
                     scan->end.position + 1, scan->end_byte, path, scan->known_flushed);
}

static Scan scan_of(const LogScanOptions *options, const LogTaker *taker)
{
    return (Scan){
        .directory = options->directory,
        .rows = options->rows,
        .end = options->rows,
        .key = options->key,
        .taker = taker,
    };
}

Error log_scan(const LogScanOptions *options, const LogTaker *taker, ErrorDetail *detail,
               LogFound *out)
{
    Scan first = scan_of(options, NULL), second = scan_of(options, taker);
    Error error = pass(&first, options->segments, options->count, detail);
    if (!error) error = judge(&first, detail);
    if (error) return error;
    bool has_records = first.end.position > options->rows.position;
    if (has_records) error = pass(&second, options->segments, options->count, detail);
    *out = (LogFound){
        .end = first.end,
        .record_count = second.record_count,
        .bytes = first.bytes,
        .is_cut = first.has_junk_behind,
    };
    return error;
}
