// Times as JavaScript programs write them: ISO 8601, in milliseconds.

#pragma once

#include <stdint.h>

#include "base/slice.h"

enum { ISO_TIME_BYTES = 32 };

// Returns the milliseconds since the epoch of a JSON string, quotes included; 0 if it is not such a
// time, or is outside of what the store takes.
int64_t iso_time_ms(Slice value);

// Writes "2025-11-20T10:00:00.000Z".
void iso_time_write(int64_t time_ms, char out[ISO_TIME_BYTES]);
