// The log: one line an event, key=value, to one file descriptor. Never contains conversation text.
//
//     log_write(LOG_ERROR, "commit failed", "error=%s method=%s", …)
//     → ts=2026-01-02T03:04:05.678Z level=error msg="commit failed" error=IO method=AppendMessage

#pragma once

#include "base/error.h"

typedef enum LogLevel { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR, LOG_OFF } LogLevel;

// Process-wide. The default is LOG_WARNING to standard error. Safe to call from any thread.
void log_configure(LogLevel level, int file_descriptor);

// The lines' format: key=value as above, or one JSON object each, with every field a string.
typedef enum LogFormat { LOG_TEXT, LOG_JSON } LogFormat;

void log_set_format(LogFormat format);

// One write(2) of one line; a line over LOG_LINE_BYTES_MAX is cut. Newlines and control bytes in
// values are replaced by '?'. `fields_format` may be NULL.
void log_write(LogLevel level, const char *message, const char *fields_format, ...)
    PRINTF_LIKE(3, 4);
