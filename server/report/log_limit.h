// A limit for lines of one kind that may come by the thousand, as when a disk is full and every
// write is refused: LOG_SAME_LINES_MAX of them a second are written, the rest are counted.
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
    uint32_t count; // of lines in this second
    uint64_t left_out;
} LogLimit;

// Whether a line of this kind may be written at this monotonic time. If so, `*out_left_out` is the
// number of those that were not since the last one that was. Safe to call from any thread.
bool log_limit_take(LogLimit *limit, int64_t now_ns, uint64_t *out_left_out);
