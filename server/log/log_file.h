// The local log: segments in a directory of their own.
//
// A segment that is nearly full has its successor ready, so an append makes no file. Segments that
// are not needed any more become the next ones, and a new store begins with a small one.

#pragma once

#include "log/log.h"
#include "log/log_scan.h"

typedef struct LogFileOptions {
    const char *directory;                         // of the log; made if it is missing
    uint64_t key;                                  // of the log's records, as in LogScanOptions
    unsigned flush_ms;                             // 0: nothing is flushed in the background
    uint64_t segment_bytes_min, segment_bytes_max; // 0: LOG_SEGMENT_BYTES_MIN and …_MAX
} LogFileOptions;

// Opens the log of a store whose rows have the place `rows`, and gives `taker` the records behind
// that. The log then goes on behind out_found->end. The caller owns the directory, and closes
// `*out_log` with its ops. Errors as log_scan; ERROR_OUT_OF_MEMORY also: no thread.
MUST_USE Error log_file_open(const LogFileOptions *options, LogPlace rows, const LogTaker *taker,
                             ErrorDetail *detail, LogFound *out_found, Log **out_log);
