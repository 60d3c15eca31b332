// The log: builds a line on the stack and writes it with one write(2), so that lines of several
// threads, or of several processes with one file, never mix.

#include "report/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "report/log_json.h"
#include "text/utf8.h"

// One byte over the limit, so that a cut can see whether it falls inside a code point, and a NUL.
typedef struct LogLine {
    char text[LOG_LINE_BYTES_MAX + 1];
    size_t size;
} LogLine;

static const char *const LEVEL_NAMES[] = {
    [LOG_DEBUG] = "debug",
    [LOG_INFO] = "info",
    [LOG_WARNING] = "warning",
    [LOG_ERROR] = "error",
};

static atomic_int log_level = LOG_WARNING;
static atomic_int log_file_descriptor = STDERR_FILENO;
static atomic_int log_format = LOG_TEXT;

static void line_add_time(LogLine *line);
static void line_add(LogLine *line, const char *format, ...) PRINTF_LIKE(2, 3);
static void line_add_list(LogLine *line, const char *format, va_list arguments);
static void line_end(LogLine *line);
static void line_write(const char *text, size_t size);

void log_configure(LogLevel level, int file_descriptor)
{
    atomic_store(&log_file_descriptor, file_descriptor);
    atomic_store(&log_level, (int)level);
}

void log_set_format(LogFormat format)
{
    atomic_store(&log_format, (int)format);
}

void log_write(LogLevel level, const char *message, const char *fields_format, ...)
{
    if (level >= LOG_OFF || (int)level < atomic_load(&log_level)) return;
    int errno_before = errno; // the caller may report it after logging

    LogLine line;
    line.size = 0;
    line_add_time(&line);
    line_add(&line, " level=%s msg=\"%s\"", LEVEL_NAMES[level], message);
    if (fields_format) {
        line_add(&line, " ");
        va_list arguments;
        va_start(arguments, fields_format);
        line_add_list(&line, fields_format, arguments);
        va_end(arguments);
    }
    line_end(&line);

    if (atomic_load(&log_format) == LOG_JSON) {
        char json[LOG_JSON_BYTES(LOG_LINE_BYTES_MAX)];
        size_t size = log_json(slice(line.text, line.size - 1), json);
        json[size++] = '\n';
        line_write(json, size);
    } else {
        line_write(line.text, line.size);
    }
    errno = errno_before;
}

static void line_write(const char *text, size_t size)
{
    // If the log cannot be written, there is nowhere to report it.
    ssize_t written = write(atomic_load(&log_file_descriptor), text, size);
    (void)written;
}

static void line_add_time(LogLine *line)
{
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    line_add(line, "ts=%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ", utc.tm_year + 1900, utc.tm_mon + 1,
             utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, now.tv_nsec / 1000000);
}

static void line_add(LogLine *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    line_add_list(line, format, arguments);
    va_end(arguments);
}

static void line_add_list(LogLine *line, const char *format, va_list arguments)
{
    size_t room = sizeof line->text - line->size; // at least the NUL's byte
    int written = vsnprintf(line->text + line->size, room, format, arguments);
    if (written < 0) return;
    line->size += (size_t)written < room ? (size_t)written : room - 1;
}

static void line_end(LogLine *line)
{
    line->size = utf8_cut(slice(line->text, line->size), LOG_LINE_BYTES_MAX - 1).size;
    for (size_t i = 0; i < line->size; i++) {
        unsigned char byte = (unsigned char)line->text[i];
        if (byte < 0x20 || byte == 0x7F) line->text[i] = '?';
    }
    line->text[line->size++] = '\n';
}
