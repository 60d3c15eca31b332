// The log: makes a batch durable by appending one record.
//
// This is the seam between server/kv, which writes records, and what keeps them: log_file.h keeps
// them in files of the store's directory. One thread at a time may append; any
// thread may call the rest.

#pragma once

#include <stdatomic.h>

#include "log/record.h"

typedef struct Log Log;

typedef struct LogOps {
    // Appends a sealed record behind the last one. It is on the disk after a flush.
    // ERROR_STORE_FULL, ERROR_OUT_OF_MEMORY: nothing was stored, and the same position may be
    // appended again. Any other error: the log cannot go on, and the store must be closed; the
    // record is not there after the next start, or nobody knows (`detail` says which).
    Error (*append)(Log *log, const LogRecord *record, const uint8_t header[LOG_HEADER_BYTES],
                    ErrorDetail *detail);
    // Returns when all that was appended before is on the disk. ERROR_IO: it may not be there, and
    // every later call is the same error.
    Error (*flush)(Log *log, ErrorDetail *detail);
    // The rows have been flushed up to this position, so records up to it are not needed.
    void (*trim)(Log *log, uint64_t through);
    void (*close)(Log *log);
} LogOps;

struct Log {
    const LogOps *ops;
    atomic_uint_fast64_t appended;       // position of the last record
    atomic_uint_fast64_t appended_bytes; // of all records since the log was opened
    atomic_uint_fast64_t flushed;        // the log is on the disk up to this position
    atomic_uint_fast64_t flushed_bytes;
    atomic_int_fast64_t
        oldest_ns;          // when the first record that is not flushed was appended; 0: none
    ErrorDetail failure;    // set before has_failed, and never again
    atomic_bool has_failed; // a write or a flush: nothing is appended any more
};
