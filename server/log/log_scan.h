// Scans: reads the records of a log's segments that the rows do not have.

#pragma once

#include "log/record.h"
#include "log/segment.h"

// Takes the records in order. A record that a VOID takes back is left out, with the VOID.
typedef struct LogTaker {
    Error (*take)(void *context, const LogRecord *record, ErrorDetail *detail);
    void *context;
} LogTaker;

typedef struct LogFound {
    LogPlace end;          // of the log, or what the rows have if it has nothing behind that
    uint64_t record_count; // that were taken
    uint64_t bytes;        // of the records read
    bool is_cut;           // a record behind the end is not whole
} LogFound;

typedef struct LogScanOptions {
    const char *directory;   // of the log
    const Segment *segments; // in order
    size_t count;
    LogPlace rows; // what the rows have
    uint64_t key;  // of the log's records; 0: not known, because the rows have none of them
} LogScanOptions;

// Reads the records behind `rows`, and gives them to `taker`.
//
// Nothing is given unless the log is whole: ERROR_CORRUPT if a record is damaged or missing that
// was on the disk, with the segment and the byte in `detail`. A bad record that may never have been
// on the disk is the end of the log. ERROR_IO, ERROR_OUT_OF_MEMORY; and what `taker` returns.
MUST_USE Error log_scan(const LogScanOptions *options, const LogTaker *taker, ErrorDetail *detail,
                        LogFound *out);
