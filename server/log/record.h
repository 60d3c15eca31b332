// Records: the unit in which a log stores batches, with a header and a chain of hashes.
//
// A record is a header of LOG_HEADER_BYTES and a body. Its chain is a hash of the record before
// (by that one's chain), the header and the body. So one chain names a whole history, and a record
// that is read back proves itself and its place. Integers are little-endian.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/slice.h"
#include "report/error_detail.h"

enum {
    LOG_HEADER_BYTES = 112,
    LOG_RECORD_ALIGNMENT = 8, // of a record's first byte in a segment
    LOG_ID_BYTES = 16,
};

typedef enum LogKind {
    LOG_BATCH = 1, // the rows that a batch has put and deleted
    LOG_VOID = 2,  // the record before this one does not count
} LogKind;

// How far a log goes: the position of its last record, and its chain. Zeros: the log is empty.
typedef struct LogPlace {
    uint64_t position;
    Hash chain;
} LogPlace;

typedef struct LogRecord {
    LogKind kind;
    uint32_t call_count;
    uint64_t position;
    int64_t wall_ms;
    uint64_t flushed_through; // the log was on the disk up to this position
    uint64_t key;             // the log's own, random: what looks like a record in a text lacks it
    uint8_t host[LOG_ID_BYTES];
    uint8_t instance[LOG_ID_BYTES];
    Hash previous; // chain of the record before
    Hash chain;
    Slice body; // borrowed
} LogRecord;

static inline LogPlace log_record_place(const LogRecord *record)
{
    return (LogPlace){record->position, record->chain};
}

// Returns the bytes that a record with such a body takes, with the padding behind it.
static inline uint64_t log_record_bytes(size_t body_bytes)
{
    uint64_t bytes = LOG_HEADER_BYTES + (uint64_t)body_bytes;
    return (bytes + LOG_RECORD_ALIGNMENT - 1) / LOG_RECORD_ALIGNMENT * LOG_RECORD_ALIGNMENT;
}

// Computes the record's chain, and writes its header.
void log_record_seal(LogRecord *record, uint8_t out_header[LOG_HEADER_BYTES]);

// Reads the record at the beginning of `bytes`. Returns false if there is none that is whole and
// proves itself.
bool log_record_read(Slice bytes, LogRecord *out);

// A row in the body of a batch: put, or deleted. The slices are borrowed.
typedef struct LogRow {
    bool is_put;
    uint8_t table;
    Slice key;
    Slice value;
} LogRow;

enum { LOG_ROW_HEADER_BYTES = 8 };

// Writes the header of a row. The caller writes the key behind it, and behind that the value.
void log_row_begin(const LogRow *row, uint8_t out_header[LOG_ROW_HEADER_BYTES]);

// Takes the next row off a body that is not empty. ERROR_CORRUPT: the bytes are no row.
MUST_USE Error log_row_next(Slice *body, LogRow *out, ErrorDetail *detail);
