// Log limits: of lines of one kind, which may come by the thousand when a disk is full, at most
// LOG_SAME_LINES_MAX a second are written, and the rest are counted.
//
//     static LogLimit limit;
//     uint64_t left_out;
//     if (!log_limit_take(&limit, clock_monotonic_ns(), &left_out)) return;
//     log_write(LOG_ERROR, "purge stopped", "left_out=%" PRIu64, left_out);

#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct LogLimit { // begins as zeros
    int64_t second_until_ns;
    uint32_t count; // of lines written in this second
    uint64_t left_out;
} LogLimit;

// Returns whether a line of this kind may be written at this monotonic time. If so, sets
// `*out_left_out` to the number of lines that were left out since the last one. Any thread may call
// it.
bool log_limit_take(LogLimit *limit, int64_t now_ns, uint64_t *out_left_out);
