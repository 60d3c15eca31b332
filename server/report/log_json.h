// A line of the log as a JSON object.

#pragma once

#include "base/slice.h"

// Writes key=value pairs, as log.c puts them together, as one JSON object of strings, without a
// newline. Returns its bytes. `out` has room for LOG_JSON_BYTES(line.size).
#define LOG_JSON_BYTES(line_bytes) (3 * (line_bytes) + 16)
size_t log_json(Slice line, char *out);
