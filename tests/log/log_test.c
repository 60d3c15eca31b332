// The local log: what was appended is read again, a torn end is cut off, and damage is told.

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "log/log_file.h"
#include "os/directory.h"
#include "os/random.h"

enum { TAKEN_MAX = 4096, KEY = 77 };

// A log with what was read of it.
typedef struct Fixture {
    Log *log;
    LogPlace end;
    LogFound found;
    ErrorDetail detail;
    size_t taken_count;
    uint64_t taken[TAKEN_MAX];
    size_t taken_bytes[TAKEN_MAX];
} Fixture;

static const char *log_directory(void)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/log", test_dir());
    return path;
}

static Error take(void *context, const LogRecord *record, ErrorDetail *detail)
{
    (void)detail;
    Fixture *fixture = context;
    CHECK(fixture->taken_count < TAKEN_MAX);
    for (size_t i = 0; i < record->body.size; i++)
        CHECK_EQ(record->body.bytes[i], (uint8_t)(record->position + i));
    fixture->taken_bytes[fixture->taken_count] = record->body.size;
    fixture->taken[fixture->taken_count++] = record->position;
    return ERROR_NONE;
}

static Error open_log(Fixture *fixture, LogPlace rows)
{
    *fixture = (Fixture){.log = NULL};
    LogFileOptions options = {
        .directory = log_directory(),
        .key = KEY,
        .segment_bytes_min = 64 * 1024,
        .segment_bytes_max = 128 * 1024,
    };
    LogTaker taker = {take, fixture};
    Error error =
        log_file_open(&options, rows, &taker, &fixture->detail, &fixture->found, &fixture->log);
    fixture->end = fixture->found.end;
    return error;
}

static Fixture *opened(LogPlace rows)
{
    static Fixture fixture;
    CHECK_EQ(open_log(&fixture, rows), ERROR_NONE);
    return &fixture;
}

static Error try_append(Fixture *fixture, LogKind kind, size_t body_bytes)
{
    uint8_t *body = malloc(body_bytes + 1), header[LOG_HEADER_BYTES];
    LogRecord record = {
        .kind = kind,
        .position = fixture->end.position + 1,
        .previous = fixture->end.chain,
        .flushed_through = atomic_load(&fixture->log->flushed),
        .key = KEY,
        .body = slice(body, body_bytes),
    };
    for (size_t i = 0; i < body_bytes; i++)
        body[i] = (uint8_t)(record.position + i);
    log_record_seal(&record, header);
    Error error = fixture->log->ops->append(fixture->log, &record, header, &fixture->detail);
    if (!error) fixture->end = log_record_place(&record);
    free(body);
    return error;
}

static void append(Fixture *fixture, size_t body_bytes)
{
    CHECK_EQ(try_append(fixture, LOG_BATCH, body_bytes), ERROR_NONE);
}

static void flush(Fixture *fixture)
{
    CHECK_EQ(fixture->log->ops->flush(fixture->log, &fixture->detail), ERROR_NONE);
}

static void close_log(Fixture *fixture)
{
    fixture->log->ops->close(fixture->log);
}

static void check_taken(const Fixture *fixture, uint64_t first, uint64_t last)
{
    CHECK_EQ(fixture->taken_count, last + 1 - first);
    for (size_t i = 0; i < fixture->taken_count; i++)
        CHECK_EQ(fixture->taken[i], first + i);
}

static const LogPlace EMPTY = {.position = 0};

static void path_of(uint64_t number, char out[PATH_BYTES_MAX])
{
    segment_path(log_directory(), number, out);
}

// Changes bytes of a segment.
static void overwrite(uint64_t number, uint64_t at, const void *bytes, size_t size)
{
    char path[PATH_BYTES_MAX];
    path_of(number, path);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    CHECK(file >= 0);
    CHECK_EQ(pwrite(file, bytes, size, (off_t)at), (ssize_t)size);
    close(file);
}

static size_t segment_count(void)
{
    Segment *segments;
    size_t count;
    CHECK_EQ(segment_list(log_directory(), NULL, &segments, &count), ERROR_NONE);
    free(segments);
    return count;
}

TEST(records_come_back_in_order)
{
    Fixture *log = opened(EMPTY);
    for (size_t i = 0; i < 100; i++)
        append(log, i * 37);
    LogPlace end = log->end;
    flush(log);
    CHECK_EQ(atomic_load(&log->log->flushed), 100);
    close_log(log);
    log = opened(EMPTY);
    check_taken(log, 1, 100);
    CHECK_EQ(log->taken_bytes[99], 99 * 37);
    CHECK_EQ(log->found.record_count, 100);
    CHECK(!log->found.is_cut);
    CHECK_EQ(memcmp(&log->end, &end, sizeof(end)), 0);
    close_log(log);
    log = opened(end); // the rows have everything
    CHECK_EQ(log->taken_count, 0);
    close_log(log);
}

TEST(the_log_goes_on_behind_what_was_read)
{
    LogPlace middle = EMPTY;
    for (size_t run = 0; run < 5; run++) {
        Fixture *log = opened(EMPTY);
        if (run > 0) check_taken(log, 1, 10 * run);
        for (size_t i = 0; i < 10; i++)
            append(log, 100);
        if (run == 2) middle = log->end;
        close_log(log);
    }
    Fixture *log = opened(middle);
    check_taken(log, 31, 50);
    close_log(log);
}

TEST(records_fill_many_segments)
{
    Random random;
    random_seed(&random, 1);
    Fixture *log = opened(EMPTY);
    for (size_t i = 0; i < 300; i++)
        append(log, random_below(&random, 9000));
    flush(log);
    close_log(log);
    CHECK(segment_count() > 5);
    log = opened(EMPTY);
    check_taken(log, 1, 300);
    close_log(log);
}

TEST(a_record_larger_than_a_segment_gets_its_own)
{
    Fixture *log = opened(EMPTY);
    append(log, 10);
    append(log, 1000 * 1000);
    append(log, 10);
    close_log(log);
    log = opened(EMPTY);
    check_taken(log, 1, 3);
    CHECK_EQ(log->taken_bytes[1], 1000 * 1000);
    close_log(log);
}

TEST(segments_that_are_not_needed_are_used_again)
{
    Fixture *log = opened(EMPTY);
    for (size_t i = 0; i < 2000; i++) {
        append(log, 4000);
        if (i % 10 == 9) log->log->ops->trim(log->log, log->end.position - 5);
    }
    LogPlace end = log->end;
    log->log->ops->trim(log->log, end.position);
    flush(log);
    close_log(log);
    // 8 MB went through segments of at most 128 KiB; the keeper may be behind by some.
    CHECK(segment_count() < 60);
    // What old bytes are in them is nothing of this log.
    log = opened(end);
    CHECK_EQ(log->taken_count, 0);
    append(log, 10);
    close_log(log);
    log = opened(end);
    check_taken(log, 2001, 2001);
    close_log(log);
}

TEST(a_record_and_its_void_are_left_out)
{
    Fixture *log = opened(EMPTY);
    append(log, 10);
    append(log, 20);
    CHECK_EQ(try_append(log, LOG_VOID, 0), ERROR_NONE);
    append(log, 40);
    append(log, 50);
    CHECK_EQ(try_append(log, LOG_VOID, 0), ERROR_NONE);
    close_log(log);
    log = opened(EMPTY);
    CHECK_EQ(log->taken_count, 2);
    CHECK_EQ(log->taken[0], 1);
    CHECK_EQ(log->taken[1], 4);
    CHECK_EQ(log->end.position, 6);
    close_log(log);
}

TEST(a_void_always_fits_behind_its_record)
{
    Random random;
    random_seed(&random, 2);
    Fixture *log = opened(EMPTY);
    for (size_t i = 0; i < 400; i++) {
        append(log, random_below(&random, 3000));
        CHECK_EQ(try_append(log, LOG_VOID, 0), ERROR_NONE);
    }
    close_log(log);
    log = opened(EMPTY);
    CHECK_EQ(log->taken_count, 0);
    CHECK_EQ(log->end.position, 800);
    close_log(log);
}

// The bytes behind the first records of the only segment, where the test wants them.
static uint64_t bytes_of_records(size_t count, size_t body_bytes)
{
    return count * log_record_bytes(body_bytes);
}

TEST(a_torn_end_is_cut_off)
{
    Fixture *log = opened(EMPTY);
    for (size_t i = 0; i < 10; i++)
        append(log, 1000);
    flush(log);
    for (size_t i = 0; i < 3; i++)
        append(log, 1000); // these say that the log was on the disk up to 10
    close_log(log);
    uint64_t at = bytes_of_records(11, 1000);
    overwrite(1, at + 300, "?", 1);
    log = opened(EMPTY);
    check_taken(log, 1, 11);
    CHECK(log->found.is_cut); // 13 is whole, but nothing leads to it
    for (size_t i = 0; i < 3; i++)
        append(log, 500);
    close_log(log);
    log = opened(EMPTY);
    check_taken(log, 1, 14);
    close_log(log);
}

TEST(a_damaged_record_that_was_on_the_disk_is_told)
{
    Fixture *log = opened(EMPTY);
    for (size_t i = 0; i < 10; i++) {
        append(log, 1000);
        flush(log);
    }
    close_log(log);
    uint64_t at = bytes_of_records(4, 1000);
    overwrite(1, at + 300, "?", 1);
    Fixture broken;
    CHECK_EQ(open_log(&broken, EMPTY), ERROR_CORRUPT);
    CHECK_EQ(broken.taken_count, 0);
    char wanted[200], path[PATH_BYTES_MAX];
    path_of(1, path);
    snprintf(wanted, sizeof(wanted), "the record 5 of the log is damaged, at or behind byte %d of ",
             (int)at);
    CHECK_EQ(strncmp(broken.detail.text, wanted, strlen(wanted)), 0);
    CHECK(strstr(broken.detail.text, path));
}

TEST(a_lost_segment_is_told)
{
    Fixture *log = opened(EMPTY);
    for (size_t i = 0; i < 100; i++) {
        append(log, 4000);
        flush(log);
    }
    close_log(log);
    char path[PATH_BYTES_MAX];
    path_of(2, path);
    CHECK_EQ(unlink(path), 0);
    Fixture broken;
    CHECK_EQ(open_log(&broken, EMPTY), ERROR_CORRUPT);
    path_of(1, path);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(open_log(&broken, EMPTY), ERROR_CORRUPT);
    CHECK(strstr(broken.detail.text, "lacks the record 1,"));
}

TEST(another_stores_log_is_told)
{
    Fixture *log = opened(EMPTY);
    for (size_t i = 0; i < 10; i++) {
        append(log, 100);
        flush(log);
    }
    LogPlace other = log->end;
    close_log(log);
    other.position = 5;
    Fixture broken;
    CHECK_EQ(open_log(&broken, other), ERROR_CORRUPT);
    CHECK(strstr(broken.detail.text, "is not that of the rows beside it"));
    directory_remove(log_directory());
    log = opened(other);
    append(log, 10);
    close_log(log);
    log = opened(other);
    check_taken(log, 6, 6);
    close_log(log);
}

// Each byte of three records in turn is changed. What was on the disk comes back, or is told.
TEST(no_changed_byte_passes)
{
    Fixture *log = opened(EMPTY);
    for (size_t i = 0; i < 3; i++) {
        append(log, 50);
        flush(log);
    }
    close_log(log);
    char path[PATH_BYTES_MAX];
    path_of(1, path);
    uint8_t bytes[3 * 256];
    size_t size = bytes_of_records(3, 50);
    CHECK(size <= sizeof(bytes));
    int file = open(path, O_RDWR | O_CLOEXEC);
    CHECK_EQ(pread(file, bytes, size, 0), (ssize_t)size);
    size_t padding = log_record_bytes(50) - LOG_HEADER_BYTES - 50;
    for (size_t i = 0; i < size; i++) {
        uint8_t changed = bytes[i] ^ (uint8_t)(1u << i % 8);
        CHECK_EQ(pwrite(file, &changed, 1, (off_t)i), 1);
        Fixture broken;
        Error error = open_log(&broken, EMPTY);
        size_t record = i / log_record_bytes(50);
        bool is_padding = i % log_record_bytes(50) >= log_record_bytes(50) - padding;
        // Nothing behind the last record says that it was on the disk.
        CHECK_EQ(error, record < 2 && !is_padding ? ERROR_CORRUPT : ERROR_NONE);
        if (!error) check_taken(&broken, 1, is_padding ? 3 : 2);
        if (!error) close_log(&broken);
        CHECK_EQ(pwrite(file, &bytes[i], 1, (off_t)i), 1);
    }
    close(file);
}

// A text may hold bytes that prove themselves, but not with the log's key.
TEST(a_record_in_a_text_is_not_believed)
{
    uint8_t body[4096] = {0};
    LogRecord forged = {
        .kind = LOG_BATCH, .position = 500, .flushed_through = 499, .body = slice_of("forged")};
    log_record_seal(&forged, body);
    memcpy(body + LOG_HEADER_BYTES, forged.body.bytes, forged.body.size);
    Fixture *log = opened(EMPTY);
    append(log, 10);
    LogRecord record = {
        .kind = LOG_BATCH,
        .position = 2,
        .previous = log->end.chain,
        .key = KEY,
        .body = slice(body, sizeof(body)),
    };
    uint8_t header[LOG_HEADER_BYTES];
    log_record_seal(&record, header);
    CHECK_EQ(log->log->ops->append(log->log, &record, header, &log->detail), ERROR_NONE);
    close_log(log);
    // The record around it is torn, so its body is searched.
    overwrite(1, log_record_bytes(10) + 60, "?", 1);
    log = opened(EMPTY);
    check_taken(log, 1, 1);
    close_log(log);
}

TEST(a_full_disk_stores_nothing_and_the_log_goes_on)
{
    struct rlimit before, small;
    signal(SIGXFSZ, SIG_IGN);
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    Fixture *log = opened(EMPTY);
    append(log, 1000);
    small = before;
    small.rlim_cur = 70 * 1024;
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    Error error = try_append(log, LOG_BATCH, 100 * 1024);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    CHECK_EQ(error, ERROR_STORE_FULL);
    CHECK(strstr(log->detail.text, "cannot make room for "));
    append(log, 100 * 1024);
    close_log(log);
    log = opened(EMPTY);
    check_taken(log, 1, 2);
    close_log(log);
}

// With no room for another segment, the only one begins anew when its records are not needed.
TEST(a_full_disk_has_room_for_what_is_not_needed)
{
    enum { BODY_BYTES = 1000 };
    struct rlimit before, small;
    signal(SIGXFSZ, SIG_IGN);
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    Fixture *log = opened(EMPTY);
    append(log, BODY_BYTES);
    small = before;
    small.rlim_cur = 64 * 1024;
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    LogPlace rows = EMPTY;
    for (int round = 0; round < 5; round++) {
        Error error;
        while ((error = try_append(log, LOG_BATCH, BODY_BYTES)) == ERROR_NONE)
            continue;
        CHECK_EQ(error, ERROR_STORE_FULL);
        flush(log);
        CHECK_EQ(try_append(log, LOG_BATCH, BODY_BYTES), ERROR_STORE_FULL);
        CHECK(log->end.position > rows.position + 1);
        rows = log->end;
        log->log->ops->trim(log->log, rows.position);
        append(log, BODY_BYTES);
        append(log, BODY_BYTES);
    }
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    CHECK_EQ(segment_count(), 1);
    uint64_t last = log->end.position;
    close_log(log);
    log = opened(rows);
    check_taken(log, rows.position + 1, last);
    close_log(log);
}

TEST(rows_of_a_body_come_back)
{
    uint8_t body[64];
    LogRow rows[] = {
        {.is_put = true, .table = 3, .key = slice_of("key"), .value = slice_of("value")},
        {.table = 4, .key = slice_of("k")},
    };
    size_t size = 0;
    for (size_t i = 0; i < 2; i++) {
        log_row_begin(&rows[i], body + size);
        size += LOG_ROW_HEADER_BYTES;
        memcpy(body + size, rows[i].key.bytes, rows[i].key.size);
        size += rows[i].key.size;
        if (rows[i].value.size > 0) memcpy(body + size, rows[i].value.bytes, rows[i].value.size);
        size += rows[i].value.size;
    }
    Slice rest = slice(body, size);
    for (size_t i = 0; i < 2; i++) {
        LogRow row;
        CHECK_EQ(log_row_next(&rest, &row, NULL), ERROR_NONE);
        CHECK_EQ(row.is_put, rows[i].is_put);
        CHECK_EQ(row.table, rows[i].table);
        CHECK(slice_equal(row.key, rows[i].key));
        CHECK(slice_equal(row.value, rows[i].value));
    }
    CHECK_EQ(rest.size, 0);
    for (size_t cut = 1; cut < size; cut++) {
        ErrorDetail detail;
        LogRow row;
        rest = slice(body, size - cut);
        Error error = ERROR_NONE;
        while (!error && rest.size > 0)
            error = log_row_next(&rest, &row, &detail);
        // The cut may be at the end of the first row.
        CHECK(error == ERROR_CORRUPT || rest.size == 0);
    }
}
