// The log: one line, one write, nothing in it that could pass for another line.

#include "report/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "harness.h"
#include "text/utf8.h"

// A log into a pipe, which keeps what was written until it is read.
typedef struct LogPipe {
    int read_end;
    int write_end;
    char text[8 * LOG_LINE_BYTES_MAX];
} LogPipe;

static void log_pipe_open(LogPipe *log, LogLevel level)
{
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    log->read_end = ends[0];
    log->write_end = ends[1];
    log_configure(level, log->write_end);
}

static void log_pipe_close(LogPipe *log)
{
    log_configure(LOG_WARNING, STDERR_FILENO);
    close(log->read_end);
    close(log->write_end);
}

// What was logged since the last call.
static const char *log_pipe_read(LogPipe *log)
{
    static const char END[] = "END";
    CHECK_EQ(write(log->write_end, END, 3), 3);
    size_t size = 0;
    while (size < 3 || memcmp(log->text + size - 3, END, 3) != 0) {
        ssize_t got = read(log->read_end, log->text + size, sizeof log->text - size);
        CHECK(got > 0);
        size += (size_t)got;
    }
    log->text[size - 3] = '\0';
    return log->text;
}

enum { TIME_BYTES = sizeof "ts=2026-01-02T03:04:05.678Z " - 1 };

static const char *after_time(const char *line)
{
    return strlen(line) < TIME_BYTES ? line : line + TIME_BYTES;
}

TEST(log_line_has_time_level_message_and_fields)
{
    CLEANUP(log_pipe_close) LogPipe log;
    log_pipe_open(&log, LOG_DEBUG);
    log_write(LOG_ERROR, "commit failed", "error=%s count=%d", "IO", 3);
    const char *line = log_pipe_read(&log);
    CHECK_STR(after_time(line), "level=error msg=\"commit failed\" error=IO count=3\n");
}

TEST(log_line_without_fields_ends_after_the_message)
{
    CLEANUP(log_pipe_close) LogPipe log;
    log_pipe_open(&log, LOG_DEBUG);
    log_write(LOG_INFO, "started", NULL);
    CHECK_STR(after_time(log_pipe_read(&log)), "level=info msg=\"started\"\n");
}

TEST(log_time_is_utc_in_milliseconds)
{
    CLEANUP(log_pipe_close) LogPipe log;
    log_pipe_open(&log, LOG_DEBUG);
    time_t before = time(NULL);
    log_write(LOG_INFO, "x", NULL);
    time_t after = time(NULL);

    struct tm utc = {0};
    int milliseconds = -1;
    int end = 0;
    int count =
        sscanf(log_pipe_read(&log), "ts=%4d-%2d-%2dT%2d:%2d:%2d.%3dZ %n", &utc.tm_year, &utc.tm_mon,
               &utc.tm_mday, &utc.tm_hour, &utc.tm_min, &utc.tm_sec, &milliseconds, &end);
    CHECK_EQ(count, 7);
    CHECK_EQ(end, TIME_BYTES);
    utc.tm_year -= 1900;
    utc.tm_mon -= 1;
    time_t logged = timegm(&utc);
    // time(2) reads a coarser clock that may lag by a tick.
    CHECK(logged >= before - 1 && logged <= after + 1);
    CHECK(milliseconds >= 0 && milliseconds <= 999);
}

TEST(log_levels_below_the_configured_one_are_silent)
{
    static const char *const NAMES[] = {"debug", "info", "warning", "error"};
    CLEANUP(log_pipe_close) LogPipe log;
    log_pipe_open(&log, LOG_DEBUG);
    for (int configured = LOG_DEBUG; configured <= LOG_OFF; configured++) {
        log_configure((LogLevel)configured, log.write_end);
        for (int level = LOG_DEBUG; level < LOG_OFF; level++) {
            log_write((LogLevel)level, "x", NULL);
            char expected[64] = "";
            if (level >= configured) {
                snprintf(expected, sizeof expected, "level=%s msg=\"x\"\n", NAMES[level]);
            }
            CHECK_STR(after_time(log_pipe_read(&log)), expected);
        }
        log_write(LOG_OFF, "never", NULL);
        CHECK_STR(log_pipe_read(&log), "");
    }
}

TEST(log_control_bytes_become_question_marks)
{
    CLEANUP(log_pipe_close) LogPipe log;
    log_pipe_open(&log, LOG_DEBUG);
    log_write(LOG_INFO, "a\nb", "path=%s", "x\r\n\t\x1B[31m\x7F\x01y");
    CHECK_STR(after_time(log_pipe_read(&log)), "level=info msg=\"a?b\" path=x????[31m??y\n");
    log_write(LOG_INFO, "é€😀", "name=%s", "Ж");
    CHECK_STR(after_time(log_pipe_read(&log)), "level=info msg=\"é€😀\" name=Ж\n");
}

TEST(log_line_at_the_limit_is_whole_and_one_byte_more_is_cut)
{
    CLEANUP(log_pipe_close) LogPipe log;
    log_pipe_open(&log, LOG_DEBUG);
    size_t around = TIME_BYTES + strlen("level=info msg=\"\" v=\n");
    int fits = (int)(LOG_LINE_BYTES_MAX - around);
    static char value[2 * LOG_LINE_BYTES_MAX];
    memset(value, 'x', sizeof value - 1);

    log_write(LOG_INFO, "", "v=%.*sE", fits - 1, value);
    const char *line = log_pipe_read(&log);
    CHECK_EQ(strlen(line), LOG_LINE_BYTES_MAX);
    CHECK_STR(line + LOG_LINE_BYTES_MAX - 3, "xE\n");

    log_write(LOG_INFO, "", "v=%.*sE", fits, value);
    line = log_pipe_read(&log);
    CHECK_EQ(strlen(line), LOG_LINE_BYTES_MAX);
    CHECK_STR(line + LOG_LINE_BYTES_MAX - 3, "xx\n");

    log_write(LOG_INFO, value, "v=%s", value);
    line = log_pipe_read(&log);
    CHECK_EQ(strlen(line), LOG_LINE_BYTES_MAX);
    CHECK(strchr(line, '\n') == line + LOG_LINE_BYTES_MAX - 1);
}

TEST(log_cut_falls_on_a_code_point)
{
    CLEANUP(log_pipe_close) LogPipe log;
    log_pipe_open(&log, LOG_DEBUG);
    static char value[2 * LOG_LINE_BYTES_MAX + 1];
    for (size_t i = 0; i < sizeof value - 1; i += 4)
        memcpy(value + i, "😀", 4);
    for (int padding = 0; padding < 4; padding++) {
        log_write(LOG_INFO, "", "v=%.*s%s", padding, "xxxx", value);
        const char *line = log_pipe_read(&log);
        CHECK(utf8_is_valid(slice_of(line)));
        CHECK(strlen(line) > LOG_LINE_BYTES_MAX - 4 && strlen(line) <= LOG_LINE_BYTES_MAX);
    }
}

TEST(log_leaves_errno_alone_and_survives_a_bad_descriptor)
{
    log_configure(LOG_DEBUG, -1);
    errno = EINTR;
    log_write(LOG_ERROR, "nobody reads this", NULL);
    int errno_after = errno;
    log_configure(LOG_WARNING, STDERR_FILENO);
    CHECK_EQ(errno_after, EINTR);
}

enum { THREAD_COUNT = 4, LINES_PER_THREAD = 40 };

static void *write_lines(void *context)
{
    for (int i = 0; i < LINES_PER_THREAD; i++)
        log_write(LOG_INFO, context, "n=%d", i);
    return NULL;
}

TEST(log_lines_of_several_threads_never_mix)
{
    static char names[THREAD_COUNT][2] = {"a", "b", "c", "d"};
    CLEANUP(log_pipe_close) LogPipe log;
    log_pipe_open(&log, LOG_DEBUG);
    pthread_t threads[THREAD_COUNT];
    for (size_t i = 0; i < THREAD_COUNT; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, write_lines, names[i]), 0);
    }
    for (size_t i = 0; i < THREAD_COUNT; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);

    const char *line = log_pipe_read(&log);
    int next[THREAD_COUNT] = {0};
    for (int i = 0; i < THREAD_COUNT * LINES_PER_THREAD; i++) {
        char name = '\0';
        int number = -1;
        CHECK_EQ(sscanf(after_time(line), "level=info msg=\"%c\" n=%d", &name, &number), 2);
        CHECK(name >= 'a' && name < 'a' + THREAD_COUNT);
        CHECK_EQ(number, next[name - 'a']++);
        line = strchr(line, '\n');
        CHECK(line != NULL);
        line++;
    }
    CHECK_STR(line, "");
}
