// The log: one line per event, as key=value, to one file descriptor. It never has the text of a
// conversation.
//
//     log_write(LOG_ERROR, "commit failed", "error=%s method=%s", …)
//     → ts=2026-01-02T03:04:05.678Z level=error msg="commit failed" error=IO method=AppendMessage

#pragma once

#include "base/error.h"

typedef enum LogLevel { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR, LOG_OFF } LogLevel;

// Sets the level and the file for the whole process; the default is LOG_WARNING to standard error.
// Any thread may call it.
void log_configure(LogLevel level, int file_descriptor);

// The format of a line: key=value as above, or a JSON object whose fields are all strings.
typedef enum LogFormat { LOG_TEXT, LOG_JSON } LogFormat;

void log_set_format(LogFormat format);

// Writes one line with one write(2). Cuts a line above LOG_LINE_BYTES_MAX. Replaces newlines and
// control bytes in values by '?'. `fields_format` may be NULL. Leaves errno as it is.
void log_write(LogLevel level, const char *message, const char *fields_format, ...)
    PRINTF_LIKE(3, 4);
