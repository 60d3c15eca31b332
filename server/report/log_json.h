// Log lines as JSON objects.

#pragma once

#include "base/slice.h"

// Writes the key=value pairs of a log line as one JSON object of strings, without a newline.
// Returns how many bytes. `out` must have room for LOG_JSON_BYTES(line.size).
#define LOG_JSON_BYTES(line_bytes) (3 * (line_bytes) + 16)
size_t log_json(Slice line, char *out);
